package lancefile

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fault"
)

// grammar is a form of page description.
type grammar uint8

const (
	grammarUnknown grammar = iota
	grammarArray           // 2.0
	grammarZip             // 2.1, 2.2, older 2.3
	grammarPlanar          // newer 2.3
)

// walkPages calls page for each page description in a ColumnMetadata message, which stands at byte base, and returns
// the column's own buffers.
func walkPages(meta []byte, base uint64, page func(off uint64, m pageMeta) error) (own []span, err error) {
	var m pageMeta // of the column's own buffers
	for b := meta; len(b) > 0; {
		off := base + uint64(len(meta)-len(b))
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, corrupt(off, "column metadata does not decode: %w", protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return nil, corrupt(off, "column metadata does not decode: %w", protowire.ParseError(size))
		}
		v := b[n : n+size]
		b = b[n+size:]
		switch {
		case num == 2 && typ == protowire.BytesType:
			v, _ = protowire.ConsumeBytes(v)
			p, err := parsePage(v)
			if err == nil && len(p.offsets) != len(p.sizes) {
				err = fmt.Errorf("%d buffer offsets and %d buffer sizes", len(p.offsets), len(p.sizes))
			}
			if err != nil {
				return nil, corrupt(off, "page does not decode: %w", err)
			}
			if err := page(off, p); err != nil {
				return nil, err
			}
		case num == 3:
			err = integers(&m.offsets, typ, v)
		case num == 4:
			err = integers(&m.sizes, typ, v)
		}
		if err != nil {
			return nil, corrupt(off, "column buffers do not decode: %w", err)
		}
	}
	if len(m.offsets) != len(m.sizes) {
		return nil, corrupt(base, "column with %d buffer offsets and %d buffer sizes", len(m.offsets), len(m.sizes))
	}
	return m.spans(), nil
}

func (m pageMeta) spans() []span {
	s := make([]span, len(m.offsets))
	for i := range s {
		s[i] = span{m.offsets[i], m.sizes[i]}
	}
	return s
}

// eachColumn calls visit with the metadata of each column, read in one go. Entries must not share bytes.
func (f *File) eachColumn(ctx context.Context, visit func(i int, meta []byte) error) error {
	order := slices.Clone(f.columns)
	slices.SortFunc(order, compareSpans)
	for i := 1; i < len(order); i++ {
		if order[i-1].end() > order[i].off {
			return corrupt(order[i].off, "the metadata of two columns overlaps")
		}
	}
	region, err := f.src.slice(ctx, f.foot.columnMeta, f.foot.cmo-f.foot.columnMeta)
	if err != nil {
		return err
	}
	for i, c := range f.columns {
		if err := visit(i, region[c.off-f.foot.columnMeta:][:c.n]); err != nil {
			return err
		}
	}
	return nil
}

// grammars collects the page grammars that a file uses.
type grammars struct {
	file *File
	last []byte // the encoding message looked at last: those of a column are mostly equal
	seen grammar
}

// add looks at a page description that stands at byte off. Only in a file of version 2.3 does it decide anything.
func (g *grammars) add(off uint64, m pageMeta) error {
	if g.file.foot.version != V23 || (g.last != nil && string(g.last) == string(m.encoding)) {
		return nil
	}
	url, err := encodingURL(m.encoding)
	if err != nil {
		return corrupt(off, "page encoding does not decode: %w", err)
	}
	var k grammar
	switch base(url) {
	case url21:
		k = grammarZip
	case urlPlanar:
		k = grammarPlanar
	default:
		return fault.New("lancefile.Synthesise", at(off), fault.Unsupported, "page of type %q in a file of version 2.3", url)
	}
	if g.seen != grammarUnknown && g.seen != k {
		return fault.New("lancefile.Synthesise", at(off), fault.Unsupported,
			"the file mixes the two page grammars of version 2.3 (%s and %s); nothing can be added to it", url21, urlPlanar)
	}
	g.seen, g.last = k, m.encoding
	return nil
}

// result is the grammar for new pages. A 2.3 file without a page has no rows and gets none.
func (g *grammars) result() grammar {
	switch g.file.foot.version {
	case V20:
		return grammarArray
	case V23:
		return g.seen
	}
	return grammarZip
}

// pageGrammar is the grammar in which pages may be added.
func (f *File) pageGrammar(ctx context.Context) (grammar, error) {
	g := grammars{file: f}
	if f.foot.version == V23 {
		err := f.eachColumn(ctx, func(i int, meta []byte) error {
			_, err := walkPages(meta, f.columns[i].off, g.add)
			return err
		})
		if err != nil {
			return grammarUnknown, err
		}
	}
	return g.result(), nil
}

// survey reads all page descriptions: what stays must not lie where the file changes.
func (p *plan) survey(ctx context.Context) error {
	f := p.file
	g := grammars{file: f}
	kept := slices.Clone(f.buffers)
	err := f.eachColumn(ctx, func(i int, meta []byte) error {
		var rows uint64
		flat, cells, items := p.flats[i], p.cells[i], f.countsItems(i)
		own, err := walkPages(meta, f.columns[i].off, func(off uint64, m pageMeta) error {
			if err := g.add(off, m); err != nil {
				return err
			}
			if flat != nil && f.foot.version == V20 {
				if err := p.overlayPage(flat, rows, off, m); err != nil {
					return err
				}
			} else if flat == nil && cells == nil {
				if err := p.keep(&kept, i, off, m.spans()); err != nil {
					return err
				}
			}
			if items {
				return nil
			}
			if rows += m.length; rows > f.Rows() || m.length > f.Rows() {
				return corrupt(off, "the pages of column %d hold more than the %d rows of the file", i, f.Rows())
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case flat == nil && cells == nil:
			return p.keep(&kept, i, f.columns[i].off, own)
		case !items && rows != f.Rows():
			return corrupt(f.columns[i].off, "the pages of column %d hold %d rows, the file %d", i, rows, f.Rows())
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.grammar = g.result()
	return p.checkClashes(kept)
}

// keep checks buffers of a column that stays and, where bytes of the original are to be written over, remembers them.
func (p *plan) keep(kept *[]span, column int, off uint64, buffers []span) error {
	f := p.file
	for _, b := range buffers {
		if b.off > f.src.size || b.n > f.src.size-b.off {
			return corrupt(off, "a buffer of column %d (%d bytes at %d) lies outside the file of %d bytes", column, b.n, b.off, f.src.size)
		}
		if b.n > 0 && p.appends && b.end() > f.buffers[0].off {
			return behindSchema(off, fmt.Sprintf("a buffer of column %d", column), b, f.buffers[0].off)
		}
		if b.n > 0 {
			p.keptTo = max(p.keptTo, b.end())
		}
		if len(p.flats) > 0 && f.foot.version == V20 {
			*kept = append(*kept, b)
		}
	}
	return nil
}

func behindSchema(off uint64, what string, b span, schema uint64) error {
	return fault.New("lancefile.Synthesise", at(off), fault.Unsupported,
		"%s (%d bytes at %d) does not lie before the schema at %d; files laid out like that cannot be changed", what, b.n, b.off, schema)
}

// overlayPage plans to write over a page of version 2.0, which stands in the file from row first on.
func (p *plan) overlayPage(flat *Flat, first, off uint64, m pageMeta) error {
	refuse := func(err error) error {
		return fault.New("lancefile.Synthesise", at(off), fault.Unsupported,
			"column %d of a file of version 2.0 has a page that is not a plain array of 64-bit values without nulls: %w", flat.Column, err)
	}
	e := p.last
	if e == nil || string(m.encoding) != string(p.lastBytes) {
		var err error
		if e, err = parseEncoding(m.encoding); err != nil {
			return refuse(err)
		}
		p.last, p.lastBytes = e, m.encoding
	}
	values := e.array.GetNullable().GetNoNulls().GetValues()
	if values == nil {
		return refuse(fmt.Errorf("page of type %q", e.url))
	}
	info := pageInfo{length: m.length, buffers: m.spans()}
	k, err := flatBuffer(&info, values, 64)
	if err != nil {
		return refuse(err)
	}
	s := span{info.buffers[k].off, 8 * m.length}
	limit := p.file.foot.columnMeta
	if s.off > limit || s.n > limit-s.off {
		return corrupt(off, "page of %d bytes at %d does not lie before the column metadata at %d", s.n, s.off, limit)
	}
	if schema := p.file.buffers[0].off; p.appends && s.end() > schema {
		return behindSchema(off, fmt.Sprintf("a page of column %d", flat.Column), s, schema)
	}
	if m.length > 0 {
		p.out.overlays = append(p.out.overlays, overlay{s, p.rows(flat, first)})
	}
	return nil
}

// checkClashes refuses to write over bytes that are kept, or over the same bytes twice.
func (p *plan) checkClashes(kept []span) error {
	if len(p.out.overlays) == 0 {
		return nil
	}
	type claim struct {
		span
		over bool
	}
	var all []claim
	for _, s := range kept {
		if s.n > 0 {
			all = append(all, claim{s, false})
		}
	}
	for _, o := range p.out.overlays {
		all = append(all, claim{o.span, true})
	}
	slices.SortFunc(all, func(a, b claim) int { return compareSpans(a.span, b.span) })
	var end, overEnd uint64
	for _, c := range all {
		if (c.over && c.off < end) || c.off < overEnd {
			return corrupt(c.off, "a replaced page shares bytes with another page or global buffer at %d", c.off)
		}
		if end = max(end, c.end()); c.over {
			overEnd = max(overEnd, c.end())
		}
	}
	return nil
}
