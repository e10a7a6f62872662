package mapcsv

import (
	"context"
	"sort"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// addressesHeader is the first line of addresses.csv.
const addressesHeader = "file,row,old_row_addr,outcome,new_row_addr,covered\n"

// NoRow is the row of an address that belongs to no row of its file: the field is empty.
const NoRow = ^uint64(0)

// MaxAddressName is the longest name that the file column shows, in bytes.
const MaxAddressName = 400

// AddressFile is one file of a segment, whose stored addresses addresses.csv lists.
type AddressFile struct {
	Name string // as the column shows it: at most MaxAddressName bytes, none of them a comma, quote or line end
	// Scan walks over the addresses from a position on; the zero position is the start.
	Scan func(ctx context.Context, from AddressPosition) (AddressCursor, error)
}

// AddressPosition is a place in the order of a file's addresses: a member of the set of a row.
type AddressPosition struct {
	Row, Member uint64
}

// AddressBatch is consecutive stored addresses, and what became of them. All slices have the same length.
type AddressBatch struct {
	Rows    []uint64 // NoRow where an address belongs to no row
	Addrs   []fri.RowAddr
	New     []fri.RowAddr // where the outcome has an address
	Outcome []translate.Outcome
	Covered []bool
}

// AddressCursor walks over the addresses of one file, the same ones each time.
type AddressCursor interface {
	// Next fills b with the next addresses, at most limit; none at the end.
	Next(ctx context.Context, b *AddressBatch, limit int) error
	Position() AddressPosition // of the next address
	Close() error
}

const (
	// pointLines is how many lines lie between two places that can be gone to, at least.
	pointLines = 1 << 14
	// addressPiece is how many addresses a reader takes first; one that goes on takes more and more, up to pointLines.
	addressPiece = 1 << 9
)

// Addresses returns addresses.csv of the files of a segment: a line for each stored address, in the order of files and
// their addresses. Its size takes one pass over all addresses, made by Size once; ctx ends it. Nothing is kept per line.
//
// A file that cannot be read fails the whole: a list that leaves addresses out would look complete.
func Addresses(files []AddressFile) (File, error) {
	for _, f := range files {
		if f.Name == "" || len(f.Name) > MaxAddressName || strings.ContainsAny(f.Name, ",\"\r\n") {
			return nil, fault.New("mapcsv.Addresses", f.Name, fault.Invalid, "the name cannot stand in a line")
		}
	}
	return newAddresses(files, pointLines), nil
}

func newAddresses(files []AddressFile, stride int) *text {
	t := newText(addressesHeader, &addressBody{files: files, stride: stride})
	t.idle = 4
	return t
}

// addressPoint is a place that can be gone to.
type addressPoint struct {
	file int
	pos  AddressPosition
	line uint64 // lines before
	byte uint64 // bytes before, without the header
}

// addressIndex is what the pass finds. The last point is the end.
type addressIndex struct {
	points []addressPoint
}

// addressBody is the text of addresses.csv.
type addressBody struct {
	files  []AddressFile
	stride int // pointLines
	index  lazy[addressIndex]
}

func (b *addressBody) load(ctx context.Context) (*addressIndex, error) {
	return b.index.get(ctx, b.measure)
}

func (b *addressBody) length(ctx context.Context) (int64, error) {
	x, err := b.load(ctx)
	if err != nil {
		return 0, err
	}
	return int64(x.points[len(x.points)-1].byte), nil
}

// measure makes the pass. Each file with addresses starts with a point.
func (b *addressBody) measure(ctx context.Context) (*addressIndex, error) {
	x := &addressIndex{}
	var at addressPoint
	var batch AddressBatch
	for at.file < len(b.files) {
		if err := b.measureFile(ctx, x, &at, &batch); err != nil {
			return nil, fault.Wrap("mapcsv.Addresses", b.files[at.file].Name, err)
		}
		at.file, at.pos = at.file+1, AddressPosition{}
	}
	x.points = append(x.points, at)
	return x, nil
}

func (b *addressBody) measureFile(ctx context.Context, x *addressIndex, at *addressPoint, batch *AddressBatch) error {
	c, err := b.files[at.file].Scan(ctx, AddressPosition{})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it was only read
	name := len(b.files[at.file].Name)
	for last := -1; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		at.pos = c.Position()
		if err := c.Next(ctx, batch, b.stride); err != nil {
			return err
		}
		if len(batch.Addrs) == 0 {
			return nil
		}
		if last < 0 || at.line-x.points[last].line >= uint64(b.stride) {
			last = len(x.points)
			x.points = append(x.points, *at)
		}
		for i := range batch.Addrs {
			at.byte += uint64(name + batch.width(i))
		}
		at.line += uint64(len(batch.Addrs))
		if at.byte > maxBytes {
			return fault.New("mapcsv.Addresses", "", fault.TooLarge, "the addresses take more than 2^62 bytes")
		}
	}
}

// width is the length of line i without the name.
func (b *AddressBatch) width(i int) int {
	n := width(uint64(b.Addrs[i])) + len(b.Outcome[i].String()) + len(",,,,,true\n")
	if b.Rows[i] != NoRow {
		n += width(b.Rows[i])
	}
	if b.Outcome[i].HasAddress() {
		n += width(uint64(b.New[i]))
	}
	if !b.Covered[i] {
		n++
	}
	return n
}

// open goes to the point before a byte, and from there line by line.
func (b *addressBody) open(ctx context.Context, off int64) (lineReader, int, error) {
	x, err := b.load(ctx)
	if err != nil {
		return nil, 0, err
	}
	at := uint64(off)
	k := sort.Search(len(x.points), func(k int) bool { return x.points[k].byte > at }) - 1
	r := &addressReader{b: b, x: x, next: k}
	for {
		if r.done == len(r.batch.Addrs) {
			if more, err := r.more(ctx); err != nil || !more {
				r.release()
				if err == nil {
					err = fault.New("mapcsv.seek", "", fault.Corrupt, "byte %d lies in no line", off)
				}
				return nil, 0, err
			}
		}
		n := uint64(len(r.name) + r.batch.width(r.done))
		if at < r.byte+n {
			return r, int(at - r.byte), nil
		}
		r.byte += n
		r.done++
	}
}

// addressReader writes the lines of addresses.csv.
type addressReader struct {
	b     *addressBody
	x     *addressIndex
	next  int // point that is reached next
	c     AddressCursor
	file  int // that c walks over
	name  string
	piece int
	line  uint64 // lines before the end of batch
	byte  uint64 // bytes before line done of batch
	batch AddressBatch
	done  int // lines of batch that are written
}

// release lets go of the open file.
func (r *addressReader) release() {
	if r.c != nil {
		_ = r.c.Close() // it was only read
		r.c = nil
	}
}

// more takes the next addresses, and reports whether there are any. What it finds at a point must be what the pass
// found there.
func (r *addressReader) more(ctx context.Context) (bool, error) {
	if r.next == len(r.x.points) {
		return false, nil
	}
	if p := &r.x.points[r.next]; r.c == nil || r.line == p.line {
		if err := r.pass(ctx, p); err != nil {
			return false, err
		}
		if r.next++; r.next == len(r.x.points) {
			r.release()
			return false, nil
		}
	}
	r.piece = min(max(4*r.piece, addressPiece), r.b.stride)
	left := r.x.points[r.next].line - r.line
	r.done = 0
	if err := r.c.Next(ctx, &r.batch, int(min(uint64(r.piece), left))); err != nil {
		return false, fault.Wrap("mapcsv.Addresses", r.name, err)
	}
	if len(r.batch.Addrs) == 0 {
		return false, r.changed()
	}
	r.line += uint64(len(r.batch.Addrs))
	return true, nil
}

// pass comes to a point: within the open file, at the start of the next, or anywhere where none is open yet.
func (r *addressReader) pass(ctx context.Context, p *addressPoint) error {
	if r.c != nil {
		switch {
		case r.byte != p.byte:
			return r.changed()
		case p.file == r.file:
			return nil
		}
		r.release()
	}
	r.file, r.line, r.byte = p.file, p.line, p.byte
	if p.file == len(r.b.files) {
		return nil
	}
	f := &r.b.files[p.file]
	c, err := f.Scan(ctx, p.pos)
	if err != nil {
		return fault.Wrap("mapcsv.Addresses", f.Name, err)
	}
	r.c, r.name = c, f.Name
	return nil
}

func (r *addressReader) changed() error {
	return fault.New("mapcsv.Addresses", r.name, fault.Stale, "what the addresses are made from has changed since the size was told")
}

func (r *addressReader) fill(ctx context.Context, dst []byte) (int, error) {
	pos := 0
	for pos <= len(dst)-room {
		if r.done == len(r.batch.Addrs) {
			if more, err := r.more(ctx); err != nil {
				r.release()
				return 0, err
			} else if !more {
				break
			}
		}
		from := pos
		for b := &r.batch; r.done < len(b.Addrs) && pos <= len(dst)-room; r.done++ {
			pos += b.put(dst[pos:], r.name, r.done)
		}
		r.byte += uint64(pos - from)
	}
	return pos, nil
}

// put writes line i, for which there is room.
func (b *AddressBatch) put(dst []byte, name string, i int) int {
	d := append(dst[:0], name...)
	d = append(d, ',')
	if b.Rows[i] != NoRow {
		d = appendUint(d, b.Rows[i])
	}
	d = appendUint(append(d, ','), uint64(b.Addrs[i]))
	d = append(append(append(d, ','), b.Outcome[i].String()...), ',')
	if b.Outcome[i].HasAddress() {
		d = appendUint(d, uint64(b.New[i]))
	}
	if b.Covered[i] {
		return len(append(d, ",true\n"...))
	}
	return len(append(d, ",false\n"...))
}
