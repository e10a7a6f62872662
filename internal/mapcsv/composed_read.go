package mapcsv

import (
	"context"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

const (
	// orderedPiece and mixedPiece are the most rows that a reader has translated at a time. Each piece looks into all
	// blocks of a later partition, so pieces have to be large there.
	orderedPiece = 1 << 12
	mixedPiece   = 1 << 16
	// sides is the number of states for the right half, by fragment: behind a partition, destinations alternate.
	sides = 64
)

// composedReader writes the lines of composed.csv.
type composedReader struct {
	b     *composedBody
	x     *composedIndex
	frag  int
	row   uint64 // next row to translate
	piece uint64 // rows that were translated last
	left  half
	right [sides]side
	res   translate.Results // rows that were translated
	done  int               // of them
}

// more translates the next rows, at most limit if that is not 0, and reports whether there are any. A reader that goes
// on takes larger and larger pieces.
func (r *composedReader) more(ctx context.Context, limit uint64) (bool, error) {
	f := &r.x.frags[r.frag]
	if r.row == f.Rows {
		if r.frag+1 == len(r.x.frags) {
			return false, nil
		}
		r.frag++
		f = &r.x.frags[r.frag]
		r.row = 0
		r.left.at(0)
	}
	most := uint64(mixedPiece)
	if f.Ordered {
		most = orderedPiece
	}
	if limit == 0 {
		r.piece = min(max(4*r.piece, fineRows), most)
		limit = r.piece
	}
	n := min(limit, f.Rows-r.row)
	if uint64(cap(r.res.New)) < n {
		r.res = translate.Results{New: make([]fri.RowAddr, n), Outcome: make([]translate.Outcome, n), Strict: true}
	}
	r.res.New, r.res.Outcome, r.done = r.res.New[:n], r.res.Outcome[:n], 0
	if err := r.b.tr.TranslateRun(ctx, fri.Addr(f.Frag, uint32(r.row)), int(n), &r.res); err != nil {
		return false, fault.Wrap("mapcsv.Composed", "", err)
	}
	r.row += n
	return true, nil
}

func (r *composedReader) fill(ctx context.Context, dst []byte) (int, error) {
	pos := 0
	for pos <= len(dst)-room {
		if r.done == len(r.res.Outcome) {
			if more, err := r.more(ctx, 0); err != nil {
				return 0, err
			} else if !more {
				break
			}
		}
		f := r.x.frags[r.frag].Frag
		addrs := r.res.New[:len(r.res.Outcome)]
		for i := r.done; i < len(addrs) && pos <= len(dst)-room; i++ {
			o := r.res.Outcome[i]
			tail := &outcomeTails[o]
			if r.left.left() == 0 {
				r.left.refill(f)
			}
			pos += r.left.put((*[window]byte)(dst[pos:]), ',')
			if o.HasAddress() {
				a := addrs[i]
				pos += r.right[a.Frag()%sides].put((*[window]byte)(dst[pos:]), a, ',')
			}
			// Both kinds of tail begin with the comma that was just written.
			*(*[24]byte)(dst[pos-1:]) = tail.text
			pos += tail.n - 1
			r.done = i + 1
		}
	}
	return pos, nil
}
