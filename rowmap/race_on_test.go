//go:build race

package rowmap

// rounds is the number of random compactions of the property test; the race detector makes each ten times as long.
const rounds = 9
