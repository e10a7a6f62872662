package mapcsv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// storedAddress is one line that a list must have.
type storedAddress struct {
	pos     AddressPosition
	row     uint64
	old     fri.RowAddr
	new     fri.RowAddr
	outcome translate.Outcome
	covered bool
}

// addressList is a file that a test makes up. most bounds what one Next gives.
type addressList struct {
	list []storedAddress
	most int
	fail error         // of reading past the middle
	open *atomic.Int32 // cursors that are open
}

func (l addressList) scan(_ context.Context, from AddressPosition) (AddressCursor, error) {
	i := sort.Search(len(l.list), func(i int) bool {
		p := l.list[i].pos
		return p.Row > from.Row || p.Row == from.Row && p.Member >= from.Member
	})
	l.open.Add(1)
	return &listCursor{l, i}, nil
}

type listCursor struct {
	addressList
	at int
}

func (c *listCursor) Next(_ context.Context, b *AddressBatch, limit int) error {
	n := min(limit, c.most, len(c.list)-c.at)
	if c.fail != nil && c.at+n > len(c.list)/2 {
		return c.fail
	}
	*b = AddressBatch{}
	for _, a := range c.list[c.at : c.at+n] {
		b.Rows, b.Addrs, b.New = append(b.Rows, a.row), append(b.Addrs, a.old), append(b.New, a.new)
		b.Outcome, b.Covered = append(b.Outcome, a.outcome), append(b.Covered, a.covered)
	}
	c.at += n
	return nil
}

func (c *listCursor) Position() AddressPosition {
	if c.at < len(c.list) {
		return c.list[c.at].pos
	}
	return AddressPosition{Row: NoRow, Member: NoRow}
}

func (c *listCursor) Close() error { c.open.Add(-1); return nil }

// drawAddresses makes up the addresses of a file: some rows with one, some with a set, some without a row.
func drawAddresses(t *rapid.T, n int) []storedAddress {
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
	var out []storedAddress
	row, member := rnd.Uint64N(3), uint64(0)
	for range n {
		a := storedAddress{pos: AddressPosition{row, member}, row: row, outcome: translate.Outcome(1 + rnd.IntN(7))}
		a.old, a.new = fri.RowAddr(rnd.Uint64()>>rnd.IntN(64)), fri.RowAddr(rnd.Uint64()>>rnd.IntN(64))
		a.covered = a.outcome.HasAddress() && rnd.IntN(2) == 0
		out = append(out, a)
		switch k := rnd.IntN(10); {
		case row == NoRow || k < 3:
			member++
		case k == 3 && len(out) > n/2:
			row, member = NoRow, 0
		default:
			row, member = row+1+rnd.Uint64N(1<<rnd.IntN(40)), 0
		}
	}
	return out
}

func addressText(names []string, lists []addressList) []byte {
	var b strings.Builder
	b.WriteString("file,row,old_row_addr,outcome,new_row_addr,covered\n")
	for i, l := range lists {
		for _, a := range l.list {
			row, to := "", ""
			if a.row != NoRow {
				row = fmt.Sprint(a.row)
			}
			if a.outcome.HasAddress() {
				to = fmt.Sprint(uint64(a.new))
			}
			fmt.Fprintf(&b, "%s,%s,%d,%s,%s,%t\n", names[i], row, uint64(a.old), a.outcome, to, a.covered)
		}
	}
	return []byte(b.String())
}

func TestAddressesAgainstPrinting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []AddressFile
		var names []string
		var lists []addressList
		var open atomic.Int32
		for i := range rapid.IntRange(0, 3).Draw(t, "files") {
			n := rapid.SampledFrom([]int{0, 1, 30, 30, 30, 100, 300, 1500}).Draw(t, "addresses")
			l := addressList{list: drawAddresses(t, n), most: rapid.SampledFrom([]int{7, 777, 1 << 20}).Draw(t, "most"), open: &open}
			name := strings.Repeat("n", rapid.SampledFrom([]int{1, 10, min(MaxAddressName, 120_000/(n+1)+1)}).Draw(t, "name")-1) + fmt.Sprint(i)
			files, names, lists = append(files, AddressFile{name, l.scan}), append(names, name), append(lists, l)
		}
		stride := rapid.SampledFrom([]int{1, 10, 64, pointLines}).Draw(t, "stride")
		rnd := rand.New(rand.NewPCG(1, 2))
		checkFile(t, "addresses", func() File {
			return newAddresses(files, stride)
		}, addressText(names, lists), rnd)
	})
}

// TestAddressesLetGo checks that only readers that stand somewhere keep a file open.
func TestAddressesLetGo(t *testing.T) {
	var open atomic.Int32
	l := addressList{list: make([]storedAddress, 50_000), most: 1000, open: &open}
	for i := range l.list {
		l.list[i] = storedAddress{pos: AddressPosition{Row: uint64(i)}, row: uint64(i), outcome: translate.Dropped}
	}
	f, err := Addresses([]AddressFile{{"a", l.scan}, {"b", l.scan}})
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, f, 1<<20)
	if open := open.Load(); open != 0 {
		t.Errorf("%d files are open after a pass and a whole read", open)
	}
	size, _ := f.Size(t.Context())
	for off := range int64(100) {
		if _, err := f.ReadAt(t.Context(), make([]byte, 10), off*size/101); err != nil {
			t.Fatal(err)
		}
	}
	if open := open.Load(); open > 4 {
		t.Errorf("%d files are open after reads here and there", open)
	}
}

func TestAddressesFail(t *testing.T) {
	var open atomic.Int32
	list := make([]storedAddress, 40_000)
	for i := range list {
		list[i] = storedAddress{pos: AddressPosition{Row: uint64(i)}, row: uint64(i), outcome: translate.Same}
	}
	bad := errors.New("cannot be read")
	f, err := Addresses([]AddressFile{{"good", addressList{list: list[:5], most: 9, open: &open}.scan},
		{"bad", addressList{list: list, most: 100, fail: bad, open: &open}.scan}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Size(t.Context()); !errors.Is(err, bad) || !strings.Contains(err.Error(), "bad") {
		t.Errorf("a file that cannot be read: %v", err)
	}
	for _, name := range []string{"", "a,b", "a\"", "a\nb", "a\rb", strings.Repeat("x", MaxAddressName+1)} {
		if _, err := Addresses([]AddressFile{{name, nil}}); !fault.Is(err, fault.Invalid) {
			t.Errorf("name %.20q: %v", name, err)
		}
	}
	// What is found later must be what the pass found.
	l := addressList{list: list, most: 1 << 20, open: &open}
	scans := 0
	f, err = Addresses([]AddressFile{{"a", func(ctx context.Context, from AddressPosition) (AddressCursor, error) {
		if scans++; scans > 1 {
			for i := range l.list {
				l.list[i].new = 1 << 60
			}
		}
		return l.scan(ctx, from)
	}}})
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(t.Context(), make([]byte, size), 0); !fault.Is(err, fault.Stale) {
		t.Errorf("other addresses than when the size was told: %v", err)
	}
}
