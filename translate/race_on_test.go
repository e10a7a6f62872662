//go:build race

package translate

const (
	// histories is the number of random histories of the property test, which the race detector makes ten times as long.
	histories = 250
	// largeRows is how many rows the histories with large fragments have to move or drop.
	largeRows = 1
)
