package store

import (
	"container/list"
	"sync"
)

// memory keeps blocks by content and number, within a bound; the least recently used go first.
type memory struct {
	share *Share // of the process's budget; nil: none

	mu     sync.Mutex // guards the rest
	limit  int64      // bytes
	used   int64
	order  list.List // of *kept, the most recent first
	blocks map[blockKey]*list.Element
}

type blockKey struct {
	content string
	block   int64
}

type kept struct {
	key  blockKey
	data []byte
}

// newMemory makes a cache of so many bytes, which count in the budget.
func newMemory(limit int64, b *Budget) *memory {
	m := &memory{limit: limit, blocks: map[blockKey]*list.Element{}}
	m.share = b.Share("store_blocks", m.shrink)
	return m
}

// get returns a block, which must not be changed, or nil.
func (m *memory) get(content string, block int64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.blocks[blockKey{content, block}]
	if e == nil {
		return nil
	}
	m.order.MoveToFront(e)
	return e.Value.(*kept).data
}

// has is get without counting as use.
func (m *memory) has(content string, block int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.blocks[blockKey{content, block}] != nil
}

// put keeps a block, which nobody may change from now on. settle makes room in the budget.
func (m *memory) put(content string, block int64, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := blockKey{content, block}
	if m.blocks[k] != nil || cost(data) > m.limit {
		return
	}
	m.used += cost(data)
	m.share.Add(cost(data))
	m.blocks[k] = m.order.PushFront(&kept{k, data})
	m.evict(m.limit)
}

// evict lets go of blocks until no more than so many bytes are kept. m.mu is held.
func (m *memory) evict(most int64) {
	for m.used > most && m.order.Len() > 0 {
		e := m.order.Back()
		old := m.order.Remove(e).(*kept)
		delete(m.blocks, old.key)
		m.used -= cost(old.data)
		m.share.Add(-cost(old.data))
	}
}

// shrink lets go of so many bytes.
func (m *memory) shrink(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evict(m.used - bytes)
}

// settle makes room in the budget for what was put. The caller holds no lock.
func (m *memory) settle() { m.share.Settle() }

// cost is what a block takes, bookkeeping included.
func cost(data []byte) int64 { return int64(len(data)) + 256 }

func (m *memory) bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
