package fs

import (
	"log/slog"
	"time"

	"github.com/frifs/frifs/fault"
)

// Options configure a mount. The zero value is usable; a field that is zero takes the default named at it.
type Options struct {
	// Source is what df shows in its first column: the URI of the dataset, without credentials.
	Source string
	// SourceDir is the dataset's directory for a dataset on this machine, "" otherwise. The mountpoint may lie
	// neither inside it nor above it.
	SourceDir string
	// AllowNonEmpty permits a mountpoint that holds files (they are hidden while the mount lasts).
	AllowNonEmpty bool
	// Force clears a stale mount found at the mountpoint instead of refusing it.
	Force bool

	// AllowOther lets other users than the one who mounts use the mount. For one who is not root /etc/fuse.conf has to
	// permit it.
	AllowOther bool
	// AllowRoot lets root use the mount, and no other user. It needs the same permission: the kernel lets everybody in,
	// and the mode of the mount's root keeps all but the owner and root out.
	AllowRoot bool
	// UID and GID are whom all nodes belong to; nil is who mounts.
	UID, GID *uint32
	// FileMode and DirMode replace the permission bits of files and directories; 0 leaves those of the tree.
	FileMode, DirMode uint32

	// OpTimeout is the bound promised for opening and reading files and for the size of a C2 file (60 s); half of
	// it is given to the work inside one request.
	OpTimeout time.Duration
	// MetadataTimeout is the bound promised for lookups, attributes and listings (30 s, at most OpTimeout), halved
	// inside too.
	MetadataTimeout time.Duration
	// InterruptGrace is how long a request goes on after its caller was interrupted (1 s).
	InterruptGrace time.Duration
	// RememberFor is how long a failure is answered from memory (2 s).
	RememberFor time.Duration
	// VolatileTimeout is how long the kernel may keep a name of a volatile directory, present or absent (1 s).
	VolatileTimeout time.Duration
	// EntryTimeout and AttrTimeout are how long the kernel may keep names, and attributes, that can only ever mean one
	// thing (24 h); negative: not at all. Shorter ones shorten VolatileTimeout for names, and for attributes, too.
	EntryTimeout, AttrTimeout time.Duration

	// InodeLimit bounds the inodes that the kernel may keep (100,000); the least recently looked up are evicted.
	InodeLimit int
	// MaxReadAhead is the kernel's read-ahead in bytes (1 MiB). Above 128 KiB it needs the right to write the
	// mount's read_ahead_kb in /sys; without it the mount works with 128 KiB.
	MaxReadAhead int

	// NoPassthrough has every read come to this process, also where the kernel (6.9 and later, mounts by root) could
	// read a local file by itself.
	NoPassthrough bool

	// Bytes is what statfs reports as the size of the filesystem; 0 means one block.
	Bytes int64

	// Logger receives what concerns the mount as a whole, and panics. Default: slog.Default().
	Logger *slog.Logger
	// OnError is called for each failed request that says something about the data (not for absent names,
	// interrupts and attempts to write). It must return at once and be safe for concurrent use.
	OnError func(Failure)
	// OnRead is called for each answered read of a file, if it is not nil. It must return at once and be safe for
	// concurrent use. It sees all reads, so NoPassthrough is set with it.
	OnRead func(Access)
	// DebugFUSE logs every request and answer.
	DebugFUSE bool

	// writable leaves the mount option ro away, so that tests see that the code alone answers EROFS.
	writable bool
	// byHelper mounts through fusermount3 although root could do without, so that tests see that way too.
	byHelper bool
}

// Access is one read of a file as the kernel asked for it. What the kernel has cached it does not ask for.
type Access struct {
	Time   time.Time // when it was asked
	Path   string    // in the mount, without a leading slash
	Offset int64
	Asked  int // bytes
	Given  int // bytes; fewer than asked only at the end of the file, or with Err
	Took   time.Duration
	Err    error
}

// Failure is one failed request.
type Failure struct {
	Time time.Time
	Op   string // the request: "lookup", "getattr", "open", "read", "readdir", "readlink"
	Path string // the path in the mount, without a leading slash
	Kind fault.Kind
	Err  error
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.OpTimeout, 60*time.Second)
	def(&o.MetadataTimeout, min(30*time.Second, o.OpTimeout))
	def(&o.InterruptGrace, time.Second)
	def(&o.RememberFor, 2*time.Second)
	def(&o.VolatileTimeout, time.Second)
	for _, d := range []*time.Duration{&o.EntryTimeout, &o.AttrTimeout} {
		if *d == 0 {
			*d = longTimeout
		}
		*d = max(*d, 0)
	}
	if o.InodeLimit <= 0 {
		o.InodeLimit = 100_000
	}
	if o.MaxReadAhead <= 0 {
		o.MaxReadAhead = 1 << 20
	}
	if o.OnRead != nil {
		o.NoPassthrough = true
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnError == nil {
		o.OnError = func(Failure) {}
	}
	return o
}

// longTimeout is the life of names and attributes that can only ever mean one thing.
const longTimeout = 24 * time.Hour

// entryTimeout is how long the kernel may keep a name that may come to mean something else, or never does.
func (o Options) entryTimeout(volatile bool) time.Duration {
	if volatile {
		return min(o.VolatileTimeout, o.EntryTimeout)
	}
	return o.EntryTimeout
}

// attrTimeout is entryTimeout for attributes.
func (o Options) attrTimeout(volatile bool) time.Duration {
	if volatile {
		return min(o.VolatileTimeout, o.AttrTimeout)
	}
	return o.AttrTimeout
}
