package fs

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"sort"
	"sync/atomic"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// The fake tree: every kind of node and failure that the adapter must cope with, in memory.

var fakeTime = time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)

func fakeIno(path string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(path))
	return h.Sum64()
}

type fakeFile struct {
	path  string
	class nodes.Class
	size  int64
	attr  func(context.Context) error
	open  func(context.Context) error
	read  func(ctx context.Context, p []byte, off int64) (int, error)
}

func (f *fakeFile) Type() nodes.Type   { return nodes.TypeFile }
func (f *fakeFile) Ino() uint64        { return fakeIno(f.path) }
func (f *fakeFile) Class() nodes.Class { return f.class }
func (f *fakeFile) Attr(ctx context.Context) (nodes.Attr, error) {
	if f.attr != nil {
		if err := f.attr(ctx); err != nil {
			return nodes.Attr{}, err
		}
	}
	return nodes.Attr{Type: nodes.TypeFile, Size: f.size, Perm: 0o444, Mtime: fakeTime, Ino: f.Ino()}, nil
}

func (f *fakeFile) Open(ctx context.Context) (nodes.Handle, error) {
	if f.open != nil {
		if err := f.open(ctx); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *fakeFile) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off >= f.size {
		return 0, nil
	}
	p = p[:min(int64(len(p)), f.size-off)]
	if f.read != nil {
		return f.read(ctx, p, off)
	}
	fill(p, off)
	return len(p), nil
}

func (f *fakeFile) Close() error { return nil }

// fill writes the fake content of bytes off…: position-dependent, so that a wrong offset shows.
func fill(p []byte, off int64) {
	for i := range p {
		o := off + int64(i)
		p[i] = byte(o ^ o>>8 ^ o>>16 ^ o>>24)
	}
}

func textFile(path, text string) *fakeFile {
	return &fakeFile{path: path, class: nodes.C0, size: int64(len(text)), read: func(_ context.Context, p []byte, off int64) (int, error) {
		return copy(p, text[off:]), nil
	}}
}

type fakeLink struct{ path, target string }

func (l *fakeLink) Type() nodes.Type { return nodes.TypeLink }
func (l *fakeLink) Ino() uint64      { return fakeIno(l.path) }
func (l *fakeLink) Attr(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Type: nodes.TypeLink, Size: int64(len(l.target)), Perm: 0o777, Mtime: fakeTime, Ino: l.Ino()}, nil
}
func (l *fakeLink) Target(context.Context) (string, error) { return l.target, nil }

type fakeDir struct {
	path     string
	volatile bool
	handy    bool // listings carry attributes
	list     map[string]nodes.Node
	hidden   func(ctx context.Context, name string) (nodes.Node, error)
	lookups  atomic.Int64
	entries  atomic.Int64
}

func (d *fakeDir) Type() nodes.Type { return nodes.TypeDir }
func (d *fakeDir) Ino() uint64      { return fakeIno(d.path) }
func (d *fakeDir) Volatile() bool   { return d.volatile }
func (d *fakeDir) Attr(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Type: nodes.TypeDir, Perm: 0o555, Mtime: fakeTime, Ino: d.Ino()}, nil
}

func (d *fakeDir) Entries(ctx context.Context) ([]nodes.Entry, error) {
	d.entries.Add(1)
	var out []nodes.Entry
	for name, n := range d.list {
		e := nodes.Entry{Name: name, Type: n.Type(), Ino: n.Ino()}
		if d.handy {
			a, err := n.Attr(ctx)
			if err != nil {
				return nil, err
			}
			e.Attr = &a
		}
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

func (d *fakeDir) Lookup(ctx context.Context, name string) (nodes.Node, error) {
	d.lookups.Add(1)
	if n, ok := d.list[name]; ok {
		return n, nil
	}
	if d.hidden != nil {
		return d.hidden(ctx, name)
	}
	return nil, fault.New("fake.Lookup", d.path+"/"+name, fault.NotFound, "no such entry")
}

// goneDir cannot be listed, because what it shows is gone.
type goneDir struct{ *fakeDir }

func (d goneDir) Entries(context.Context) ([]nodes.Entry, error) {
	return nil, fault.New("fake.Entries", d.path, fault.NotFound, "a directory below is gone")
}

func (d *fakeDir) add(n nodes.Node, name string) { d.list[name] = n }

func newFakeDir(path string) *fakeDir { return &fakeDir{path: path, list: map[string]nodes.Node{}} }

const (
	bigSize   = 64<<20 + 12345
	zerosSize = 1 << 40
	manySize  = 3000
)

// countedLink counts how often it is asked where it leads.
type countedLink struct {
	*fakeLink
	reads *atomic.Int64
}

func (l countedLink) Target(ctx context.Context) (string, error) {
	l.reads.Add(1)
	return l.fakeLink.Target(ctx)
}

// fakeTree builds the tree. Its live file "calls" shows how often the directories were asked.
func fakeTree() *fakeDir {
	root := newFakeDir("")
	root.volatile = true
	root.add(textFile("README.txt", "this mount is a fake\n"), "README.txt")
	root.add(&fakeFile{path: "big.bin", class: nodes.C0, size: bigSize}, "big.bin")
	root.add(&fakeFile{path: "huge.bin", class: nodes.C0, size: 1 << 62}, "huge.bin")
	root.add(&fakeFile{path: "zeros.bin", class: nodes.C0, size: zerosSize, read: func(_ context.Context, p []byte, _ int64) (int, error) {
		clear(p)
		return len(p), nil
	}}, "zeros.bin")
	var linkReads atomic.Int64
	root.add(countedLink{&fakeLink{"link", "README.txt"}, &linkReads}, "link")

	plain, handy := newFakeDir("plain"), newFakeDir("handy")
	handy.handy = true
	for i := range manySize {
		for _, d := range []*fakeDir{plain, handy} {
			name := fmt.Sprintf("f%05d", i)
			d.add(textFile(d.path+"/"+name, name), name)
		}
	}
	sub := newFakeDir("handy/sub")
	sub.add(textFile("handy/sub/deep", "deep\n"), "deep")
	handy.add(sub, "sub")
	few := newFakeDir("few")
	few.handy = true
	for i := range 100 {
		name := fmt.Sprintf("f%05d", i)
		few.add(textFile("few/"+name, name), name)
	}
	root.add(few, "few")
	if os.Getenv("FRIFS_FS_TEST_BENCH") != "" {
		thousands := newFakeDir("thousands")
		thousands.handy, thousands.volatile = true, true
		for i := range 20_000 {
			name := fmt.Sprintf("%d", i)
			thousands.add(textFile("thousands/"+name, name), name)
		}
		root.add(thousands, "thousands")
	}
	root.add(plain, "plain")
	root.add(handy, "handy")

	local := newFakeDir("local")
	var localReads atomic.Int64
	if dir := os.Getenv(localEnv); dir != "" {
		addLocalFiles(local, dir, &localReads)
	}
	root.add(local, "local")

	trace := newFakeDir("trace")
	trace.hidden = func(_ context.Context, name string) (nodes.Node, error) {
		return textFile("trace/"+name, name), nil
	}
	root.add(trace, "trace")

	bad := newFakeDir("bad")
	var generation atomic.Int64
	reads := map[string]*atomic.Int64{}
	count := func(name string) *atomic.Int64 {
		c := &atomic.Int64{}
		reads[name] = c
		return c
	}
	// One bad page in the middle: the pages around it stay readable.
	badPage := count("page")
	bad.add(&fakeFile{path: "bad/page", class: nodes.C0, size: 1 << 20, read: func(_ context.Context, p []byte, off int64) (int, error) {
		badPage.Add(1)
		if n := 500*1024 - off; n < int64(len(p)) && off < 504*1024 {
			fill(p[:max(n, 0)], off)
			return int(max(n, 0)), fault.New("fake.ReadAt", "bad/page", fault.Corrupt, "the page at 500 KiB is bad")
		}
		fill(p, off)
		return len(p), nil
	}}, "page")
	hang := count("hang")
	bad.add(&fakeFile{path: "bad/hang", class: nodes.C0, size: 1 << 20, read: func(context.Context, []byte, int64) (int, error) {
		hang.Add(1)
		time.Sleep(20 * time.Second) // deaf to its context, as a dead NFS server makes pread
		return 0, nil
	}}, "hang")
	slowRead := count("slow")
	bad.add(&fakeFile{path: "bad/slow", class: nodes.C0, size: 4096, read: func(ctx context.Context, p []byte, off int64) (int, error) {
		slowRead.Add(1)
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return 0, fault.Wrap("fake.ReadAt", "bad/slow", ctx.Err())
		}
		fill(p, off)
		return len(p), nil
	}}, "slow")
	bad.add(&fakeFile{path: "bad/panic", class: nodes.C0, size: 4096, read: func(context.Context, []byte, int64) (int, error) {
		panic("a bug in a reader")
	}}, "panic")
	bad.add(&fakeFile{path: "bad/short", class: nodes.C0, size: 10000, read: func(_ context.Context, p []byte, off int64) (int, error) {
		return len(p) / 2, nil
	}}, "short")
	bad.add(&fakeFile{path: "bad/nosize", class: nodes.C2, attr: func(context.Context) error {
		return fault.New("fake.Attr", "bad/nosize", fault.TimedOut, "the job goes on")
	}}, "nosize")
	// flicker is there, but for a moment what it is made from is not.
	var asked atomic.Int64
	bad.add(&fakeFile{path: "bad/flicker", class: nodes.C1, size: 1, attr: func(context.Context) error {
		if asked.Add(1) == 1 {
			return fault.New("fake.Attr", "bad/flicker", fault.NotFound, "a file below is gone")
		}
		return nil
	}}, "flicker")
	for kind := fault.NotFound; kind <= fault.ReadOnly; kind++ {
		name := fmt.Sprintf("open-%d", kind)
		bad.add(&fakeFile{path: "bad/" + name, class: nodes.C0, size: 1, open: func(context.Context) error {
			return fault.New("fake.Open", name, kind, "as asked")
		}}, name)
	}
	bad.hidden = func(ctx context.Context, name string) (nodes.Node, error) {
		switch name {
		case "impossible":
			return nil, fault.New("fake.Lookup", "bad/impossible", fault.Unsupported, "never")
		case "gone": // not listed, so that find can walk the tree
			return goneDir{newFakeDir("bad/gone")}, nil
		case "panics":
			panic("a bug in a lookup")
		}
		return nil, fault.New("fake.Lookup", "bad/"+name, fault.NotFound, "no such entry")
	}
	root.add(bad, "bad")

	// live: another inode at every lookup, content frozen in it.
	root.hidden = func(_ context.Context, name string) (nodes.Node, error) {
		switch name {
		case "calls":
			text := fmt.Sprintf("few.lookups %d\nfew.entries %d\nplain.lookups %d\nplain.entries %d\nhandy.lookups %d\nhandy.entries %d\nroot.lookups %d\n",
				few.lookups.Load(), few.entries.Load(), plain.lookups.Load(), plain.entries.Load(), handy.lookups.Load(), handy.entries.Load(), root.lookups.Load())
			text += fmt.Sprintf("local.reads %d\nlink.reads %d\n", localReads.Load(), linkReads.Load())
			for _, n := range []string{"page", "hang", "slow"} {
				text += fmt.Sprintf("%s.reads %d\n", n, reads[n].Load())
			}
			return textFile(fmt.Sprintf("calls#%d", generation.Add(1)), text), nil
		}
		return nil, fault.New("fake.Lookup", name, fault.NotFound, "no such entry")
	}
	return root
}
