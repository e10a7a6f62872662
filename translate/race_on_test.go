//go:build race

package translate

// histories is the number of random histories of the property tests; the race detector makes each ten times as long.
const histories = 300
