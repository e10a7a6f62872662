package fs

import (
	"context"
	"strings"
	"sync"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/frifs/frifs/nodes"
)

// maxNotices bounds the names that wait to be told to the kernel. Where there are more, all names that may come to mean
// something else are told in their place.
const maxNotices = 4096

var (
	// everything stands for all names of the volatile directories that the kernel knows.
	everything = nodes.Name{}
	// leaves stands for those of them that lead to no directory. What the kernel keeps below directories stays.
	leaves = nodes.Name{Name: "/"}
)

// notices are the names that wait to be told to the kernel, each once. They may come from any goroutine, also from one
// that answers a request: it never waits.
type notices struct {
	wake chan struct{} // holds one token while names wait

	mu      sync.Mutex // protects what follows
	waiting map[nodes.Name]bool
	behind  chan struct{} // closed when what waits has been told; nil where nothing waits
	telling chan struct{} // closed when what was taken has been told; nil where nothing is
	told    int           // names that the kernel was told of, and had
}

func newNotices() *notices {
	return &notices{wake: make(chan struct{}, 1), waiting: map[nodes.Name]bool{}}
}

func (n *notices) add(names []nodes.Name) {
	n.mu.Lock()
	for _, name := range names {
		n.waiting[name] = true
	}
	if len(n.waiting) > maxNotices {
		n.waiting = map[nodes.Name]bool{everything: true}
	}
	if n.behind == nil && len(n.waiting) > 0 {
		n.behind = make(chan struct{})
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take returns what waits; done is called next.
func (n *notices) take() map[nodes.Name]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.waiting
	n.waiting = map[nodes.Name]bool{}
	n.telling, n.behind = n.behind, nil
	return out
}

// done notes that what was taken has been told.
func (n *notices) done() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.telling != nil {
		close(n.telling)
		n.telling = nil
	}
}

// pending returns what is closed when all that was added until now has been told; nil if it has been.
func (n *notices) pending() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.behind != nil {
		return n.behind
	}
	return n.telling
}

// count returns the number of names that the kernel was told of, and had, plus more.
func (n *notices) count(more int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told += more
	return n.told
}

// Invalidate makes the kernel look names up again: each in the directory that it names by its path in the mount ("" for
// the root); an empty name stands for all that the kernel knows in that directory, "." for the directory's attributes,
// and */a/b for the name a/b in each directory below it. It returns at once, and may be called from anywhere: the kernel
// is told from a goroutine of its own that holds no lock, since it may need an answer from this process first. Where the
// kernel cannot be told, the names expire by themselves, after Options.VolatileTimeout.
func (s *Server) Invalidate(names ...nodes.Name) { s.notices.add(names) }

// Refresh invalidates every name that may come to mean something else, directories apart: what the kernel keeps of
// versions that stay is right, and what came or went is told by Invalidate. It returns at once.
func (s *Server) Refresh() { s.Invalidate(leaves) }

// Settle returns when the kernel has been told of all that Invalidate was called with before, when ctx ends, or when the
// mount does. It must not be called while something waits that the kernel may need first, for longer than a moment: a
// request may call it with a ctx that ends soon.
func (s *Server) Settle(ctx context.Context) {
	told := s.notices.pending()
	if told == nil {
		return
	}
	select {
	case <-told:
	case <-s.stop:
	case <-ctx.Done():
	}
}

// notifier tells the kernel until the mount ends.
func (s *Server) notifier() {
	for {
		select {
		case <-s.stop:
			return
		case <-s.notices.wake:
		}
		for name := range s.notices.take() {
			select {
			case <-s.stop:
				return
			default:
			}
			s.tell(name)
		}
		s.notices.done()
	}
}

func (s *Server) tell(n nodes.Name) {
	each, below := strings.CutPrefix(n.Name, "*/")
	switch dir := s.m.find(&s.m.root.Inode, n.Dir); {
	case n == everything:
		s.tellAll(&s.m.root.Inode, true, true)
	case n == leaves:
		s.tellAll(&s.m.root.Inode, true, false)
	case dir == nil: // the kernel knows nothing below it
	case n.Name == "":
		s.tellAll(dir, false, true)
	case n.Name == ".":
		if dir.NotifyContent(-1, 0) == 0 { // attributes only
			s.notices.count(1)
		}
	case below:
		s.tellEach(dir, each)
	default:
		s.tellName(dir, n.Name)
	}
}

// tellEach tells of one path in each directory below dir, and drops the listing that holds it.
func (s *Server) tellEach(dir *gofs.Inode, path string) {
	up, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		up, name = path[:i], path[i+1:]
	}
	for _, ch := range dir.Children() {
		if _, ok := ch.Operations().(*dirInode); !ok {
			continue
		}
		if d := s.m.find(ch, up); d != nil {
			s.tellName(d, name)
			_ = d.NotifyContent(0, 0) // a kernel that keeps nothing of it has nothing to forget
		}
	}
}

// tellName tells of one name. A name that the kernel does not have is no failure, nor is a kernel that knows no such
// notice or a mount that is ending.
func (s *Server) tellName(dir *gofs.Inode, name string) {
	if dir.NotifyEntry(name) == 0 {
		s.notices.count(1)
	}
}

// tellAll tells of the names in dir, those of directories only if dirs, and, if deep, in the volatile directories below it
// first.
func (s *Server) tellAll(dir *gofs.Inode, deep, dirs bool) {
	for name, ch := range dir.Children() {
		d, isDir := ch.Operations().(*dirInode)
		if isDir && deep && d.dirNode().Volatile() {
			s.tellAll(ch, true, dirs)
		}
		if !isDir || dirs {
			s.tellName(dir, name)
		}
	}
}

// find walks the inodes that the kernel knows, from dir on.
func (m *mount) find(dir *gofs.Inode, path string) *gofs.Inode {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" {
			continue
		}
		if dir = dir.GetChild(name); dir == nil {
			return nil
		}
	}
	return dir
}
