package store

import (
	"bytes"
	"context"
	"sync"

	"github.com/frifs/frifs/fault"
)

// Open opens an object by its name with one request: a read that brings one end of the object, where the file formats
// that are read here have what is looked at first, and tells size and e-tag with it. Where the caches are likely to have
// that already, the read is of one byte. Clouds whose answers tell less are asked for the attributes instead.
func (d *layered) Open(ctx context.Context, name string) (Reader, error) {
	n := d.s.opening()
	if n == 0 {
		obj, err := d.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		return d.reader(obj), nil
	}
	note := d.ident + "|" + name
	known, ok := d.known(note)
	if ok {
		n /= BlockSize
	}
	where := Join(d.URI(), name)
	m, err := d.l.openings.join(ctx, d.l, note, where, func(ctx context.Context) (meeting, error) {
		return retry(ctx, d.l, "store.Open", where, func(ctx context.Context) (meeting, error) { return d.meet(ctx, name, n) })
	})
	if err != nil {
		return nil, d.hidden(ctx, name, err)
	}
	r := d.reader(m.obj)
	r.c.seed(m.start, m.data)
	if !ok || known != m.obj.Identity() {
		d.note(note, m.obj)
	}
	return r, nil
}

// meeting is what the first read of an object brought.
type meeting struct {
	obj   Object
	start int64
	data  []byte
}

// meet makes one try of a read by name alone: of n bytes from the start, or the last -n.
func (d *layered) meet(ctx context.Context, name string, n int64) (meeting, error) {
	b, err := d.l.open(ctx, d.s, name, 0, n, Object{})
	if err != nil {
		return meeting{}, err
	}
	defer func() { _ = b.Close() }() // only read from
	p := make([]byte, b.length(n))
	if err := b.fill(ctx, d.s, p); err != nil {
		return meeting{}, b.cause(err)
	}
	return meeting{b.obj, b.start, p}, nil
}

// openings are the first reads under way, which all who open the same name at the time share.
type openings struct {
	mu    sync.Mutex // guards what follows, and the waiters
	byKey map[string]*opening
}

type opening struct {
	done    chan struct{} // closed when m and err are set
	m       meeting
	err     error
	waiters int
	cancel  context.CancelFunc
}

// join runs fn for all who ask for key while it runs. It outlives the caller who began it, as long as somebody waits.
func (q *openings) join(ctx context.Context, l *Layer, key, where string, fn func(context.Context) (meeting, error)) (meeting, error) {
	q.mu.Lock()
	o := q.byKey[key]
	if o == nil {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		o = &opening{done: make(chan struct{}), cancel: cancel}
		if q.byKey == nil {
			q.byKey = map[string]*opening{}
		}
		q.byKey[key] = o
		go func() {
			defer cancel()
			o.m, o.err = fn(own)
			q.mu.Lock()
			q.forget(key, o)
			q.mu.Unlock()
			close(o.done)
		}()
	} else {
		l.count.joined.Add(1)
	}
	o.waiters++
	q.mu.Unlock()
	select {
	case <-o.done:
		return o.m, o.err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if o.waiters--; o.waiters == 0 {
		q.forget(key, o)
		o.cancel()
	}
	return meeting{}, failure(ctx, nil, "store.Open", where, 0, fault.Unknown, ctx.Err())
}

// forget takes a read off the list. q.mu is held.
func (q *openings) forget(key string, o *opening) {
	if q.byKey[key] == o {
		delete(q.byKey, key)
	}
}

// seed hands the caches the whole blocks of what was read on opening.
func (c *content) seed(start int64, p []byte) {
	for b := (start + BlockSize - 1) / BlockSize; b*BlockSize < c.obj.Size; b++ {
		lo := b*BlockSize - start
		hi := lo + int64(c.blockLen(b))
		if hi > int64(len(p)) {
			return
		}
		c.store(b, bytes.Clone(p[lo:hi]))
	}
}

// store puts a block into the caches.
func (c *content) store(b int64, data []byte) {
	c.l.mem.put(c.key, b, data)
	c.l.mem.settle()
	if disk := c.l.cfg.Disk; disk != nil && c.last != "" {
		disk.put(c.last, b, data)
	}
}

// notes remembers which content a name had when it was opened last. It is never believed, only used to guess how much of
// an object is worth asking for.
type notes struct {
	mu    sync.Mutex // guards what follows
	byKey map[string]noted
}

// noted is a content: its identity, and the block that opening brings.
type noted struct {
	identity string
	block    int64
}

// maxNotes bounds how many names are remembered.
const maxNotes = 4096

// known returns the identity that a name had when it was opened last, if the block that opening it brings is at hand.
func (d *layered) known(note string) (identity string, ok bool) {
	q := &d.l.notes
	q.mu.Lock()
	n, ok := q.byKey[note]
	q.mu.Unlock()
	disk := d.l.cfg.Disk
	if !d.lasting {
		disk = nil
	}
	if !ok && disk != nil {
		n, ok = disk.noted(note)
	}
	if !ok {
		return "", false
	}
	key := d.ident + "|" + n.identity
	return n.identity, d.l.mem.has(key, n.block) || disk != nil && disk.has(key, n.block)
}

// note remembers what a name stands for.
func (d *layered) note(note string, obj Object) {
	n := noted{identity: obj.Identity()}
	if d.s.opening() < 0 {
		n.block = max(0, obj.Size-1) / BlockSize
	}
	q := &d.l.notes
	q.mu.Lock()
	if q.byKey == nil || len(q.byKey) >= maxNotes {
		q.byKey = map[string]noted{}
	}
	q.byKey[note] = n
	q.mu.Unlock()
	if disk := d.l.cfg.Disk; disk != nil && d.lasting {
		disk.note(note, n)
	}
}
