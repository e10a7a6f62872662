package fs

import (
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
)

const (
	pageSize      = 4096
	failureBlock  = 64 << 10
	maxRemembered = 4096
)

// failureKey names what failed: a request on an inode, or on a name below it.
type failureKey struct {
	ino  uint64
	op   string
	name string
}

// failedRange is a failed part of a file: bytes [lo, hi). For requests without a range it is [0, 1).
type failedRange struct {
	lo, hi int64
	until  time.Time
	err    error
}

// memory remembers failures for a short while, because the kernel repeats a failed read page by page and clients
// repeat failed opens (docs/DESIGN.md, "Errors"). mu protects what follows it and is held for map work only.
type memory struct {
	keep time.Duration
	now  func() time.Time

	mu      sync.Mutex
	failed  map[failureKey][]failedRange
	count   int       // ranges in failed
	sweepAt time.Time // no sweep of all keys before
}

func newMemory(keep time.Duration, now func() time.Time) *memory {
	return &memory{keep: keep, now: now, failed: map[failureKey][]failedRange{}}
}

// slow reports whether failures of this kind may have cost the caller its time bound, so that the rest of the
// request must be taken for failed too. Other kinds are found anew quickly, and good bytes beside a bad page must
// stay readable.
func slow(kind fault.Kind) bool {
	switch kind {
	case fault.TimedOut, fault.Unavailable, fault.Unknown, fault.Denied:
		return true
	}
	return false
}

// recall returns the remembered failure that touches bytes [lo, hi) of key, or nil.
func (m *memory) recall(key failureKey, lo, hi int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count == 0 {
		return nil
	}
	now := m.now()
	for _, f := range m.failed[key] {
		if f.lo < hi && lo < f.hi && now.Before(f.until) {
			return f.err
		}
	}
	return nil
}

// read remembers a failed read of want bytes at off, of which n bytes were right.
func (m *memory) read(key failureKey, off int64, want, n int, err error) {
	kind := fault.KindOf(err)
	if kind == fault.Cancelled {
		return
	}
	bad := off + int64(n)
	if slow(kind) {
		m.add(key, bad&^(failureBlock-1), max(off+int64(want), bad+1), err)
		return
	}
	// The failing page is known where the handle said how far it came, or where one page was asked for.
	if n > 0 || want <= pageSize {
		lo := bad &^ (pageSize - 1)
		m.add(key, lo, lo+pageSize, err)
	}
}

// request remembers a failed request without a range: an open, attributes, a lookup, a listing.
func (m *memory) request(key failureKey, err error) {
	if slow(fault.KindOf(err)) {
		m.add(key, 0, 1, err)
	}
}

func (m *memory) add(key failureKey, lo, hi int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if m.count >= maxRemembered && !now.Before(m.sweepAt) {
		m.sweepAt = now.Add(m.keep / 4)
		for k := range m.failed {
			m.expire(k, now)
		}
	}
	if m.count >= maxRemembered {
		return // a flood of failures: the rest is found anew each time
	}
	m.expire(key, now)
	m.failed[key] = append(m.failed[key], failedRange{lo, hi, now.Add(m.keep), err})
	m.count++
}

// expire drops what is too old of one key; mu is held.
func (m *memory) expire(key failureKey, now time.Time) {
	list, ok := m.failed[key]
	if !ok {
		return
	}
	kept := list[:0]
	for _, f := range list {
		if now.Before(f.until) {
			kept = append(kept, f)
		}
	}
	m.count -= len(list) - len(kept)
	if len(kept) == 0 {
		delete(m.failed, key)
		return
	}
	m.failed[key] = kept
}
