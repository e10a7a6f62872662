package nodes

import (
	"context"
	"sort"
	"time"

	"github.com/frifs/frifs/fault"
)

// Permission bits of directories and files (docs/DESIGN.md, "Tree").
const (
	permDir  = 0o555
	permFile = 0o444
)

// base is what all nodes share: identity and times.
type base struct {
	ino   uint64
	path  string // from the root, slash-separated, "" for the root itself
	mtime time.Time
}

// Ino implements Node.
func (b base) Ino() uint64 { return b.ino }

// peeker is a node that can say its attributes at once when they are at hand.
type peeker interface {
	peek() (Attr, bool)
}

// member is one name in a directory.
type member struct {
	name string
	node Node
}

// entry makes the listing line of a member: with attributes only if they are at hand.
func (m member) entry() Entry {
	e := Entry{Name: m.name, Type: m.node.Type(), Ino: m.node.Ino()}
	if p, ok := m.node.(peeker); ok {
		if a, ok := p.peek(); ok {
			e.Attr = &a
		}
	}
	return e
}

// listing is the content of a directory: members in any order, and the names that are impossible here, with the error
// that looking them up gives.
type listing struct {
	members    []member
	impossible map[string]error
}

func (l *listing) add(name string, n Node) { l.members = append(l.members, member{name, n}) }

func (l *listing) bar(name string, err error) {
	if l.impossible == nil {
		l.impossible = map[string]error{}
	}
	l.impossible[name] = err
}

// dir is a directory whose content list makes on demand. find, if set, looks up one name without making the list; its
// names need not be listed. The content must be cheap to make again: a dir keeps nothing.
type dir struct {
	base
	volatile bool
	perm     uint32 // 0 = permDir
	list     func(ctx context.Context) (*listing, error)
	find     func(ctx context.Context, name string) (Node, error)
}

var (
	_ Dir    = (*dir)(nil)
	_ peeker = (*dir)(nil)
)

// Type implements Node.
func (d *dir) Type() Type { return TypeDir }

// Volatile implements Dir.
func (d *dir) Volatile() bool { return d.volatile }

func (d *dir) peek() (Attr, bool) {
	return Attr{Type: TypeDir, Perm: orPerm(d.perm, permDir), Mtime: d.mtime, Ino: d.ino}, true
}

// orPerm is perm, or what is usual where that is 0.
func orPerm(perm, usual uint32) uint32 {
	if perm == 0 {
		return usual
	}
	return perm
}

// Attr implements Node.
func (d *dir) Attr(context.Context) (Attr, error) {
	a, _ := d.peek()
	return a, nil
}

// Entries implements Dir.
func (d *dir) Entries(ctx context.Context) ([]Entry, error) {
	l, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	sort.Slice(l.members, func(i, j int) bool { return l.members[i].name < l.members[j].name })
	es := make([]Entry, len(l.members))
	for i, m := range l.members {
		es[i] = m.entry()
	}
	return es, nil
}

// Lookup implements Dir.
func (d *dir) Lookup(ctx context.Context, name string) (Node, error) {
	if d.find != nil {
		return d.find(ctx, name)
	}
	l, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range l.members {
		if m.name == name {
			return m.node, nil
		}
	}
	if err, ok := l.impossible[name]; ok {
		return nil, err
	}
	return nil, notFound(d.path, name)
}

// notFound is the error for a name that a directory does not have.
func notFound(dir, name string) error {
	if dir != "" {
		name = dir + "/" + name
	}
	return fault.New("lookup", name, fault.NotFound, "no such entry")
}

// link is a symbolic link with a fixed target.
type link struct {
	base
	target string
}

var (
	_ Link   = (*link)(nil)
	_ peeker = (*link)(nil)
)

// Type implements Node.
func (l *link) Type() Type { return TypeLink }

func (l *link) peek() (Attr, bool) {
	return Attr{Type: TypeLink, Size: int64(len(l.target)), Perm: 0o777, Mtime: l.mtime, Ino: l.ino}, true
}

// Attr implements Node.
func (l *link) Attr(context.Context) (Attr, error) {
	a, _ := l.peek()
	return a, nil
}

// Target implements Link.
func (l *link) Target(context.Context) (string, error) { return l.target, nil }

// bytesFile is a file whose whole content is in memory: the README, and live files frozen at lookup.
type bytesFile struct {
	base
	data []byte
}

var (
	_ File   = (*bytesFile)(nil)
	_ peeker = (*bytesFile)(nil)
	_ Handle = (*bytesFile)(nil)
)

// Type implements Node.
func (f *bytesFile) Type() Type { return TypeFile }

// Class implements File.
func (f *bytesFile) Class() Class { return C0 }

func (f *bytesFile) peek() (Attr, bool) {
	return Attr{Type: TypeFile, Size: int64(len(f.data)), Perm: permFile, Mtime: f.mtime, Ino: f.ino}, true
}

// Attr implements Node.
func (f *bytesFile) Attr(context.Context) (Attr, error) {
	a, _ := f.peek()
	return a, nil
}

// Open implements File.
func (f *bytesFile) Open(context.Context) (Handle, error) { return f, nil }

// ReadAt implements Handle.
func (f *bytesFile) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New("read", f.path, fault.Invalid, "negative offset %d", off)
	}
	if off >= int64(len(f.data)) {
		return 0, nil
	}
	return copy(p, f.data[off:]), nil
}

// Close implements Handle.
func (f *bytesFile) Close() error { return nil }
