package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/frifs/frifs/fri"
)

// parseAddr reads a row address: a u64 in decimal, or fragment:offset, each a u32 in decimal.
func parseAddr(s []byte) (fri.RowAddr, error) {
	if i := bytes.IndexByte(s, ':'); i >= 0 {
		f, err := parseDigits(s[:i], math.MaxUint32)
		if err != nil {
			return 0, fmt.Errorf("fragment %w", err)
		}
		o, err := parseDigits(s[i+1:], math.MaxUint32)
		if err != nil {
			return 0, fmt.Errorf("offset %w", err)
		}
		return fri.Addr(fri.FragID(f), uint32(o)), nil
	}
	v, err := parseDigits(s, math.MaxUint64)
	return fri.RowAddr(v), err
}

// parseDigits reads decimal digits, nothing else, up to the value limit.
func parseDigits(s []byte, limit uint64) (uint64, error) {
	if len(s) == 0 {
		return 0, errors.New("is empty")
	}
	var v uint64
	for _, c := range s {
		d := uint64(c - '0')
		if d > 9 {
			return 0, errors.New("is no decimal number")
		}
		if v > (limit-d)/10 {
			return 0, fmt.Errorf("is above %d", limit)
		}
		v = v*10 + d
	}
	return v, nil
}

// addrReader reads addresses, one a line. Blank lines are skipped, blanks around an address and a carriage return at
// the end of a line are allowed.
type addrReader struct {
	name string // of the input, for messages
	r    *bufio.Reader
	line int
	err  error // what ended the input
}

func newAddrReader(name string, r io.Reader) *addrReader {
	return &addrReader{name: name, r: bufio.NewReaderSize(r, 256<<10)}
}

// next fills batch and returns how many addresses it holds now. After the last batch it returns io.EOF, or the error
// that names the bad line (a usageError) or the failed read, together with the addresses before it.
func (a *addrReader) next(batch []fri.RowAddr) (n int, err error) {
	for n < len(batch) {
		if a.err != nil {
			return n, a.err
		}
		s, err := a.r.ReadSlice('\n')
		a.line++
		if err != nil {
			a.err = err
			if errors.Is(err, bufio.ErrBufferFull) {
				a.err = a.bad(s, errors.New("is too long"))
				continue
			}
		}
		// The usual line is digits alone.
		t := s
		if k := len(t); k > 0 && t[k-1] == '\n' {
			t = t[:k-1]
		}
		addr, perr := parseAddr(t)
		if perr != nil {
			if t = bytes.TrimSpace(t); len(t) == 0 {
				continue
			}
			if addr, perr = parseAddr(t); perr != nil {
				a.err = a.bad(t, perr)
				continue
			}
		}
		batch[n] = addr
		n++
	}
	return n, nil
}

func (a *addrReader) bad(text []byte, why error) error {
	const shown = 60
	hint := ""
	if a.line == 1 && len(text) > 0 && (text[0] < '0' || text[0] > '9') {
		hint = " (a header? skip it with: tail -n +2)"
	}
	if len(text) > shown {
		text = append(text[:shown:shown], "…"...)
	}
	return usagef("%s, line %d: %q %v; an address is a u64 or fragment:offset%s", a.name, a.line, text, why, hint)
}
