package nodes

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxNameBytes = 240 // an encoded name longer than this is cut
	cutNameBytes = 231 // what is kept of it at most, before "~" and 8 hex digits
)

// EncodeName makes a file name of a name found in the data (index, tag, branch, table): '/', '%', control bytes, DEL
// and bytes that are not UTF-8 become %XX; "." and ".." are encoded whole, the empty name is "%". An encoded name over
// 240 bytes is cut at a rune and escape boundary to at most 231 and gets "~" and 8 hex digits of the raw name's
// SHA-256 (docs/DESIGN.md, "Names").
func EncodeName(raw string) string {
	switch raw {
	case "":
		return "%"
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	var b strings.Builder
	cut := 0 // length of the longest prefix that ends at a boundary and is at most cutNameBytes
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRuneInString(raw[i:])
		if (r == utf8.RuneError && n == 1) || r == '/' || r == '%' || r < 0x20 || r == 0x7F {
			const digits = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(digits[raw[i]>>4])
			b.WriteByte(digits[raw[i]&15])
		} else {
			b.WriteString(raw[i : i+n])
		}
		i += n
		if b.Len() <= cutNameBytes {
			cut = b.Len()
		}
	}
	if b.Len() <= maxNameBytes {
		return b.String()
	}
	sum := sha256.Sum256([]byte(raw))
	return b.String()[:cut] + "~" + hex.EncodeToString(sum[:4])
}

// uniqueNames hands out names: a name that is taken gets "~2", "~3" and so on until it is free.
type uniqueNames struct {
	taken map[string]bool
	next  map[string]int
}

func newUniqueNames() *uniqueNames {
	return &uniqueNames{taken: map[string]bool{}, next: map[string]int{}}
}

func (u *uniqueNames) take(name string) string {
	got := name
	for n := max(u.next[name], 2); u.taken[got]; n++ {
		got = name + "~" + strconv.Itoa(n)
		u.next[name] = n + 1
	}
	u.taken[got] = true
	return got
}
