// Package fault holds the one error type of frifs: what was being done (op), on which file (path), which class of
// failure it is (kind), and why (cause).
//
// The table in table.go maps each kind to an errno, a process exit code and a log level; it is the only such table
// (docs/DESIGN.md, "Errors"). Packages create errors with New or Wrap and never choose an errno themselves.
// The package does no IO and logs nothing.
package fault
