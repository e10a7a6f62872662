package indexfile

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/spill"
)

// postingsFile is invert.lance of a full-text index without metadata.lance (docs/FORMAT.md, "Index files"), as releases
// up to 0.27 write it, always in file version 2.0. The postings of a token are the rows between two of the offsets in the
// schema metadata: row address, frequency, and perhaps a list of positions. Readers go through them in the order of the
// addresses, and find the length of a document by its address in docs.lance, whose order is arbitrary.
type postingsFile struct {
	numbered
	file        *lancefile.File
	frequencies *lancefile.Column[uint32] // the bits of a float
	positions   *lancefile.Values         // nil: the index has none
}

// The columns of a file of postings, beside the addresses.
const (
	frequencyColumn = "_frequency"
	positionColumn  = "_position"
)

// newPostingsFile opens the columns. A column that is not known cannot be put into another order.
func newPostingsFile(ctx context.Context, f *File) (body, error) {
	if f.lance == nil {
		return nil, notThisForm(f)
	}
	if v := f.lance.Version(); v != lancefile.V20 {
		return nil, fault.New("indexfile.Open", f.Path, fault.Unsupported,
			"postings of a full-text index without metadata.lance in file version %s; no release of Lance writes them but in 2.0", v)
	}
	ids, err := newFlatFile(ctx, f)
	if err != nil {
		return nil, err
	}
	p := &postingsFile{numbered: ids.(*flatFile), file: f.lance}
	for _, field := range f.lance.Fields() {
		if field.GetParentId() >= 0 {
			continue
		}
		switch name, typ := field.GetName(), field.GetLogicalType(); {
		case name == f.rule.columns[0]:
		case name == frequencyColumn && typ == "float":
			column, _, err := f.lance.Column(name)
			if err != nil {
				return nil, err
			}
			if p.frequencies, err = lancefile.OpenColumn[uint32](ctx, f.lance, column); err != nil {
				return nil, err
			}
		case name == positionColumn && typ == "list":
			if p.positions, err = lancefile.OpenValues(ctx, f.lance, name); err != nil {
				return nil, err
			}
		default:
			return nil, fault.New("indexfile.Open", f.Path, fault.Unsupported,
				"column %q of type %q is not known, and postings have to be put into another order", name, typ)
		}
	}
	if p.frequencies == nil {
		return nil, fault.New("indexfile.Open", f.Path, fault.Corrupt, "there is no column %q of floats", frequencyColumn)
	}
	return p, nil
}

func (p *postingsFile) places() []string { return []string{"_rowid"} }

func (p *postingsFile) scan(_ context.Context, from Position) (Cursor, error) {
	return scanRows(p, from), nil
}

// starts reads the rows with which the postings of the tokens begin, and adds the number of rows.
func (p *postingsFile) starts() ([]uint64, error) {
	v, ok := p.file.Metadata("offsets")
	if !ok {
		return nil, fault.New("indexfile.Postings", "", fault.Corrupt, "the schema metadata has no offsets, which tell the postings of the tokens apart")
	}
	var starts []uint64
	if err := json.Unmarshal(v, &starts); err != nil {
		return nil, fault.New("indexfile.Postings", "", fault.Corrupt, "the offsets in the schema metadata: %w", err)
	}
	starts = append(starts, p.count())
	last := uint64(0)
	for i, s := range starts {
		if s < last || i == 0 && s > 0 {
			return nil, fault.New("indexfile.Postings", "", fault.Corrupt,
				"the postings of token %d begin with row %d, after row %d; they must ascend from row 0 to the %d rows of the file", i, s, last, p.count())
		}
		last = s
	}
	return starts, nil
}

// remap writes all columns anew, in one pass: the postings of each token in the order of their new addresses, those that
// are gone last. Numbers of postings and offsets stay. A file in which no address changes is the stored one.
func (p *postingsFile) remap(ctx context.Context, r Resolver, o Options) (Content, error) {
	if o.SpillAbove <= 0 {
		o.SpillAbove = 8 << 20
	}
	sink := spill.New(o.SpillDir, o.SpillAbove)
	z, err := p.translate(ctx, r, o, sink)
	if err != nil {
		sink.Close() //nolint:errcheck // what it held is of no use
		return nil, err
	}
	return &setsContent{synthesised{z}, sink}, nil
}

func (p *postingsFile) translate(ctx context.Context, r Resolver, o Options, sink *spill.Buffer) (*lancefile.Synth, error) {
	if p.count() > math.MaxUint32 {
		return nil, fault.New("indexfile.Postings", "", fault.TooLarge, "%d postings; the limit is 2^32", p.count())
	}
	starts, err := p.starts()
	if err != nil {
		return nil, err
	}
	w := postingsWriter{file: p, r: r, options: o}
	names := []string{p.places()[0], frequencyColumn}
	if p.positions != nil {
		names = append(names, positionColumn)
	}
	for i, name := range names {
		if w.columns[i], err = lancefile.NewArrayWriter(p.file, name, sink); err != nil {
			return nil, err
		}
	}
	if err := w.all(ctx, starts); err != nil {
		return nil, err
	}
	var e lancefile.Edit
	for i := range names {
		pages, err := w.columns[i].Finish()
		if err != nil {
			return nil, err
		}
		if w.changed {
			e.Cells = append(e.Cells, pages)
		}
	}
	return lancefile.Synthesise(ctx, p.file, e)
}

// readPositions gives the positions of some rows.
func (p *postingsFile) readPositions(ctx context.Context, from, n uint64) (*lancefile.Array, error) {
	a, err := p.positions.Read(ctx, from, n)
	if err != nil {
		return nil, err
	}
	if a.Validity != nil || a.Child == nil || a.Child.Validity != nil || a.Child.Width == 0 {
		return nil, fault.New("indexfile.Postings", "", fault.Unsupported, "nulls among the positions of rows %d to %d, as no release writes them", from, from+n-1)
	}
	if size := a.Child.Width * a.Offsets[a.Len]; size > len(a.Child.Fixed) {
		return nil, fmt.Errorf("positions of rows %d to %d end at byte %d of %d", from, from+n-1, size, len(a.Child.Fixed))
	}
	return a, nil
}
