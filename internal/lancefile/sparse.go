package lancefile

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/frifs/frifs/internal/pb"
)

// rowSet is a set of rows of a page, in the form that is smallest: an arithmetic sequence, a bitmap, or a list.
type rowSet struct {
	nulls bool // the rows are the null ones; else the valid ones

	start, step, count uint64 // sequence; count 0 unless this form is used
	words              []uint64
	list               []uint64 // ascending
}

// mark sets the null rows of [from, from+n) in out, whose row 0 is from.
func (r *rowSet) mark(from uint64, n int, out *nulls) {
	end := from + uint64(n)
	switch {
	case r.words != nil:
		for i := 0; i < n; i += 64 {
			w, sh := (from+uint64(i))>>6, (from+uint64(i))&63
			m := r.words[w] >> sh
			if sh > 0 && w+1 < uint64(len(r.words)) {
				m |= r.words[w+1] << (64 - sh)
			}
			if !r.nulls {
				m = ^m
			}
			if left := n - i; left < 64 {
				m &= 1<<left - 1
			}
			out.setBits(i, m)
		}
		return
	case r.nulls:
		r.each(from, end, func(p uint64) { out.set(int(p - from)) })
		return
	}
	at := from
	r.each(from, end, func(p uint64) {
		out.setRun(int(at-from), int(p-from))
		at = p + 1
	})
	out.setRun(int(at-from), n)
}

// each calls f for the positions in [from, end), ascending.
func (r *rowSet) each(from, end uint64, f func(uint64)) {
	if r.words != nil {
		for i := from; i < end; i++ {
			if r.words[i>>6]>>(i&63)&1 != 0 {
				f(i)
			}
		}
		return
	}
	if r.count > 0 {
		p, i := r.start, uint64(0)
		if from > p && r.step > 0 {
			i = (from - p + r.step - 1) / r.step
			p += i * r.step
		}
		for ; i < r.count && p < end; i, p = i+1, p+r.step {
			if p >= from {
				f(p)
			}
		}
		return
	}
	k, _ := slices.BinarySearch(r.list, from)
	for ; k < len(r.list) && r.list[k] < end; k++ {
		f(r.list[k])
	}
}

// rank is the number of rows of the set below row p.
func (r *rowSet) rank(p uint64) uint64 {
	switch {
	case r.words != nil:
		n := 0
		for _, w := range r.words[:p>>6] {
			n += bits.OnesCount64(w)
		}
		if p&63 > 0 {
			n += bits.OnesCount64(r.words[p>>6] & (1<<(p&63) - 1))
		}
		return uint64(n)
	case r.count > 0:
		switch {
		case p <= r.start:
			return 0
		case r.step == 0:
			return 1
		}
		return min(r.count, (p-r.start+r.step-1)/r.step)
	}
	k, _ := slices.BinarySearch(r.list, p)
	return uint64(k)
}

// validRank is the number of rows below row p that are not null.
func (r *rowSet) validRank(p uint64) uint64 {
	if r.nulls {
		return p - r.rank(p)
	}
	return r.rank(p)
}

// positions are a set of slots as a page describes it: slots that are null, or those that are valid.
type positions struct {
	enc   *pb.CompressiveEncoding
	count uint64
	slots uint64  // all of them
	nulls bool    // the positions are the null slots
	set   *rowSet // nil: decoded from a buffer when needed
}

// newPositions checks a set message against the number of slots.
func newPositions(m *pb.PlanarLayout_PositionSet, slots uint64) (*positions, error) {
	d := &positions{enc: m.GetPositions(), count: m.GetNumPositions(), slots: slots}
	switch m.GetMeaning() {
	case pb.PlanarLayout_PositionSet_NULLS:
		d.nulls = true
	case pb.PlanarLayout_PositionSet_VALIDS:
	default:
		return nil, &unknownError{what: "meaning of positions", number: int(m.GetMeaning())}
	}
	if d.enc == nil {
		return nil, fmt.Errorf("set without positions")
	}
	if d.count > slots {
		return nil, fmt.Errorf("%d positions in a page of %d rows", d.count, slots)
	}
	return d, nil
}

// valid is the number of slots that are not null.
func (d *positions) valid() uint64 {
	if d.nulls {
		return d.slots - d.count
	}
	return d.count
}

// analyse finds the number of buffers that the positions take, 0 or 1. Those that follow from the message alone are
// kept as a sequence, whatever their number; so a page of many rows costs nothing.
func (d *positions) analyse() (buffers int, err error) {
	e := d.enc
	seq := func(start, step uint64) error {
		if d.count == 0 {
			d.set = &rowSet{nulls: d.nulls, list: []uint64{}}
			return nil
		}
		if d.count > 1 && step == 0 {
			return fmt.Errorf("%d positions do not ascend", d.count)
		}
		if start >= d.slots || (d.count > 1 && (d.slots-1-start)/(d.count-1) < step) {
			return fmt.Errorf("%d positions from %d by %d go past %d rows", d.count, start, step, d.slots)
		}
		d.set = &rowSet{nulls: d.nulls, start: start, step: step, count: d.count}
		return nil
	}
	scalar := func(c *pb.CompressiveEncoding_Constant) (uint64, error) {
		if len(c.GetValue()) > 8 {
			return 0, fmt.Errorf("constant of %d bytes", len(c.GetValue()))
		}
		return loadWord[uint64](c.GetValue()), nil
	}
	switch {
	case e.GetConstant() != nil:
		v, err := scalar(e.GetConstant())
		if err != nil {
			return 0, err
		}
		return 0, seq(v, 0)
	case e.GetRange() != nil:
		if err := wantBits("range", e.GetRange().GetBits(), 8); err != nil {
			return 0, err
		}
		return 0, seq(e.GetRange().GetStart(), e.GetRange().GetStep())
	case e.GetDelta() != nil:
		if err := wantBits("delta", e.GetDelta().GetBits(), 8); err != nil {
			return 0, err
		}
		if d.count == 0 {
			return 0, fmt.Errorf("differences for no positions")
		}
		child := e.GetDelta().GetDeltas()
		if c := child.GetConstant(); c != nil {
			v, err := scalar(c)
			if err != nil {
				return 0, err
			}
			return 0, seq(e.GetDelta().GetBase(), v)
		}
		if r := child.GetRange(); r != nil {
			// Positions that ascend by a growing step: their number is bounded by the root of the rows, unless the
			// steps are constant.
			if r.GetStep() == 0 {
				return 0, seq(e.GetDelta().GetBase(), r.GetStart())
			}
			if d.count > maxPackedLevels {
				return 0, fmt.Errorf("%d positions with growing steps", d.count)
			}
			return 0, nil
		}
		if child.GetByteStreamSplit() != nil || child.GetDictionary() != nil {
			return 0, unknownOf("encoding", child)
		}
		if _, err := valueBits(child); err != nil {
			return 0, err
		}
		return 1, nil
	}
	width, err := valueBits(e)
	if err != nil {
		return 0, err
	}
	return 1, wantBits("position", uint64(width), 8)
}

func errOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// bounded checks that the positions' number agrees with the size of their buffer, before it is used for an
// allocation: no position takes less than a bit, unless it is packed to nothing, and then it does not ascend. A general
// compression makes 8-byte positions at most some hundred times smaller.
func (d *positions) bounded(size uint64) error {
	e := d.enc
	if e.GetDelta() != nil {
		e = e.GetDelta().GetDeltas()
	}
	limit := 8*min(size, 1<<48) + unitValues
	if e.GetGeneral() != nil {
		limit = min(64*min(size, 1<<48)+unitValues, 1<<23)
	}
	if d.count > limit {
		return fmt.Errorf("%d positions in a buffer of %d bytes", d.count, size)
	}
	return nil
}

// decode expands and checks the positions: strictly ascending, below the number of slots.
func (d *positions) decode(cd *codec, b []byte) (*rowSet, int, error) {
	list := make([]uint64, d.count)
	if err := decodeWords(cd, d.enc, b, list); err != nil {
		return nil, 0, fmt.Errorf("positions: %w", err)
	}
	for i, v := range list {
		if i > 0 && v <= list[i-1] {
			return nil, 0, fmt.Errorf("position %d (%d) does not ascend from %d", i, v, list[i-1])
		}
		if v >= d.slots {
			return nil, 0, fmt.Errorf("position %d (%d) is not below the row count %d", i, v, d.slots)
		}
	}
	set := &rowSet{nulls: d.nulls, list: list}
	if words := (d.slots + 63) / 64; words <= uint64(len(list)) {
		set.words, set.list = make([]uint64, words), nil
		for _, v := range list {
			set.words[v>>6] |= 1 << (v & 63)
		}
		return set, int(8 * words), nil
	}
	return set, 8 * len(list), nil
}
