package mapcsv

import (
	"context"
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// composedHeader is the first line of composed.csv.
const composedHeader = "old_row_addr,old_fragment,old_offset,new_row_addr,new_fragment,new_offset,outcome\n"

// translator is what composed.csv needs of a *translate.Translator.
type translator interface {
	Push(ctx context.Context, f fri.FragID, from, to uint64) (translate.Push, error)
	TranslateRun(ctx context.Context, start fri.RowAddr, n int, r *translate.Results) error
}

const (
	// stepRows is the number of rows between two places of a fragment whose byte is told by a Push from the
	// fragment's start: where containers begin, ranks come from headers.
	stepRows = 1 << 16
	// fineRows is the number of rows among which the row of a byte is looked for line by line.
	fineRows = 1 << 10
	// tableRows is the number of rows between two remembered bytes of a fragment that goes through a partition.
	tableRows = 1 << 14
	// passRows is the number of rows that are translated at a time in the pass that measures such fragments.
	passRows = 1 << 16
)

// Composed returns composed.csv of a history in the version of a translator: a line for each row of each source
// fragment of the history, ascending, with its outcome there.
//
// Where a fragment meets ordered compactions only, its size is told without a look at its rows, in some microseconds
// a step. Other fragments are measured in one pass over their rows, which Size makes once; ctx ends it.
//
// Corrupt data of a mapping that is found only while rows are read is an error of that read, not an outcome: the size
// was told before.
func Composed(tr *translate.Translator) File {
	return newComposed(tr, tr.Sources())
}

func newComposed(tr translator, sources []translate.Source) *text {
	f := newText(composedHeader, &composedBody{tr: tr, sources: sources})
	f.idle = 4
	return f
}

// composedIndex holds the byte at which each fragment's lines begin.
type composedIndex struct {
	frags []composedFrag // those with rows
	total uint64
}

type composedFrag struct {
	translate.Source
	start uint64
	// table, for a fragment that is not Ordered: bytes of the lines before each tableRows-th row.
	table []uint64
}

// lineBytes is the length of the lines of the first rows of a fragment, given what became of them.
func lineBytes(f fri.FragID, from, to uint64, p *translate.Push) uint64 {
	t := halfBytes(f, from, to-from)
	for o, n := range p.Rows {
		t += n * uint64(outcomeTails[o].n)
		if translate.Outcome(o).HasAddress() {
			t += n // the comma behind the old half; other tails have their own
		}
	}
	for _, r := range p.Ranges {
		t += halfBytes(r.Frag, r.From, r.To-r.From)
	}
	return t
}

// outcomeTails are the ends of lines: for an outcome with an address what follows it, for the others what follows the
// old half.
var outcomeTails = func() (t [256]lineTail) {
	for i := range t {
		o := translate.Outcome(i)
		s := "," + o.String() + "\n"
		if !o.HasAddress() {
			s = ",,,," + o.String() + "\n"
		}
		t[i].n = copy(t[i].text[:], s)
	}
	return t
}()

type lineTail struct {
	text [24]byte
	n    int
}

// composedBody is the text of composed.csv.
type composedBody struct {
	tr      translator
	sources []translate.Source
	index   lazy[composedIndex]
}

func (b *composedBody) load(ctx context.Context) (*composedIndex, error) {
	return b.index.get(ctx, b.measure)
}

func (b *composedBody) length(ctx context.Context) (int64, error) {
	x, err := b.load(ctx)
	if err != nil {
		return 0, err
	}
	return int64(x.total), nil
}

// measure finds the start of each fragment.
func (b *composedBody) measure(ctx context.Context) (*composedIndex, error) {
	x := &composedIndex{}
	for _, s := range b.sources {
		if s.Rows == 0 {
			continue
		}
		if s.Rows > maxRows {
			return nil, fault.New("mapcsv.Composed", "", fault.Corrupt, "fragment %d with %d rows has no row addresses", s.Frag, s.Rows)
		}
		f := composedFrag{Source: s, start: x.total}
		n, err := b.fragment(ctx, &f)
		if err != nil {
			return nil, fault.Wrap("mapcsv.Composed", "", err)
		}
		x.frags = append(x.frags, f)
		if x.total += n; x.total > maxBytes {
			return nil, fault.New("mapcsv.Composed", "", fault.TooLarge, "the mapping takes more than 2^62 bytes")
		}
	}
	return x, nil
}

// fragment returns the length of a fragment's lines.
func (b *composedBody) fragment(ctx context.Context, f *composedFrag) (uint64, error) {
	if f.Ordered {
		return b.pushed(ctx, f.Frag, f.Rows)
	}
	n := min(passRows, f.Rows)
	r := translate.Results{New: make([]fri.RowAddr, n), Outcome: make([]translate.Outcome, n), Strict: true}
	var sum uint64
	for from := uint64(0); from < f.Rows; from += passRows {
		n := min(passRows, f.Rows-from)
		r.New, r.Outcome = r.New[:n], r.Outcome[:n]
		if err := b.tr.TranslateRun(ctx, fri.Addr(f.Frag, uint32(from)), int(n), &r); err != nil {
			return 0, err
		}
		for lo := uint64(0); lo < n; lo += tableRows {
			hi := min(lo+tableRows, n)
			f.table = append(f.table, sum)
			sum += halfBytes(f.Frag, from+lo, hi-lo) + rightBytes(r.New[lo:hi], r.Outcome[lo:hi])
		}
	}
	return sum, nil
}

// pushed is the length of the lines of the first rows of a fragment that is Ordered.
func (b *composedBody) pushed(ctx context.Context, f fri.FragID, rows uint64) (uint64, error) {
	p, err := b.tr.Push(ctx, f, 0, rows)
	if err != nil {
		return 0, err
	}
	return lineBytes(f, 0, rows, &p), nil
}

// rightBytes is the length of all that follows the old halves of some rows.
func rightBytes(addrs []fri.RowAddr, outcomes []translate.Outcome) uint64 {
	var sum uint64
	var last fri.FragID
	lastWidth := width(0) + 3 // two commas, and the one behind the old half
	for i, o := range outcomes {
		n := outcomeTails[o].n
		if o.HasAddress() {
			a := addrs[i]
			if f := a.Frag(); f != last {
				last, lastWidth = f, width(uint64(f))+3
			}
			n += lastWidth + width(uint64(a)) + width(uint64(a.Offset()))
		}
		sum += uint64(n)
	}
	return sum
}

// open finds fragment, step and row of a byte.
func (b *composedBody) open(ctx context.Context, off int64) (lineReader, int, error) {
	x, err := b.load(ctx)
	if err != nil {
		return nil, 0, err
	}
	at := uint64(off)
	i := sort.Search(len(x.frags), func(i int) bool { return x.frags[i].start > at }) - 1
	f := &x.frags[i]
	at -= f.start
	row, start, err := b.near(ctx, f, at)
	if err != nil {
		return nil, 0, fault.Wrap("mapcsv.Composed", "", err)
	}
	r := &composedReader{b: b, x: x, frag: i, row: row}
	r.left.at(row)
	at -= start
	for {
		if r.done == len(r.res.Outcome) {
			if more, err := r.more(ctx, fineRows); err != nil {
				return nil, 0, err
			} else if !more || r.frag != i {
				return nil, 0, fault.New("mapcsv.seek", "", fault.Corrupt, "byte %d of the mapping lies in no row", off)
			}
		}
		offset := r.row - uint64(len(r.res.Outcome)-r.done)
		n := uint64(halfWidth(f.Frag, uint32(offset))) + rightBytes(r.res.New[r.done:r.done+1], r.res.Outcome[r.done:r.done+1])
		if at < n {
			r.left.at(offset)
			return r, int(at), nil
		}
		at -= n
		r.done++
	}
}

// near returns a row at or not far before byte at of a fragment's lines, and the byte at which its line begins.
func (b *composedBody) near(ctx context.Context, f *composedFrag, at uint64) (row, start uint64, err error) {
	if !f.Ordered {
		k := sort.Search(len(f.table), func(k int) bool { return f.table[k] > at }) - 1
		return uint64(k) * tableRows, f.table[k], nil
	}
	lo, hi := uint64(0), f.Rows // the line is in [lo, hi)
	for _, unit := range [2]uint64{stepRows, fineRows} {
		for hi-lo > unit {
			mid := (lo + (hi-lo+1)/2 + unit - 1) / unit * unit
			if mid >= hi {
				mid -= unit
			}
			v, err := b.pushed(ctx, f.Frag, mid)
			if err != nil {
				return 0, 0, err
			}
			if v <= at {
				lo, start = mid, v
			} else {
				hi = mid
			}
		}
	}
	return lo, start, nil
}
