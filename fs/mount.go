package fs

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// maxRequest is the largest read that the kernel is offered.
const maxRequest = 1 << 20

// mount is the state that the inodes of one mount share.
type mount struct {
	opt     Options
	owner   fuse.Owner
	inodes  *inodes
	memory  *memory
	runner  runner
	buffers buffers
	backing backing
	root    *dirInode
}

func newMount(ctx context.Context, root nodes.Dir, opt Options) *mount {
	m := &mount{opt: opt.withDefaults(), owner: owner()}
	if m.opt.UID != nil {
		m.owner.Uid = *m.opt.UID
	}
	if m.opt.GID != nil {
		m.owner.Gid = *m.opt.GID
	}
	m.inodes = newInodes(m.opt.InodeLimit)
	m.memory = newMemory(m.opt.RememberFor, time.Now)
	m.runner = runner{ctx: ctx, grace: m.opt.InterruptGrace, onPanic: m.panicked, onStall: m.stalled}
	m.backing.off.Store(m.opt.NoPassthrough)
	m.root = &dirInode{}
	m.root.m, m.root.ino, m.root.stable = m, kernelIno(root.Ino()), false
	n := nodes.Node(root)
	m.root.node.Store(&n)
	return m
}

func (m *mount) panicked(value any, stack []byte) {
	m.opt.Logger.Error("panic in a request; only this request fails", "panic", fmt.Sprint(value), "stack", string(stack))
}

func (m *mount) stalled(s stall) {
	m.opt.Logger.Error("a request was answered without its work, which did not end in time", "op", s.op, "path", s.path,
		"limit", s.limit.String(), "stack", s.stack)
}

// limit is the time promised for a node's attributes.
func (m *mount) limit(n nodes.Node) time.Duration {
	if f, ok := n.(nodes.File); ok && f.Class() != nodes.C0 && f.Class() != nodes.C1 {
		return m.opt.OpTimeout
	}
	return m.opt.MetadataTimeout
}

// request runs the work of a request other than a read: half the promised time at most, a remembered failure without
// work, a new failure remembered and reported. Results that work stores in variables of the caller may be read only
// when the error is nil: otherwise work may still be running.
func (m *mount) request(ctx context.Context, op string, ino uint64, name string, promised time.Duration, path func() string, work func(context.Context) error) error {
	key := failureKey{ino: ino, op: op, name: name}
	if err := m.memory.recall(key, 0, 1); err != nil {
		return err
	}
	_, err := m.runner.run(ctx, op, path, promised/2, work)
	if err != nil {
		m.memory.request(key, err)
		m.failed(op, path, err)
	}
	return err
}

// failed reports a failure that says something about the data.
func (m *mount) failed(op string, path func() string, err error) {
	kind := fault.KindOf(err)
	if kind == fault.Cancelled || kind == fault.ReadOnly || (kind == fault.NotFound && op == "lookup") {
		return
	}
	m.opt.OnError(Failure{Time: time.Now(), Op: op, Path: path(), Kind: kind, Err: err})
}

// rawFS stands between the kernel and go-fuse's node layer.
type rawFS struct{ fuse.RawFileSystem }

// Lookup turns "absent, and here is for how long" into the kernel's negative entry; go-fuse knows only one negative
// timeout for the whole mount.
func (r rawFS) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	st := r.RawFileSystem.Lookup(cancel, header, name, out)
	if st == fuse.ENOENT && out.EntryTimeout() > 0 {
		keep := out.EntryTimeout()
		*out = fuse.EntryOut{}
		out.SetEntryTimeout(keep)
		return fuse.OK
	}
	return st
}

// rawFileSystem builds the request handler of the mount.
func (m *mount) rawFileSystem() (fuse.RawFileSystem, *fuse.MountOptions) {
	// go-fuse reports what is normal, such as an answer to a client that was killed: nothing for a user to read.
	logger := slog.NewLogLogger(m.opt.Logger.Handler(), slog.LevelDebug)
	if m.opt.DebugFUSE {
		logger = log.New(os.Stderr, "fuse: ", log.Lmicroseconds)
	}
	mo := fuse.MountOptions{
		FsName:        m.opt.Source,
		Name:          "frifs",
		Options:       []string{"default_permissions"},
		AllowOther:    m.opt.AllowOther || m.opt.AllowRoot,
		MaxBackground: 64,
		MaxWrite:      maxRequest,
		MaxReadAhead:  m.opt.MaxReadAhead,
		DisableXAttrs: true,
		DisableSplice: true,
		// An inode number never gets another target either: the kernel may keep it for as long as it keeps the name.
		EnableSymlinkCaching: true,
		ExtraCapabilities:    fuse.CAP_READDIRPLUS_AUTO,
		Debug:                m.opt.DebugFUSE,
		Logger:               logger,
		PanicHandler: func(v any) fuse.Status {
			m.panicked(v, debug.Stack())
			return fuse.EIO
		},
	}
	if !m.opt.writable {
		mo.Options = append(mo.Options, "ro")
	}
	if os.Geteuid() == 0 && !m.opt.byHelper {
		// Root needs no helper; where mount(2) is refused go-fuse falls back to fusermount3.
		mo.DirectMount = true
	}
	raw := gofs.NewNodeFS(m.root, &gofs.Options{
		MountOptions:    mo,
		NullPermissions: true,
		RootStableAttr:  &gofs.StableAttr{Ino: m.root.ino},
		Logger:          logger,
	})
	return rawFS{raw}, &mo
}

// Server is a live mount.
type Server struct {
	m          *mount
	fuse       *fuse.Server
	mountpoint string
	cancel     context.CancelFunc
	stop       chan struct{} // ends the notifiers
	done       chan struct{} // closed when the kernel has let go
	notices    *notices
}

// Mount mounts root at mountpoint and serves it until it is unmounted. The mountpoint is checked first
// (CheckMountpoint); the errors say what to do. The mount answers requests when Mount returns. Cancelling ctx makes
// all requests fail; it does not unmount.
func Mount(ctx context.Context, root nodes.Dir, mountpoint string, opt Options) (*Server, error) {
	const op = "fs.Mount"
	abs, err := CheckMountpoint(ctx, mountpoint, opt)
	if err != nil {
		return nil, err
	}
	if err := checkDevice(); err != nil {
		return nil, err
	}
	if err := checkAllowed(opt, os.Geteuid() == 0, fuseConf); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := newMount(ctx, root, opt)
	raw, mo := m.rawFileSystem()
	fs, err := fuse.NewServer(raw, abs, mo)
	if err != nil {
		cancel()
		return nil, refused(abs, err)
	}
	m.backing.server = fs
	s := &Server{
		m: m, fuse: fs, mountpoint: abs, cancel: cancel,
		stop: make(chan struct{}), done: make(chan struct{}), notices: newNotices(),
	}
	var notifiers sync.WaitGroup
	notifiers.Go(func() {
		m.inodes.evict(s.stop, func(parent *gofs.Inode, name string) { parent.NotifyEntry(name) })
	})
	notifiers.Go(s.notifier)
	go func() {
		fs.Serve()
		close(s.stop)
		cancel()
		notifiers.Wait()
		close(s.done)
	}()
	if err := waitMount(fs); err != nil {
		return nil, errors.Join(fault.New(op, abs, fault.Unavailable, "the mount does not answer: %w", err), s.UnmountLazy())
	}
	raiseReadAhead(abs, m.opt)
	return s, nil
}

// Mountpoint returns the absolute path of the mountpoint.
func (s *Server) Mountpoint() string { return s.mountpoint }

// Done is closed when the mount is gone, however that came about.
func (s *Server) Done() <-chan struct{} { return s.done }

// Wait waits until the mount is gone.
func (s *Server) Wait() { <-s.done }

// Stats are gauges of the mount.
type Stats struct {
	Inodes    int // inodes that the kernel may hold
	Running   int // requests at work
	Abandoned int // workers that went on past the end of their request
	Stalls    int // requests answered at the end of their time without their worker, since the start
	Notices   int // names that the kernel had and was told to look up again, since the start
	Passed    int // opens that the kernel was left to read by itself, since the start
}

// Healthy reports whether the mount still takes on work: so many requests may have been left behind unfinished that it
// refuses more.
func (s *Server) Healthy() bool { return s.m.runner.abandoned.Load() < maxAbandoned }

// Stats returns the gauges.
func (s *Server) Stats() Stats {
	return Stats{
		Inodes:    s.m.inodes.count(),
		Running:   int(s.m.runner.running.Load()),
		Abandoned: int(s.m.runner.abandoned.Load()),
		Stalls:    int(s.m.runner.stalls.Load()),
		Passed:    int(s.m.backing.passed.Load()),
		Notices:   s.notices.count(0),
	}
}
