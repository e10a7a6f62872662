package addrset

import (
	"encoding/binary"

	"github.com/frifs/frifs/fri"
)

// Small sets, of which an index may have as many as a table has rows, go from bytes to addresses and back without a
// bitmap in between.

// AppendMembers appends the addresses of an encoded set to dst, ascending. It reports false, and appends nothing, for a
// set of more than limit addresses and one that holds a whole fragment: Decode reads those. Errors are those of Decode.
func AppendMembers(dst []fri.RowAddr, b []byte, f Format, limit int) ([]fri.RowAddr, bool, error) {
	from, fits := len(dst), true
	err := eachEntry(b, f, nil, func(_ int, frag fri.FragID, bitmap []byte) error {
		if fits = fits && bitmap != nil; fits {
			dst, fits = appendBitmap(dst, bitmap, fri.Addr(frag, 0), limit-(len(dst)-from))
		}
		return nil
	})
	if err != nil || !fits {
		return dst[:from], false, located(err)
	}
	return dst, true, nil
}

// appendBitmap appends the addresses of a checked bitmap, or reports false if they are more than limit.
func appendBitmap(dst []fri.RowAddr, b []byte, base fri.RowAddr, limit int) ([]fri.RowAddr, bool) {
	le := binary.LittleEndian
	cookie := le.Uint32(b)
	n, pos := int(le.Uint32(b[4:])), 8
	var flags []byte
	if cookie != cookiePlain {
		n = int(cookie>>16) + 1
		flags, pos = b[4:4+(n+7)/8], 4+(n+7)/8
	}
	heads := b[pos : pos+4*n]
	if pos += 4 * n; flags == nil || n >= tableFrom {
		pos += 4 * n
	}
	for i := range n {
		high := base + fri.RowAddr(le.Uint16(heads[4*i:]))<<16
		card := int(le.Uint16(heads[4*i+2:])) + 1
		if limit -= card; limit < 0 {
			return dst, false
		}
		switch {
		case flags != nil && flags[i/8]>>(i%8)&1 == 1:
			runs := int(le.Uint16(b[pos:]))
			for at := pos + 2; at < pos+2+4*runs; at += 4 {
				v := high + fri.RowAddr(le.Uint16(b[at:]))
				for k := range fri.RowAddr(le.Uint16(b[at+2:])) + 1 {
					dst = append(dst, v+k)
				}
			}
			pos += 2 + 4*runs
		case card <= maxArray:
			for k := range card {
				dst = append(dst, high+fri.RowAddr(le.Uint16(b[pos+2*k:])))
			}
			pos += 2 * card
		default:
			return dst, false
		}
	}
	return dst, true
}

// AppendEncoded appends the encoded form of a set to b: of strictly ascending addresses, at most 4096 in 65,536 that
// begin at a multiple of that. The bytes are those of Encode.
func AppendEncoded(b []byte, addrs []fri.RowAddr, f Format) []byte {
	le := binary.LittleEndian
	start, count := len(b), uint32(0)
	b = append(b, 0, 0, 0, 0)
	if f == Treemap64 {
		b = append(b, 0, 0, 0, 0)
	}
	for len(addrs) > 0 {
		n := upTo(addrs, 32)
		b = le.AppendUint32(b, uint32(addrs[0].Frag()))
		if f == Treemap64 {
			b = appendEncodedBitmap(b, addrs[:n])
		} else {
			size := len(b)
			b = appendEncodedBitmap(append(b, 0, 0, 0, 0), addrs[:n])
			le.PutUint32(b[size:], uint32(len(b)-size-4))
		}
		addrs = addrs[n:]
		count++
	}
	le.PutUint32(b[start:], count)
	return b
}

// upTo is how many addresses differ from the first in the lowest bits only.
func upTo(addrs []fri.RowAddr, bits int) int {
	high := addrs[0] >> bits
	if addrs[len(addrs)-1]>>bits == high {
		return len(addrs)
	}
	n := 1
	for addrs[n]>>bits == high {
		n++
	}
	return n
}

// appendEncodedBitmap appends the bitmap of addresses of one fragment.
func appendEncodedBitmap(b []byte, addrs []fri.RowAddr) []byte {
	le := binary.LittleEndian
	containers, anyRuns := 0, false
	for rest := addrs; len(rest) > 0; containers++ {
		n := upTo(rest, 16)
		anyRuns = anyRuns || runsAreShorter(rest[:n])
		rest = rest[n:]
	}
	start, flags := len(b), 0
	if anyRuns {
		b = le.AppendUint32(b, cookieRuns|uint32(containers-1)<<16)
		flags = len(b)
		b = append(b, make([]byte, (containers+7)/8)...)
	} else {
		b = le.AppendUint32(b, cookiePlain)
		b = le.AppendUint32(b, uint32(containers))
	}
	heads := len(b)
	b = append(b, make([]byte, 4*containers)...)
	table := 0
	if !anyRuns || containers >= tableFrom {
		table = len(b)
		b = append(b, make([]byte, 4*containers)...)
	}
	for i := range containers {
		n := upTo(addrs, 16)
		le.PutUint16(b[heads+4*i:], uint16(addrs[0]>>16))
		le.PutUint16(b[heads+4*i+2:], uint16(n-1))
		if table > 0 {
			le.PutUint32(b[table+4*i:], uint32(len(b)-start))
		}
		if runsAreShorter(addrs[:n]) {
			b[flags+i/8] |= 1 << (i % 8)
			b = appendRuns(b, addrs[:n])
		} else {
			for _, a := range addrs[:n] {
				b = le.AppendUint16(b, uint16(a))
			}
		}
		addrs = addrs[n:]
	}
	return b
}

// runsAreShorter reports whether a container takes the form of runs: where that is the shorter one.
func runsAreShorter(addrs []fri.RowAddr) bool {
	if len(addrs) < 4 {
		return false
	}
	runs := 1
	for i := 1; i < len(addrs); i++ {
		if addrs[i] != addrs[i-1]+1 {
			runs++
		}
	}
	return 2+4*runs < 2*len(addrs)
}

func appendRuns(b []byte, addrs []fri.RowAddr) []byte {
	le := binary.LittleEndian
	count := len(b)
	b = append(b, 0, 0)
	runs := uint16(0)
	for len(addrs) > 0 {
		n := 1
		for n < len(addrs) && addrs[n] == addrs[n-1]+1 {
			n++
		}
		b = le.AppendUint16(b, uint16(addrs[0]))
		b = le.AppendUint16(b, uint16(n-1))
		addrs = addrs[n:]
		runs++
	}
	le.PutUint16(b[count:], runs)
	return b
}
