package fs

import (
	"strings"

	gofs "github.com/hanwen/go-fuse/v2/fs"
)

// notice asks the notifier to make the kernel forget what a name means; an empty name stands for all names of the
// volatile directories that the kernel knows.
type notice struct{ dir, name string }

// Invalidate makes the kernel look the name up again in the directory dir (a path in the mount, "" for the root). It
// returns at once; the notification is sent from a goroutine of its own, since the kernel may need an answer from this
// process first. Under a flood of notices some are dropped: names of volatile directories expire after a second anyway.
func (s *Server) Invalidate(dir, name string) {
	select {
	case s.notify <- notice{dir, name}:
	default:
	}
}

// Refresh invalidates every name that may come to mean something else. It returns at once.
func (s *Server) Refresh() { s.Invalidate("", "") }

func (s *Server) notifier() {
	for {
		select {
		case <-s.stop:
			return
		case n := <-s.notify:
			if n.name == "" {
				refresh(&s.m.root.Inode)
				continue
			}
			if dir := s.m.find(n.dir); dir != nil {
				dir.NotifyEntry(n.name)
			}
		}
	}
}

// find walks the inodes that the kernel knows.
func (m *mount) find(path string) *gofs.Inode {
	dir := &m.root.Inode
	for _, name := range strings.Split(path, "/") {
		if name == "" {
			continue
		}
		if dir = dir.GetChild(name); dir == nil {
			return nil
		}
	}
	return dir
}

// refresh invalidates the names in dir and in the volatile directories below it.
func refresh(dir *gofs.Inode) {
	for name, ch := range dir.Children() {
		if d, ok := ch.Operations().(*dirInode); ok && d.dirNode().Volatile() {
			refresh(ch)
		}
		dir.NotifyEntry(name)
	}
}
