package indexfile

import (
	"context"
	"math"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
)

// zonesFile is a file with a range of one fragment's rows in each row (docs/FORMAT.md, "Index files"): zone maps and
// bloom filters. Three columns say where the zone is; the rows where the indexed value is null may stand in a global
// buffer.
type zonesFile struct {
	file    *lancefile.File
	names   []string
	columns [3]zoneColumn // fragment id, first row, number of rows
	nulls   *globalSet    // nil = none
}

// zone is the rows start ... start+rows-1 of a fragment; start+rows is at most 2^32.
type zone struct {
	frag        fri.FragID
	start, rows uint64
}

// newZonesFile opens the three columns that the file's rule names.
func newZonesFile(ctx context.Context, f *File) (body, error) {
	if f.lance == nil {
		return nil, notThisForm(f)
	}
	z := &zonesFile{file: f.lance, names: f.rule.columns}
	for i, name := range z.names {
		if err := z.columns[i].open(ctx, f.lance, name); err != nil {
			return nil, err
		}
	}
	var err error
	z.nulls, err = findGlobalSet(f, "null_bitmap")
	return z, err
}

func (z *zonesFile) places() []string {
	if z.nulls == nil {
		return z.names
	}
	return append(append([]string(nil), z.names...), z.nulls.place())
}

// zoneColumn is a column of u64, or of u32 as documents have it: all releases that make zones, from 0.35.0 on, write u64.
type zoneColumn struct {
	number int
	wide   *lancefile.Column[uint64]
	narrow *lancefile.Column[uint32]
}

func (c *zoneColumn) open(ctx context.Context, f *lancefile.File, name string) error {
	number, field, err := f.Column(name)
	if fault.KindOf(err) == fault.NotFound {
		if _, _, old := f.Column("zone_size"); old == nil && name == zoneColumns()[2] {
			return fault.New("indexfile.Open", "", fault.Unsupported,
				"a zone map of the first form (seen: pylance 0.35.0), with a column zone_size; later releases of Lance do not read it either: create the index anew")
		}
		return fault.New("indexfile.Open", "", fault.Corrupt, "there is no column %q, which tells where the zones are", name)
	}
	if err != nil {
		return err
	}
	c.number = number
	switch typ := field.GetLogicalType(); typ {
	case "uint64":
		c.wide, err = lancefile.OpenColumn[uint64](ctx, f, number)
	case "uint32":
		c.narrow, err = lancefile.OpenColumn[uint32](ctx, f, number)
	default:
		return fault.New("indexfile.Open", "", fault.Unsupported, "column %q is of type %q, not uint64 or uint32", name, typ)
	}
	return err
}

func (c *zoneColumn) read(ctx context.Context, from uint64, dst []uint64) error {
	if c.wide != nil {
		_, err := c.wide.Read(ctx, from, dst, nil)
		return err
	}
	narrow := make([]uint32, len(dst))
	if _, err := c.narrow.Read(ctx, from, narrow, nil); err != nil {
		return err
	}
	for i, v := range narrow {
		dst[i] = uint64(v)
	}
	return nil
}

// read gives the zones of rows [from, from+len(dst)), which must be rows of the file.
func (z *zonesFile) read(ctx context.Context, from uint64, dst []zone) error {
	buf := make([]uint64, 3*len(dst))
	ids, starts, rows := buf[:len(dst)], buf[len(dst):2*len(dst)], buf[2*len(dst):]
	for i, values := range [3][]uint64{ids, starts, rows} {
		if err := z.columns[i].read(ctx, from, values); err != nil {
			return err
		}
	}
	for i := range dst {
		if ids[i] > math.MaxUint32 || starts[i] > 1<<32 || rows[i] > 1<<32-starts[i] {
			return fault.New("indexfile.Zones", "", fault.Corrupt, "row %d: %d rows from %d on of fragment %d; a fragment has at most 2^32",
				from+uint64(i), rows[i], starts[i], ids[i])
		}
		dst[i] = zone{fri.FragID(ids[i]), starts[i], rows[i]}
	}
	return nil
}

// each visits all zones in file order.
func (z *zonesFile) each(ctx context.Context, visit func(row uint64, x zone) error) error {
	n := z.file.Rows()
	buf := make([]zone, min(n, 8192))
	for from := uint64(0); from < n; {
		b := buf[:min(n-from, uint64(len(buf)))]
		if err := z.read(ctx, from, b); err != nil {
			return err
		}
		for i, x := range b {
			if err := visit(from+uint64(i), x); err != nil {
				return err
			}
		}
		from += uint64(len(b))
	}
	return nil
}

// scan lists the first row of each zone, and then the rows of the null set.
func (z *zonesFile) scan(_ context.Context, from Position) (Cursor, error) {
	c := &zoneCursor{z: z, next: min(from.Row, z.file.Rows()), nulls: globalCursor{g: z.nulls}}
	if from.Row == NoRow {
		c.nulls.member = from.Member
	}
	return c, nil
}

type zoneCursor struct {
	z     *zonesFile
	next  uint64
	nulls globalCursor
	buf   []zone
}

func (c *zoneCursor) Position() Position {
	if c.next == c.z.file.Rows() {
		return c.nulls.Position()
	}
	return Position{Row: c.next}
}

// Unknown implements Partial.
func (c *zoneCursor) Unknown() []fri.FragID { return c.nulls.Unknown() }

func (c *zoneCursor) Next(ctx context.Context, b *Batch, limit int) error {
	n := int(min(c.z.file.Rows()-c.next, uint64(max(limit, 0)), 8192))
	if n == 0 {
		return c.nulls.Next(ctx, b, limit)
	}
	b.Rows, b.Addrs = b.Rows[:0], b.Addrs[:0]
	if cap(c.buf) < n {
		c.buf = make([]zone, n)
	}
	zones := c.buf[:n]
	if err := c.z.read(ctx, c.next, zones); err != nil {
		return err
	}
	for i, x := range zones {
		if x.start == 1<<32 {
			return fault.New("indexfile.Zones", "", fault.Corrupt, "row %d: a zone that starts at row 2^32 of its fragment", c.next+uint64(i))
		}
		b.Rows = append(b.Rows, c.next+uint64(i))
		b.Addrs = append(b.Addrs, fri.Addr(x.frag, uint32(x.start)))
	}
	c.next += uint64(n)
	return nil
}
