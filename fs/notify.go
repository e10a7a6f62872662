package fs

import (
	"strings"
	"sync"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/frifs/frifs/nodes"
)

// maxNotices bounds the names that wait to be told to the kernel. Where there are more, all names that may come to mean
// something else are told in their place.
const maxNotices = 4096

// everything stands for all names of the volatile directories that the kernel knows.
var everything = nodes.Name{}

// notices are the names that wait to be told to the kernel, each once. They may come from any goroutine, also from one
// that answers a request: it never waits.
type notices struct {
	wake chan struct{} // holds one token while names wait

	mu      sync.Mutex // protects what follows
	waiting map[nodes.Name]bool
	told    int // names that the kernel was told of, and had
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
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take returns what waits.
func (n *notices) take() map[nodes.Name]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.waiting
	n.waiting = map[nodes.Name]bool{}
	return out
}

// count returns the number of names that the kernel was told of, and had, plus more.
func (n *notices) count(more int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told += more
	return n.told
}

// Invalidate makes the kernel look names up again: each in the directory that it names by its path in the mount ("" for
// the root); an empty name stands for all that the kernel knows in that directory. It returns at once, and may be called
// from anywhere: the kernel is told from a goroutine of its own that holds no lock, since it may need an answer from this
// process first. Where the kernel cannot be told, the names expire by themselves, after Options.VolatileTimeout.
func (s *Server) Invalidate(names ...nodes.Name) { s.notices.add(names) }

// Refresh invalidates every name that may come to mean something else. It returns at once.
func (s *Server) Refresh() { s.Invalidate(everything) }

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
	}
}

func (s *Server) tell(n nodes.Name) {
	switch dir := s.m.find(n.Dir); {
	case n == everything:
		s.tellAll(&s.m.root.Inode, true)
	case dir == nil: // the kernel knows nothing below it
	case n.Name == "":
		s.tellAll(dir, false)
	default:
		s.tellName(dir, n.Name)
	}
}

// tellName tells of one name. A name that the kernel does not have is no failure, nor is a kernel that knows no such
// notice or a mount that is ending.
func (s *Server) tellName(dir *gofs.Inode, name string) {
	if dir.NotifyEntry(name) == 0 {
		s.notices.count(1)
	}
}

// tellAll tells of the names in dir, and, if deep, in the volatile directories below it first.
func (s *Server) tellAll(dir *gofs.Inode, deep bool) {
	for name, ch := range dir.Children() {
		if d, ok := ch.Operations().(*dirInode); ok && deep && d.dirNode().Volatile() {
			s.tellAll(ch, true)
		}
		s.tellName(dir, name)
	}
}

// find walks the inodes that the kernel knows.
func (m *mount) find(path string) *gofs.Inode {
	dir := &m.root.Inode
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
