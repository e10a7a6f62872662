package translate

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/fritest"
	"github.com/frifs/frifs/rowmap"
)

// rewrite is a record of a random history together with what it does, row by row.
type rewrite struct {
	fritest.Record
	form    fri.Form // as written
	version int      // legacy: which Version
	to      map[fri.RowAddr]fri.RowAddr
	from    map[fri.RowAddr]fri.RowAddr
	closed  bool // its mapping fails to open
	corrupt map[fri.RowAddr]bool
	usable  bool // what package fri says
}

// world is a random history and the version it ends in.
type world struct {
	seed     uint64
	tagged   bool
	recs     []*rewrite // wire order
	h        *fri.History
	ordered  []*rewrite // by Seq
	live     map[fri.FragID]*liveFragment
	frags    []fri.FragID // all that were ever there
	rowsEver map[fri.FragID]uint64
}

type liveFragment struct {
	rows    uint64
	known   bool
	deleted *roaring.Bitmap
	broken  bool // the deletion file cannot be read
}

func (w *world) Rows(f fri.FragID) (uint64, bool, bool) {
	l := w.live[f]
	if l == nil {
		return 0, false, false
	}
	return l.rows, l.known, true
}

func (w *world) Deletions(_ context.Context, f fri.FragID) (*roaring.Bitmap, error) {
	if l := w.live[f]; l.broken {
		return nil, fault.New("test", "", fault.Corrupt, "deletion file of fragment %d", f)
	}
	return w.live[f].deleted, nil
}

// hinted is the world with the cheap question about deletions.
type hinted struct{ *world }

func (h hinted) HasDeletions(f fri.FragID) bool {
	l := h.live[f]
	return l != nil && (l.broken || l.deleted != nil)
}

// open is the Maps of the world: real ordered mappings, and partitions that look rows up.
func (w *world) open(_ context.Context, t *fri.Transition) (rowmap.Mapping, error) {
	r := w.recs[t.Record-1]
	if r.closed {
		return nil, fault.New("test", "", fault.NotFound, "no row map")
	}
	if t.Kind == fri.OrderedCompaction {
		m, err := rowmap.NewOrdered(t, rowmap.Options{})
		if err != nil || len(r.corrupt) == 0 {
			return m, err
		}
	}
	return &lookup{r}, nil
}

// lookup is a mapping from a table of rows; a row in corrupt fails the call.
type lookup struct{ r *rewrite }

func (m *lookup) Sources() []fri.Digest      { return m.r.Sources }
func (m *lookup) Destinations() []fri.Digest { return m.r.Destinations }

func (m *lookup) Forward(_ context.Context, addrs, out []fri.RowAddr, st []rowmap.Status) error {
	for i, a := range addrs {
		d, ok := digestOf(m.r.Sources, a.Frag())
		switch to, moved := m.r.to[a]; {
		case m.r.corrupt[a]:
			return fault.New("test", "", fault.Corrupt, "labels of %v", a)
		case !ok:
			return fault.New("test", "", fault.Invalid, "%v is no source", a)
		case moved:
			out[i], st[i] = to, rowmap.Moved
		case d.PhysicalRows > 0 && uint64(a.Offset()) >= d.PhysicalRows:
			st[i] = rowmap.OutOfRange
		default:
			st[i] = rowmap.Dropped
		}
	}
	return nil
}

func (m *lookup) ForwardRun(ctx context.Context, src int, off uint64, out []fri.RowAddr, st []rowmap.Status) error {
	in := make([]fri.RowAddr, len(out))
	for i := range in {
		in[i] = fri.Addr(m.r.Sources[src].Frag(), uint32(off)) + fri.RowAddr(i)
	}
	return m.Forward(ctx, in, out, st)
}

func (m *lookup) Inverse(_ context.Context, addrs, out []fri.RowAddr, st []rowmap.Status) error {
	for i, a := range addrs {
		from, ok := m.r.from[a]
		if m.r.corrupt[from] && ok {
			return fault.New("test", "", fault.Corrupt, "labels of %v", from)
		}
		if out[i], st[i] = from, rowmap.OutOfRange; ok {
			st[i] = rowmap.Moved
		}
	}
	return nil
}

func (m *lookup) InverseRun(context.Context, int, uint64, []fri.RowAddr) error {
	return fault.New("test", "", fault.Unsupported, "not used here")
}

func (m *lookup) Received(_ context.Context, src int, off uint64, counts []uint64) error {
	clear(counts)
	for i, d := range m.r.Sources[:src+1] {
		end := d.PhysicalRows
		if i == src {
			end = min(end, off)
		}
		for o := range end {
			if to, ok := m.r.to[fri.Addr(d.Frag(), uint32(o))]; ok {
				for k, x := range m.r.Destinations {
					if x.Frag() == to.Frag() {
						counts[k]++
					}
				}
			}
		}
	}
	return nil
}

func digestOf(ds []fri.Digest, f fri.FragID) (fri.Digest, bool) {
	for _, d := range ds {
		if d.Frag() == f {
			return d, true
		}
	}
	return fri.Digest{}, false
}

// randomRows favours the edges of words and, in large worlds, of containers.
func randomRows(rnd *rand.Rand, large bool) uint64 {
	if large && rnd.IntN(4) == 0 {
		return []uint64{65535, 65536, 65537, 131072}[rnd.IntN(4)]
	}
	return []uint64{0, 1, 2, 7, 10, 63, 64, 65, 100, 128, 200}[rnd.IntN(11)]
}

// newWorld makes the random history of a seed.
func newWorld(seed uint64, large bool) *world {
	rnd := rand.New(rand.NewPCG(seed, 7))
	w := &world{seed: seed, tagged: rnd.IntN(2) == 0, live: map[fri.FragID]*liveFragment{}, rowsEver: map[fri.FragID]uint64{}}
	next := uint32(rnd.IntN(3))
	newID := func() fri.FragID {
		id := fri.FragID(next)
		next += 1 + uint32(rnd.IntN(2))
		if rnd.IntN(30) == 0 {
			next += 1 << 20
		}
		return id
	}
	now := map[fri.FragID]uint64{}
	add := func(rows uint64) fri.FragID {
		f := newID()
		now[f], w.rowsEver[f] = rows, rows
		w.frags = append(w.frags, f)
		return f
	}
	for range 1 + rnd.IntN(5) {
		add(randomRows(rnd, large))
	}
	lifted := rnd.IntN(3) // tagged: so many versions come first
	for v := range rnd.IntN(9) {
		form := fri.Legacy
		if w.tagged && v >= lifted {
			form = fri.Tagged
		}
		groups := 1
		if form == fri.Legacy {
			groups += rnd.IntN(2)
		}
		before := sorted(now)
		for range groups {
			from := before
			if rnd.IntN(12) == 0 {
				from = sorted(now) // chained within the version
			}
			if r := w.rewrite(rnd, from, now, add, form, v); r != nil {
				w.recs = append(w.recs, r)
			}
		}
		if rnd.IntN(3) == 0 {
			add(randomRows(rnd, large))
		}
	}
	w.disturb(rnd)
	for f, rows := range now {
		w.enliven(rnd, f, rows)
	}
	if rnd.IntN(6) == 0 && len(w.frags) > 0 {
		f := w.frags[rnd.IntN(len(w.frags))]
		w.enliven(rnd, f, w.rowsEver[f]) // a source that is live
	}
	w.encode(rnd)
	return w
}

func sorted(m map[fri.FragID]uint64) []fri.FragID {
	var s []fri.FragID
	for f := range m {
		s = append(s, f)
	}
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	return s
}

// rewrite moves the live rows of some fragments into new ones.
func (w *world) rewrite(rnd *rand.Rand, from []fri.FragID, now map[fri.FragID]uint64, add func(uint64) fri.FragID, form fri.Form, version int) *rewrite {
	r := &rewrite{form: form, version: version, to: map[fri.RowAddr]fri.RowAddr{}, from: map[fri.RowAddr]fri.RowAddr{}}
	rnd.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	share := []float64{0, 0.05, 0.5, 1}[rnd.IntN(4)]
	var moved []fri.RowAddr
	for _, f := range from {
		rows, ok := now[f]
		if !ok || len(r.Sources) > rnd.IntN(4) {
			continue
		}
		delete(now, f)
		d := fri.Digest{ID: uint64(f), PhysicalRows: rows}
		for o := range rows {
			if rnd.Float64() < share {
				d.DeletedRows++
				continue
			}
			moved = append(moved, fri.Addr(f, uint32(o)))
		}
		r.Sources = append(r.Sources, d)
	}
	if len(r.Sources) == 0 {
		return nil
	}
	if form == fri.Tagged && rnd.IntN(2) == 0 {
		w.partition(rnd, r, moved, add)
		return r
	}
	r.Survivors = fritest.Treemap(moved, rnd.IntN(2) == 0)
	for left := moved; len(left) > 0 || rnd.IntN(6) == 0; {
		n := len(left)
		if rnd.IntN(2) == 0 {
			n = rnd.IntN(n + 1)
		}
		f := add(uint64(n))
		r.Destinations = append(r.Destinations, fri.Digest{ID: uint64(f), PhysicalRows: uint64(n)})
		for i, a := range left[:n] {
			r.link(a, fri.Addr(f, uint32(i)))
		}
		left = left[n:]
	}
	return r
}

func (r *rewrite) link(from, to fri.RowAddr) { r.to[from], r.from[to] = to, from }

func (w *world) partition(rnd *rand.Rand, r *rewrite, moved []fri.RowAddr, add func(uint64) fri.FragID) {
	r.MapID, r.MapSize = fmt.Sprintf("00000000-0000-0000-0000-%012x", rnd.Uint32()), 1+rnd.Uint64N(1000)
	lists := make([][]fri.RowAddr, 1+rnd.IntN(6))
	for _, a := range moved {
		k := rnd.IntN(len(lists))
		lists[k] = append(lists[k], a)
	}
	for _, l := range lists {
		f := add(uint64(len(l)))
		r.Destinations = append(r.Destinations, fri.Digest{ID: uint64(f), PhysicalRows: uint64(len(l))})
		for i, a := range l {
			r.link(a, fri.Addr(f, uint32(i)))
		}
	}
}

// disturb takes records away, spoils some, and reorders them.
func (w *world) disturb(rnd *rand.Rand) {
	if len(w.recs) == 0 {
		return
	}
	pick := func() *rewrite { return w.recs[rnd.IntN(len(w.recs))] }
	switch rnd.IntN(10) {
	case 0: // trimmed
		i := rnd.IntN(len(w.recs))
		w.recs = append(w.recs[:i:i], w.recs[i+1:]...)
	case 1:
		r := pick()
		r.Destinations = append(r.Destinations, fri.Digest{ID: 1 << 30, PhysicalRows: 3})
	case 2:
		if r := pick(); r.form == fri.Tagged {
			r.Extra = []byte{9 << 3, 1} // an unknown field
		}
	case 3:
		pick().closed = true
	case 4:
		r := pick()
		r.corrupt = map[fri.RowAddr]bool{}
		for a := range r.to {
			if rnd.IntN(5) == 0 {
				r.corrupt[a] = true
			}
		}
	case 5:
		if w.tagged {
			rnd.Shuffle(len(w.recs), func(i, j int) { w.recs[i], w.recs[j] = w.recs[j], w.recs[i] })
		} else {
			for _, r := range w.recs {
				r.version = 100 - r.version
			}
			sort.SliceStable(w.recs, func(i, j int) bool { return w.recs[i].version < w.recs[j].version })
		}
	case 6:
		w.recs = append(w.recs, pick())
	}
	sort.SliceStable(w.recs, func(i, j int) bool { return w.recs[i].form < w.recs[j].form })
}

func (w *world) enliven(rnd *rand.Rand, f fri.FragID, rows uint64) {
	if rnd.IntN(8) == 0 {
		return // deleted as a whole
	}
	l := &liveFragment{rows: rows, known: rnd.IntN(8) != 0, broken: rnd.IntN(30) == 0}
	if rnd.IntN(20) == 0 {
		l.rows = max(rows, 2) - 1
	}
	if share := rnd.Float64(); rnd.IntN(2) == 0 {
		l.deleted = roaring.New()
		for o := range rows {
			if rnd.Float64() < share {
				l.deleted.Add(uint32(o))
			}
		}
	}
	w.live[f] = l
}

func (w *world) encode(rnd *rand.Rand) {
	var b []byte
	for i := 0; i < len(w.recs); {
		r := w.recs[i]
		if r.form == fri.Tagged {
			b = fritest.AppendTransition(b, r.Record)
			i++
			continue
		}
		var groups []fritest.Record
		for ; i < len(w.recs) && w.recs[i].form == fri.Legacy && w.recs[i].version == r.version; i++ {
			groups = append(groups, w.recs[i].Record)
		}
		b = fritest.AppendVersion(b, uint64(10+r.version), groups)
	}
	if !w.tagged && len(w.recs) > 0 && rnd.IntN(12) == 0 {
		r := *w.recs[rnd.IntN(len(w.recs))]
		r.form = fri.Tagged
		w.recs = append(w.recs, &r)
		b = fritest.AppendTransition(b, r.Record)
	}
	if rnd.IntN(12) == 0 {
		b = append(b, 7<<3, 1)
	}
	opt := fri.Options{}
	if w.tagged {
		opt.IndexVersion = 1
	}
	h, err := fri.Open(context.Background(), bytes.NewReader(b), opt)
	if err != nil {
		panic(err)
	}
	w.h = h
	for _, t := range h.Transitions {
		w.recs[t.Record-1].usable = t.Usable()
		w.ordered = append(w.ordered, w.recs[t.Record-1])
	}
}
