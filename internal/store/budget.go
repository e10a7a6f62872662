package store

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Budget is one bound for what the caches of a process keep in memory, in bytes. Each cache has a Share of it, in which it
// counts what it keeps; where all together keep too much, the largest is asked to let go of what it used longest ago. The
// zero value of *Budget, nil, bounds nothing. It is safe for concurrent use.
type Budget struct {
	limit int64
	used  atomic.Int64 // by shares that count

	mu     sync.Mutex // guards shares; not held while one of them is called
	shares []*Share
}

// Share is what one cache has of a Budget. All methods of a nil Share do nothing.
type Share struct {
	budget *Budget
	name   string
	used   atomic.Int64
	shrink func(bytes int64)
	poll   func() int64 // for a cache that knows by itself what it holds
}

// NewBudget makes a budget of so many bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Share gives a part to a cache. shrink is to let go of about so many bytes, those used longest ago first; it is called
// with no lock held, and may be nil for what cannot be let go of.
func (b *Budget) Share(name string, shrink func(bytes int64)) *Share {
	return b.join(&Share{budget: b, name: name, shrink: shrink})
}

// Watch counts a cache that bounds itself and knows how many bytes it holds.
func (b *Budget) Watch(name string, held func() int64) {
	b.join(&Share{budget: b, name: name, poll: held})
}

func (b *Budget) join(s *Share) *Share {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares = append(b.shares, s)
	return s
}

// Add counts bytes in, or out if n is negative. It takes no lock.
func (s *Share) Add(n int64) {
	if s != nil {
		s.used.Add(n)
		s.budget.used.Add(n)
	}
}

// Settle makes room if the budget is overdrawn. The caller holds no lock that a shrink needs.
func (s *Share) Settle() {
	if s != nil {
		s.budget.settle()
	}
}

func (s *Share) held() int64 {
	if s.poll != nil {
		return s.poll()
	}
	return s.used.Load()
}

func (b *Budget) settle() {
	all := b.list()
	var stuck []*Share // could not let go of anything
	for {
		over := b.Used() - b.limit
		if over <= 0 {
			return
		}
		var most *Share
		for _, s := range all {
			if s.shrink != nil && !slices.Contains(stuck, s) && (most == nil || s.used.Load() > most.used.Load()) {
				most = s
			}
		}
		if most == nil {
			return // the rest is in use
		}
		before := most.used.Load()
		most.shrink(max(over, b.limit/64))
		if most.used.Load() >= before {
			stuck = append(stuck, most)
		}
	}
}

func (b *Budget) list() []*Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shares[:len(b.shares):len(b.shares)]
}

// Used is what all shares hold, in bytes.
func (b *Budget) Used() int64 {
	n := b.used.Load()
	for _, s := range b.list() {
		if s.poll != nil {
			n += s.poll()
		}
	}
	return n
}

// Limit is the bound in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// Part says what one share holds.
type Part struct {
	Name  string
	Bytes int64
}

// Parts lists what the shares hold, in the order in which they came. Shares of one name are one part.
func (b *Budget) Parts() []Part {
	if b == nil {
		return nil
	}
	var out []Part
	for _, s := range b.list() {
		i := slices.IndexFunc(out, func(p Part) bool { return p.Name == s.name })
		if i < 0 {
			i = len(out)
			out = append(out, Part{Name: s.name})
		}
		out[i].Bytes += s.held()
	}
	return out
}
