package fs

import (
	"container/list"
	"sync"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
)

// evictPause is the least time between two rounds of eviction: the kernel answers notifications with FORGET requests
// that take a moment to arrive.
const evictPause = 50 * time.Millisecond

// liveInode is an inode that the kernel may hold.
type liveInode struct {
	ino    uint64
	parent *gofs.Inode // where NotifyEntry goes
	up     uint64      // inode number of the directory above
	name   string
	dir    bool
	kids   int // live inodes below; a directory with some is not evicted
	open   int // open directory handles
}

// inodes keeps the inodes that the kernel may hold, the least recently looked up last, and has the surplus over limit
// evicted. mu protects the list and the index; it is never held while the kernel is notified, since the kernel may
// answer a notification with a FORGET that needs mu.
type inodes struct {
	limit int
	wake  chan struct{}

	mu    sync.Mutex
	order *list.List // of *liveInode, most recent first
	index map[uint64]*list.Element
}

func newInodes(limit int) *inodes {
	return &inodes{limit: limit, wake: make(chan struct{}, 1), order: list.New(), index: map[uint64]*list.Element{}}
}

// touch notes that the kernel was given ino as parent/name.
func (t *inodes) touch(ino uint64, parent *gofs.Inode, up uint64, name string, dir bool) {
	t.mu.Lock()
	if e, ok := t.index[ino]; ok {
		t.order.MoveToFront(e)
		l := e.Value.(*liveInode)
		l.parent, l.name = parent, name
	} else {
		t.index[ino] = t.order.PushFront(&liveInode{ino: ino, parent: parent, up: up, name: name, dir: dir})
		if p, ok := t.index[up]; ok {
			p.Value.(*liveInode).kids++
		}
	}
	over := t.order.Len() > t.limit
	t.mu.Unlock()
	if over {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// forget notes that the kernel dropped ino.
func (t *inodes) forget(ino uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.index[ino]
	if !ok {
		return
	}
	l := e.Value.(*liveInode)
	if p, ok := t.index[l.up]; ok {
		if pl := p.Value.(*liveInode); pl.kids > 0 {
			pl.kids--
		}
	}
	t.order.Remove(e)
	delete(t.index, ino)
}

// opened notes a directory handle being opened (+1) or closed (-1).
func (t *inodes) opened(ino uint64, delta int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.index[ino]; ok {
		l := e.Value.(*liveInode)
		l.open = max(0, l.open+delta)
	}
}

// count returns the number of inodes that the kernel may hold.
func (t *inodes) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.order.Len()
}

// surplus picks what to evict now: enough to come down to nine tenths of the limit, from the least recent end. What is
// picked moves to the front, so that an inode which the kernel cannot drop (an open file) does not block the others.
func (t *inodes) surplus() []liveInode {
	t.mu.Lock()
	defer t.mu.Unlock()
	want := t.order.Len() - t.limit*9/10
	if t.order.Len() <= t.limit || want <= 0 {
		return nil
	}
	var picked []liveInode
	e := t.order.Back()
	for steps := t.order.Len(); steps > 0 && e != nil && len(picked) < want; steps-- {
		prev := e.Prev()
		l := e.Value.(*liveInode)
		if !l.dir || (l.kids == 0 && l.open == 0) {
			picked = append(picked, *l)
			t.order.MoveToFront(e)
		}
		e = prev
	}
	return picked
}

// evict runs until stop is closed, in a goroutine of its own: notifying from a handler could deadlock.
func (t *inodes) evict(stop <-chan struct{}, notify func(parent *gofs.Inode, name string)) {
	for {
		select {
		case <-stop:
			return
		case <-t.wake:
		}
		for _, l := range t.surplus() {
			select {
			case <-stop:
				return
			default:
			}
			notify(l.parent, l.name)
		}
		pause := time.NewTimer(evictPause)
		select {
		case <-stop:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}
