package nodes

import "context"

// lanceManifest is the manifest of remapped.lance.
type lanceManifest struct {
	base
	n version
}

var (
	_ File   = (*lanceManifest)(nil)
	_ peeker = (*lanceManifest)(nil)
)

// Type implements Node.
func (f *lanceManifest) Type() Type { return TypeFile }

// Class implements File: the history, heads of row maps, and tails of index files are read.
func (f *lanceManifest) Class() Class { return C1 }

func (f *lanceManifest) attr(p *lancePlan) Attr {
	return Attr{Type: TypeFile, Size: int64(len(p.manifest)), Perm: permCopyFile, Mtime: f.mtime, Ino: f.ino}
}

func (f *lanceManifest) peek() (Attr, bool) {
	p, ok := f.n.t.lance.plans.peek(f.n.key())
	if !ok {
		return Attr{}, false
	}
	return f.attr(p), true
}

// Attr implements Node.
func (f *lanceManifest) Attr(ctx context.Context) (Attr, error) {
	p, err := f.n.lancePlan(ctx)
	if err != nil {
		return Attr{}, f.n.t.failed("stat", f.path, err)
	}
	return f.attr(p), nil
}

// Open implements File.
func (f *lanceManifest) Open(ctx context.Context) (Handle, error) {
	p, err := f.n.lancePlan(ctx)
	if err != nil {
		return nil, f.n.t.failed("open", f.path, err)
	}
	return &bytesFile{base: f.base, data: p.manifest}, nil
}
