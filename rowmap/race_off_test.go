//go:build !race

package rowmap

// rounds is the number of random compactions of the property test.
const rounds = 60
