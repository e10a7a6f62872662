//go:build !race

package translate

// histories is the number of random histories of the property tests.
const histories = 3000
