package store

import (
	"container/list"
	"sync"
)

// memory keeps blocks by content and number, within a bound; the least recently used go first.
type memory struct {
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

func newMemory(limit int64) *memory {
	return &memory{limit: limit, blocks: map[blockKey]*list.Element{}}
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

// put keeps a block, which nobody may change from now on.
func (m *memory) put(content string, block int64, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := blockKey{content, block}
	if m.blocks[k] != nil || cost(data) > m.limit {
		return
	}
	m.used += cost(data)
	m.blocks[k] = m.order.PushFront(&kept{k, data})
	for m.used > m.limit {
		e := m.order.Back()
		old := m.order.Remove(e).(*kept)
		delete(m.blocks, old.key)
		m.used -= cost(old.data)
	}
}

// cost is what a block takes, bookkeeping included.
func cost(data []byte) int64 { return int64(len(data)) + 256 }

func (m *memory) bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
