package nodes

import "context"

// indicesDir is versions/<N>/indices/: one directory per logical index, system entries included.
func (n version) indicesDir(l *loaded) *dir {
	return &dir{
		base: n.base("indices", n.key(), l.mtime),
		list: func(ctx context.Context) (*listing, error) {
			l, err := n.load(ctx)
			if err != nil {
				return nil, err
			}
			out := &listing{members: make([]member, 0, len(l.logical))}
			for _, li := range l.logical {
				out.add(li.dir, n.indexDir(l, li))
			}
			return out, nil
		},
		find: func(ctx context.Context, name string) (Node, error) {
			l, err := n.load(ctx)
			if err != nil {
				return nil, err
			}
			li := l.index(name)
			if li == nil {
				return nil, notFound(n.path+"/indices", name)
			}
			return n.indexDir(l, li), nil
		},
	}
}

// indexDir is indices/<name>/.
func (n version) indexDir(l *loaded, li *logicalIndex) *dir {
	rel, name := "indices/"+li.dir, li.dir
	return &dir{base: n.base(rel, n.key(), l.mtime), list: func(ctx context.Context) (*listing, error) {
		l, err := n.load(ctx)
		if err != nil {
			return nil, err
		}
		li := l.index(name)
		if li == nil {
			return nil, notFound(n.path+"/indices", name)
		}
		out := &listing{}
		out.add("index.json", n.doc(l, rel+"/index.json", C1, func(ctx context.Context) (*document, error) {
			return n.indexJSON(ctx, name)
		}))
		for i, s := range li.segments {
			out.add(s.dir, n.segmentDir(l, rel+"/"+s.dir, name, i))
		}
		return out, nil
	}}
}

// segment returns one segment of the version, by the directory of its logical index and its place there.
func (n version) segment(ctx context.Context, index string, i int) (*loaded, *logicalIndex, *segment, error) {
	l, err := n.load(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	li := l.index(index)
	if li == nil || i >= len(li.segments) {
		return nil, nil, nil, notFound(n.path+"/indices", index)
	}
	return l, li, li.segments[i], nil
}

// segmentDir is indices/<name>/<uuid>/.
func (n version) segmentDir(l *loaded, rel, index string, i int) *dir {
	return &dir{base: n.base(rel, n.key(), l.mtime), list: func(ctx context.Context) (*listing, error) {
		l, _, s, err := n.segment(ctx, index, i)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		out.add("segment.json", n.doc(l, rel+"/segment.json", C1, func(ctx context.Context) (*document, error) {
			return n.segmentJSON(ctx, index, i)
		}))
		if why := storedImpossible(s.ix); why != nil {
			var es problems
			out.leaveOut(&es, "stored", why)
			out.add("ERROR.json", n.errorFile(rel, l.mtime, es))
			return out, nil
		}
		out.add("stored", n.storedDir(l, rel+"/stored", "", index, i))
		return out, nil
	}}
}
