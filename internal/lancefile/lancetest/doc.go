// Package lancetest writes Lance v2 files for tests: any pages, in any version's grammar, right or wrong on purpose,
// and of any size, since buffers may be computed as they are read. It shares no code with the reader that it tests.
package lancetest
