package nodes

import (
	"context"
	"time"
)

// Class is the cost class of a file: what it takes to know its size and to read it (docs/DESIGN.md, "Cost classes").
type Class uint8

// The cost classes. The zero value is unknown and treated like C2.
const (
	ClassUnknown Class = iota
	C0                 // from the manifest, or closed form
	C1                 // history, row-map headers and counts grid, small metadata files
	C2                 // rows, labels, index payloads, or one request per data file
)

// Type is the type of a node.
type Type uint8

// The node types.
const (
	TypeUnknown Type = iota
	TypeDir
	TypeFile
	TypeLink
)

// Attr is what stat shows. Size is exact: the bytes that reading gives. Perm holds the permission bits only (0444,
// 0555; 0644 and 0755 below remapped.lance). Mtime serves as ctime and atime too.
type Attr struct {
	Type  Type
	Size  int64
	Perm  uint32
	Mtime time.Time
	Ino   uint64
}

// Entry is one line of a directory listing. Attr is nil where the attributes are not at hand: a listing never works
// to find them (docs/DESIGN.md, "Listing").
type Entry struct {
	Name string
	Type Type
	Ino  uint64
	Attr *Attr
}

// Node is a member of the tree: a Dir, a File or a Link. Nodes are values without kernel state and are safe for
// concurrent use. Ino is a hash of dataset, path and content key: never 0, stable over remounts, and another number
// when a name comes to mean other content (docs/DESIGN.md, "Identity").
type Node interface {
	Type() Type
	Ino() uint64
	// Attr returns the exact attributes. For a C2 file this may wait for a background job up to the operation
	// timeout (fault.TimedOut then).
	Attr(ctx context.Context) (Attr, error)
}

// Dir is a directory. Entries come in byte order of their names. Volatile reports whether names in it may come to
// mean another node (short entry timeout and notification in the FUSE layer).
type Dir interface {
	Node
	Entries(ctx context.Context) ([]Entry, error)
	// Lookup finds one name, listed or lookup-only. Errors: fault.NotFound, or the kind of what makes the name
	// impossible for this version.
	Lookup(ctx context.Context, name string) (Node, error)
	Volatile() bool
}

// File is a regular file whose content never changes (a live file is frozen in the node that Lookup returned).
type File interface {
	Node
	Class() Class
	// Open checks that the content can be had (a file of the store is re-stat-ed: another identity gives
	// fault.Stale) and returns a handle for reading.
	Open(ctx context.Context) (Handle, error)
}

// Name is a name in a directory of the tree ("" = the root). An empty Name.Name stands for all names in the directory, "."
// for the directory's own attributes, and */a/b for a/b in each directory below it.
type Name struct{ Dir, Name string }

// Transient is implemented by a node whose looking up does something, such as .frifs/refresh: the name must be looked up
// again each time.
type Transient interface{ Transient() bool }

// Handle reads an open file. ReadAt fills p unless the end of the file is reached (then n < len(p) and a nil error);
// it is safe for concurrent use.
type Handle interface {
	ReadAt(ctx context.Context, p []byte, off int64) (n int, err error)
	Close() error
}

// LocalFile is implemented by a File or a Handle whose bytes may be exactly those of a file of the operating system:
// stored files, data files, files that are passed on as they are. The file at path holds them from byte off on. ok is
// false where they do not lie on this machine. The path is where they were found; whoever uses it makes sure that what
// lies there is what Open has verified.
type LocalFile interface {
	LocalPath(ctx context.Context) (path string, off int64, ok bool)
}

// Link is a symbolic link; Target is relative to the directory that holds it.
type Link interface {
	Node
	Target(ctx context.Context) (string, error)
}
