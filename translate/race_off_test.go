//go:build !race

package translate

const (
	// histories is the number of random histories of the property test, each compared in five ways.
	histories = 2000
	// largeRows is how many rows the histories with large fragments have to move or drop.
	largeRows = 60000
)
