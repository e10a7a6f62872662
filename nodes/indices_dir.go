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
			out.add(s.dir, segmentAt{n, name, i}.dir(l, rel+"/"+s.dir))
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

// segmentAt names a segment of a version: the directory of its logical index, and its place there.
type segmentAt struct {
	n     version
	index string
	i     int
}

func (at segmentAt) get(ctx context.Context) (*loaded, *segment, error) {
	l, _, s, err := at.n.segment(ctx, at.index, at.i)
	return l, s, err
}

// dir is indices/<name>/<uuid>/, at rel below the version.
func (at segmentAt) dir(l *loaded, rel string) *dir {
	n := at.n
	return &dir{base: n.base(rel, n.key(), l.mtime), list: func(ctx context.Context) (*listing, error) {
		l, s, err := at.get(ctx)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		key := at.key("")
		out.add("segment.json", &docFile{base: n.base(rel+"/segment.json", key, l.mtime), t: n.t, class: C1,
			build: func(ctx context.Context) (*document, error) { return at.segmentJSON(ctx) }})
		var es problems
		if why := storedImpossible(s.ix); why != nil {
			out.leaveOut(&es, "stored", why)
		} else {
			out.add("stored", at.storedDir(l, rel+"/stored"))
		}
		if !systemEntry(s.ix) {
			if why := at.remapRefused(ctx, l, s); why != nil {
				out.leaveOut(&es, "remapped", why)
				out.leaveOut(&es, "scan", why)
			} else {
				out.add("remapped", at.remappedDir(l, rel+"/remapped", 0, 0))
				if addressDomain(l.m, s.ix) {
					out.add("scan", at.scanDir(l, rel+"/scan"))
				}
			}
		}
		if len(es) > 0 {
			out.add("ERROR.json", n.errorFile(rel, l.mtime, es))
		}
		return out, nil
	}}
}

// scanDir is scan/ of a segment that stores addresses.
func (at segmentAt) scanDir(l *loaded, rel string) *dir {
	return &dir{base: at.n.base(rel, at.n.key(), l.mtime), list: func(ctx context.Context) (*listing, error) {
		l, _, err := at.get(ctx)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		out.add("addresses.csv", at.addressesFile(l, rel+"/addresses.csv"))
		key := at.key("")
		out.add("summary.json", &docFile{base: at.n.base(rel+"/summary.json", key, l.mtime), t: at.n.t, class: C2,
			build: func(ctx context.Context) (*document, error) { return at.summaryJSON(ctx, key) }})
		return out, nil
	}}
}
