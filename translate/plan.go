package translate

import (
	"context"
	"math"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// unlimited is the row count of a fragment whose rows nobody knows: no offset is out of its range.
const unlimited = uint64(1) << 32

// step is one usable record, ready to be applied.
type step struct {
	t       *fri.Transition
	pos     int // place in the order of application
	group   int // legacy: the Version it belongs to; tagged: 0
	mapping atomic.Pointer[rowmap.Mapping]
	outlook atomic.Pointer[outlook]
}

// outlook is what happens to all rows that a step moves, where that is the same for all of them.
type outlook struct {
	final bool  // what the mapping says is final
	next  *step // they wait for this step
}

// edge leads from a fragment to a step that consumes or produces it; s is nil for a record that is spoilt.
type edge struct {
	s     *step
	group int
	pos   int // of the fragment among the step's sources, or destinations
}

// node is a fragment that the history names, or a live one.
type node struct {
	id     fri.FragID
	live   bool
	limit  uint64 // row count by the manifest, else by a digest; unlimited if nobody knows
	strict bool   // legacy: live, and its consumer's digest gives another row count than the manifest
	lost   bool   // a walk that ends here, dead, is unresolved
	hasDel bool   // may have deletions
	out    []edge // consumers, ascending by group
	in     []edge // producers, ascending by group; spoilt ones are added by claim
	first  verdict

	mu  sync.Mutex // guards del
	del *deletions
}

// verdict is what happens to an address that reached a fragment.
type verdict struct {
	end  bool    // no step follows; outcome is given
	what Outcome // end: Moved stands for a live fragment, else Dangling or Unresolved
	s    *step   // the step to apply
}

// Maps opens the mapping of a usable transition. It is called again for each batch until it succeeds, so it has to
// remember failures if opening is dear. An error that is cancelled, timed_out or unavailable fails the translation;
// any other makes the addresses that need the mapping Unresolved.
type Maps func(ctx context.Context, t *fri.Transition) (rowmap.Mapping, error)

// Options are settings of a Translator; the zero value is usable.
type Options struct {
	// DeletionBytes bounds the decoded deletions that a Translator keeps; 0 means 8 MiB.
	DeletionBytes int64
	// Mapping is used for ordered compactions where no Maps is given.
	Mapping rowmap.Options
}

// Translator translates addresses by one version's history. It is safe for concurrent use.
type Translator struct {
	h      *fri.History
	live   Live
	hint   deletionHint // nil if live has none
	maps   Maps
	budget int64
	steps  []*step // by order of application

	min   uint64
	dense []*node // nodes by id-min
	far   map[uint32]*node
	more  sync.Map // fri.FragID → *node: live fragments that the history does not name
	gone  *node    // stands for every dead fragment that the history does not name

	work    sync.Pool
	delUsed atomic.Int64
}

// New prepares the translation by history h (nil: the version has none) into the version that live describes. maps
// opens the mappings; nil serves histories without stable partitions. New reads nothing.
func New(h *fri.History, live Live, maps Maps, opt Options) *Translator {
	t := &Translator{h: h, live: live, maps: maps, budget: opt.DeletionBytes}
	t.hint, _ = live.(deletionHint)
	if t.budget <= 0 {
		t.budget = 8 << 20
	}
	if maps == nil {
		t.maps = orderedOnly(opt.Mapping)
	}
	b := builder{t: t, nodes: make(map[fri.FragID]*node)}
	if h != nil && h.Broken == nil {
		b.history(h)
	}
	t.gone = &node{limit: unlimited, lost: h != nil && (h.Broken != nil || h.Opaque)}
	t.gone.first = t.verdict(t.gone, 0)
	b.finish()
	return t
}

func orderedOnly(opt rowmap.Options) Maps {
	return func(_ context.Context, t *fri.Transition) (rowmap.Mapping, error) {
		if t.Kind != fri.OrderedCompaction {
			return nil, fault.New("translate", "", fault.Unsupported, "record %d: no way to open a row map was given", t.Record)
		}
		m, err := rowmap.NewOrdered(t, opt)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}

// builder collects the nodes of a history.
type builder struct {
	t     *Translator
	nodes map[fri.FragID]*node
}

func (b *builder) node(f fri.FragID) *node {
	n := b.nodes[f]
	if n == nil {
		n = b.t.newNode(f)
		b.nodes[f] = n
	}
	return n
}

func (t *Translator) newNode(f fri.FragID) *node {
	rows, known, live := t.live.Rows(f)
	n := &node{id: f, live: live, limit: unlimited}
	if live && known {
		n.limit = rows
	}
	n.hasDel = live && (t.hint == nil || t.hint.HasDeletions(f))
	return n
}

func (b *builder) history(h *fri.History) {
	group := make(map[*fri.Transition]int, len(h.Transitions))
	for g, members := range h.Steps {
		for _, i := range members {
			if i >= 0 && i < len(h.Transitions) {
				group[h.Transitions[i]] = g
			}
		}
	}
	for _, tr := range h.Transitions {
		g, inStep := group[tr]
		switch {
		case tr.Usable():
			b.usable(&step{t: tr, pos: len(b.t.steps), group: g})
		case !h.Tagged && inStep:
			b.spoilt(tr, g)
		}
	}
	for _, tr := range h.Transitions {
		if !tr.Usable() {
			b.claim(tr)
		}
	}
}

func (b *builder) usable(s *step) {
	b.t.steps = append(b.t.steps, s)
	for i, d := range s.t.Sources {
		n := b.node(d.Frag())
		n.out = append(n.out, edge{s, s.group, i})
	}
	for i, d := range s.t.Destinations {
		n := b.node(d.Frag())
		n.in = append(n.in, edge{s, s.group, i})
	}
}

// spoilt enters a legacy group that cannot be used: its sources are lost from its version on, even where live.
func (b *builder) spoilt(tr *fri.Transition, g int) {
	for _, d := range tr.Sources {
		if d.ID <= math.MaxUint32 {
			n := b.node(d.Frag())
			n.out = append(n.out, edge{nil, g, 0})
		}
	}
}

// claim enters what a record that cannot be used may have done: consumed its sources, produced its destinations.
func (b *builder) claim(tr *fri.Transition) {
	for _, d := range tr.Sources {
		if d.ID <= math.MaxUint32 {
			b.node(d.Frag()).lost = true
		}
	}
	for _, d := range tr.Destinations {
		if d.ID <= math.MaxUint32 {
			n := b.node(d.Frag())
			n.in = append(n.in, edge{nil, -1, 0})
		}
	}
}

// finish orders the edges, settles row counts and builds the index.
func (b *builder) finish() {
	t := b.t
	lo, hi := uint64(math.MaxUint64), uint64(0)
	for f, n := range b.nodes {
		lo, hi = min(lo, uint64(f)), max(hi, uint64(f))
		// Of a version's groups a spoilt one comes first: what it did to the fragment is not known.
		sort.SliceStable(n.out, func(i, j int) bool {
			if n.out[i].group != n.out[j].group {
				return n.out[i].group < n.out[j].group
			}
			return n.out[i].s == nil && n.out[j].s != nil
		})
		sort.SliceStable(n.in, func(i, j int) bool { return n.in[i].group < n.in[j].group })
		n.lost = n.lost || t.gone.lost
		n.count()
		n.first = t.verdict(n, 0)
	}
	if len(b.nodes) > 0 && hi-lo < uint64(len(b.nodes))*4+64 {
		t.min, t.dense = lo, make([]*node, hi-lo+1)
		for f, n := range b.nodes {
			t.dense[uint64(f)-lo] = n
		}
		return
	}
	t.far = make(map[uint32]*node, len(b.nodes))
	for f, n := range b.nodes {
		t.far[uint32(f)] = n
	}
}

// count takes the row count from a digest where the manifest has none, and notes where the two disagree.
func (n *node) count() {
	counted := n.limit != unlimited
	for _, e := range n.out {
		if e.s == nil {
			continue
		}
		rows := e.s.t.Sources[e.pos].PhysicalRows
		n.strict = n.strict || n.live && counted && (rows == 0 || rows != n.limit)
		if rows > 0 && n.limit == unlimited {
			n.limit = rows
		}
	}
	for _, e := range n.in {
		if n.live && n.limit == unlimited && e.s != nil {
			if rows := e.s.t.Destinations[e.pos].PhysicalRows; rows > 0 {
				n.limit = rows
			}
		}
	}
}

// node returns the fragment's node.
func (t *Translator) node(f uint32) *node {
	if i := uint64(f) - t.min; i < uint64(len(t.dense)) {
		if n := t.dense[i]; n != nil {
			return n
		}
	}
	return t.otherNode(f)
}

func (t *Translator) otherNode(f uint32) *node {
	if n := t.far[f]; n != nil {
		return n
	}
	if n, ok := t.more.Load(fri.FragID(f)); ok {
		return n.(*node)
	}
	n := t.newNode(fri.FragID(f))
	if !n.live {
		return t.gone
	}
	n.first = t.verdict(n, 0)
	have, _ := t.more.LoadOrStore(n.id, n)
	return have.(*node)
}

// verdict decides what happens to an address that reached n when the steps of the groups before `group` are done.
func (t *Translator) verdict(n *node, group int) verdict {
	tagged := t.h != nil && t.h.Tagged
	if tagged && n.live {
		return verdict{end: true, what: Moved}
	}
	for _, e := range n.out {
		if !tagged && e.group < group {
			continue
		}
		if e.s == nil {
			return verdict{end: true, what: Unresolved}
		}
		return verdict{s: e.s}
	}
	switch {
	case n.live:
		return verdict{end: true, what: Moved}
	case n.lost:
		return verdict{end: true, what: Unresolved}
	}
	return verdict{end: true, what: Dangling}
}

// next is the verdict on an address that step s moved into n.
func (t *Translator) next(n *node, s *step) verdict {
	v := t.verdict(n, s.group+1)
	if v.s != nil && v.s.pos <= s.pos {
		return verdict{end: true, what: Unresolved} // a cycle, which no usable record can be part of
	}
	return v
}

// open returns the step's mapping.
func (t *Translator) open(ctx context.Context, s *step) (rowmap.Mapping, error) {
	if m := s.mapping.Load(); m != nil {
		return *m, nil
	}
	m, err := t.maps(ctx, s.t)
	if err != nil {
		return nil, err
	}
	s.mapping.Store(&m)
	return m, nil
}

// outlookOf tells what follows step s: it is final if every destination that has rows is live, large enough and without
// deletions, and is not consumed by a later step.
func (t *Translator) outlookOf(s *step) *outlook {
	if o := s.outlook.Load(); o != nil {
		return o
	}
	o := &outlook{final: true}
	waits := true
	for _, d := range s.t.Destinations {
		if d.PhysicalRows == 0 {
			continue
		}
		n := t.node(uint32(d.ID))
		v := t.next(n, s)
		o.final = o.final && v.end && v.what == Moved && !n.hasDel && n.limit >= d.PhysicalRows
		waits = waits && v.s != nil && (o.next == nil || o.next == v.s)
		o.next = v.s
	}
	if !waits {
		o.next = nil
	}
	s.outlook.Store(o)
	return o
}

// fatal reports whether an error fails a whole call: it says nothing about the bytes, and may pass.
func fatal(err error) bool {
	switch fault.KindOf(err) {
	case fault.Cancelled, fault.TimedOut, fault.Unavailable, fault.Unknown:
		return true
	}
	return false
}
