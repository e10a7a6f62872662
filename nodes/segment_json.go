package nodes

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
)

const (
	// maxLooked is into how many files of a segment segment.json looks; of more it says what their names tell.
	maxLooked = 256
	// lookWorkers is how many files are looked into at a time.
	lookWorkers = 16
	// maxColumns is how many columns of a file are shown.
	maxColumns = 256
)

// fileFacts is what a look into a stored file tells: its tail, and the pages of the column with addresses.
type fileFacts struct {
	version   string
	rows      uint64
	columns   []indexfile.Column // the first maxColumns
	addresses []string
	layout    []indexfile.Fact // of the segment as a whole, where that was asked for
}

// lookedInto is a file of a segment, as segment.json shows it.
type lookedInto struct {
	scannedFile
	facts *fileFacts // nil where it was not looked into
}

// look looks into a stored file, once for all versions that have it.
func (at segmentAt) look(ctx context.Context, seg *indexfile.Segment, uri string, f storedFile) (*fileFacts, error) {
	key := strings.Join([]string{uri, f.path, strconv.FormatInt(f.size, 10), seg.Type, seg.Domain, at.key(f.path)[len(at.n.key()):]}, "\x00")
	return at.n.t.facts.get(ctx, key, func(ctx context.Context) (*fileFacts, int64, error) {
		file, err := seg.Open(ctx, f.path)
		if err != nil {
			return nil, 0, err
		}
		defer file.Close()
		out := &fileFacts{version: file.Version, rows: file.Rows, columns: file.Columns, addresses: file.Addresses}
		out.columns = append([]indexfile.Column(nil), out.columns[:min(len(out.columns), maxColumns)]...)
		cost := int64(256)
		for _, c := range out.columns {
			cost += int64(len(c.Name) + len(c.Type) + 32)
		}
		return out, cost, nil
	})
}

// describe tells what is particular about the layout of a segment, once for all versions that have it.
func (at segmentAt) describe(ctx context.Context, l *loaded, s *segment, seg *indexfile.Segment) ([]indexfile.Fact, error) {
	if len(seg.Files) == 0 {
		return nil, nil
	}
	dir, err := at.n.t.ds.IndexDir(ctx, l.m, s.ix)
	if err != nil {
		return nil, err
	}
	key := strings.Join([]string{"layout", dir.URI(), seg.Type, seg.Target, strconv.Itoa(len(seg.Files)), at.key("")[len(at.n.key()):]}, "\x00")
	f, err := at.n.t.facts.get(ctx, key, func(ctx context.Context) (*fileFacts, int64, error) {
		facts, err := seg.Describe(ctx)
		return &fileFacts{layout: facts}, 256 * int64(1+len(facts)), err
	})
	if err != nil {
		return nil, err
	}
	return f.layout, nil
}

// lookAll looks into the files of a segment. A file whose role is not known, or that cannot be read, has its error; one
// that may pass fails the whole.
func (at segmentAt) lookAll(ctx context.Context, l *loaded, s *segment) (*indexfile.Segment, []lookedInto, error) {
	files, err := at.n.storedFiles(ctx, l, s.ix)
	if err != nil {
		return at.layout(l, s, nil), nil, err
	}
	seg := at.layout(l, s, files)
	out := make([]lookedInto, len(files))
	var todo []int
	for i, f := range files {
		how, err := seg.How(f.path)
		out[i].scannedFile = scannedFile{f, how, err}
		if err == nil && len(todo) < maxLooked {
			todo = append(todo, i)
		}
	}
	if len(todo) == 0 {
		return seg, out, nil
	}
	dir, err := at.n.t.ds.IndexDir(ctx, l.m, s.ix)
	if err != nil {
		return seg, out, err
	}
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(lookWorkers, len(todo)) {
		wg.Go(func() {
			for i := range next {
				out[i].facts, out[i].err = at.look(ctx, seg, dir.URI(), out[i].storedFile)
			}
		})
	}
	for _, i := range todo {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, i := range todo {
		if passing(out[i].err) {
			return seg, nil, out[i].err
		}
	}
	return seg, out, nil
}

// segmentJSON is indices/<name>/<uuid>/segment.json: the entry, decoded, unknown fields included, what it means, how its
// files are laid out, and what remapped/ does with them.
func (at segmentAt) segmentJSON(ctx context.Context) (*document, error) {
	l, h, err := at.n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	_, li, s, err := at.n.segment(ctx, at.index, at.i)
	if err != nil {
		return nil, err
	}
	f := factsOf(l, h, li).segments[at.i]
	var seg *indexfile.Segment
	var files []lookedInto
	var facts []indexfile.Fact
	var factsErr error
	filesErr := storedImpossible(s.ix)
	refused := filesErr
	if filesErr == nil {
		if seg, files, filesErr = at.lookAll(ctx, l, s); passing(filesErr) {
			return nil, filesErr
		}
		if facts, factsErr = at.describe(ctx, l, s, seg); passing(factsErr) {
			return nil, factsErr
		}
		refused = at.remapRefused(ctx, l, s)
	} else {
		seg = at.layout(l, s, nil)
	}
	var dir dataset.IndexDir
	dirErr := s.ix.UUIDErr
	if dirErr == nil {
		if dir, dirErr = at.n.t.ds.IndexDir(ctx, l.m, s.ix); passing(dirErr) {
			return nil, dirErr
		}
	}
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("manifest_version").Uint(at.n.number())
		e.K("entry").Obj(func() { e.indexMembers(l, s.ix) })
		e.K("system").Bool(systemEntry(s.ix))
		e.K("domain").Str(f.domain)
		e.K("domain_reason").Str(f.why)
		e.K("uuid_error").Err(s.ix.UUIDErr)
		e.K("layout").layout(seg, facts, factsErr)
		e.K("remapped").remapped(s, seg, refused)
		e.K("files_error").Err(filesErr)
		e.K("directory").directory(dir, dirErr)
	})
	j.ArrayOf("files", len(files), func(e *enc, i int) { e.lookedInto(&files[i]) })
	j.Object("coverage")
	j.segmentFacts(h.h, &f)
	j.End()
	return j.Done(), nil
}

// directory writes where the files of a segment are; null where no base has them.
func (e *enc) directory(dir dataset.IndexDir, err error) {
	if err != nil {
		e.Null()
		return
	}
	e.Obj(func() {
		e.K("uri").Str(dir.URI())
		e.K("base_id").OptUint32(dir.Base.ID)
		e.K("note").OptStr(dir.Note())
	})
}

// layout writes how the files of a segment are laid out.
func (e *enc) layout(seg *indexfile.Segment, facts []indexfile.Fact, err error) {
	e.Obj(func() {
		e.K("type").OptStr(seg.Type)
		e.K("target").OptStr(seg.Target)
		e.K("inferred").Bool(seg.Inferred)
		e.K("index_version").Int(int64(seg.Version))
		e.K("newer_than_lance_14_0_2").Bool(seg.TooNew())
		e.K("facts").Obj(func() {
			said := map[string]bool{}
			for _, f := range facts {
				if !said[f.Key] {
					said[f.Key] = true
					e.K(f.Key).Str(f.Value)
				}
			}
		})
		e.K("facts_error").Err(err)
	})
}

// remapped writes whether there is remapped/, and why.
func (e *enc) remapped(s *segment, seg *indexfile.Segment, refused error) {
	e.Obj(func() {
		served := refused == nil && !systemEntry(s.ix)
		e.K("served").Bool(served)
		e.K("why")
		switch {
		case refused != nil:
			e.Str(refused.Error())
		case !served:
			e.Str("a system index: its files hold no rows")
		case seg.Domain == indexfile.DomainRowID:
			e.Str("the index stores row ids, which stay: the files are the stored ones")
		default:
			e.Str("each stored row address is translated to where its row is in this version")
		}
	})
}

func (e *enc) lookedInto(f *lookedInto) {
	e.Obj(func() {
		e.K("path").Str(f.path)
		e.K("bytes").Int(f.size)
		e.K("how").Str(f.how.String())
		e.K("file_version")
		if f.facts == nil {
			e.Null()
			e.K("rows").Null()
			e.K("columns").Null()
			e.K("addresses").Null()
		} else {
			e.OptStr(f.facts.version)
			e.K("rows").Uint(f.facts.rows)
			e.K("columns").Arr(func() {
				for _, c := range f.facts.columns {
					e.Item().Obj(func() {
						e.K("name").Str(c.Name)
						e.K("type").Str(c.Type)
					})
				}
			})
			e.K("addresses").Strs(f.facts.addresses)
		}
		e.K("error").Err(f.err)
	})
}
