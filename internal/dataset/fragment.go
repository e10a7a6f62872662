package dataset

import (
	"bytes"
	"fmt"
	"iter"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/pb"
)

const (
	// maxRows is the largest row count of a fragment: its offsets are 32 bits.
	maxRows = 1 << 32
	// maxFragmentWarnings bounds how many warnings about single fragments a manifest has.
	maxFragmentWarnings = 100
)

// Fragment is one fragment of a manifest, in manifest order. Its message stays encoded: a manifest may list hundreds of
// thousands of fragments with hundreds of columns each, and most of what is asked about them is in the fields here.
type Fragment struct {
	ID           fri.FragID
	Duplicate    bool    // another fragment of the manifest has the same id
	PhysicalRows *uint64 // nil: not known (old writers, or an impossible number)
	DeletedRows  *uint64 // nil: not known; 0 without a deletion file
	Invalid      string  // why the id is none ("" = it is one); ID is meaningless then

	message []byte // the encoded pb.DataFragment; known to decode
}

// The fields of DataFragment and DataFile that are read without decoding the message.
const (
	fragmentID           = 1
	fragmentFile         = 2
	fragmentDeletionFile = 3
	fragmentPhysicalRows = 4
	fragmentOverlay      = 11
	dataFileSize         = 6
	deletionFileRows     = 4
)

// Message decodes the fragment's message, unknown fields included. It is made anew by each call.
func (f *Fragment) Message() *pb.DataFragment {
	p := &pb.DataFragment{}
	_ = proto.Unmarshal(f.message, p) // it was checked when the manifest was read
	return p
}

// Encoded returns the bytes of the fragment's message. They must not be changed.
func (f *Fragment) Encoded() []byte { return f.message }

// Same reports whether two fragments have the same message, byte for byte.
func (f *Fragment) Same(g *Fragment) bool { return bytes.Equal(f.message, g.message) }

// RecordedID is the id as the manifest has it, which may be no fragment id (Invalid).
func (f *Fragment) RecordedID() uint64 { return number(f.message, fragmentID) }

// RecordedRows is physical_rows as the manifest has it, which may be 0 for unknown, or impossible.
func (f *Fragment) RecordedRows() uint64 { return number(f.message, fragmentPhysicalRows) }

// Files decodes the data files one after the other, with their positions in the list; overlays are not among them.
func (f *Fragment) Files() iter.Seq2[int, *pb.DataFile] {
	return func(yield func(int, *pb.DataFile) bool) {
		n := 0
		for v := range f.messages(fragmentFile) {
			d := &pb.DataFile{}
			_ = proto.Unmarshal(v, d) // checked with the fragment
			if !yield(n, d) {
				return
			}
			n++
		}
	}
}

// File decodes data file i, an empty message where there is none.
func (f *Fragment) File(i int) *pb.DataFile {
	d := &pb.DataFile{}
	f.nth(fragmentFile, i, d)
	return d
}

// Overlay decodes overlay i, an empty message where there is none.
func (f *Fragment) Overlay(i int) *pb.DataOverlayFile {
	o := &pb.DataOverlayFile{}
	f.nth(fragmentOverlay, i, o)
	return o
}

func (f *Fragment) nth(field protowire.Number, i int, p proto.Message) {
	for v := range f.messages(field) {
		if i--; i < 0 {
			_ = proto.Unmarshal(v, p) // checked with the fragment
			return
		}
	}
}

// NumFiles counts the data files.
func (f *Fragment) NumFiles() int { return f.count(fragmentFile) }

// Overlays decodes the overlay files one after the other, with their positions in the list.
func (f *Fragment) Overlays() iter.Seq2[int, *pb.DataOverlayFile] {
	return func(yield func(int, *pb.DataOverlayFile) bool) {
		n := 0
		for v := range f.messages(fragmentOverlay) {
			o := &pb.DataOverlayFile{}
			_ = proto.Unmarshal(v, o) // checked with the fragment
			if !yield(n, o) {
				return
			}
			n++
		}
	}
}

// ExternalFiles are the paths, below the dataset's root, of the row id and version sequences that old writers put into
// files of their own.
func (f *Fragment) ExternalFiles() []string {
	for w := (wire{rest: f.message}); w.next(); {
		if w.typ == protowire.BytesType && (w.num == 6 || w.num == 8 || w.num == 10) {
			var out []string
			p := f.Message()
			for _, x := range []*pb.ExternalFile{p.GetExternalRowIds(), p.GetExternalLastUpdatedAtVersions(), p.GetExternalCreatedAtVersions()} {
				if x != nil {
					out = append(out, x.GetPath())
				}
			}
			return out
		}
	}
	return nil
}

// NumOverlays counts the overlay files.
func (f *Fragment) NumOverlays() int { return f.count(fragmentOverlay) }

func (f *Fragment) count(field protowire.Number) int {
	n := 0
	for range f.messages(field) {
		n++
	}
	return n
}

// HasDeletionFile reports whether the fragment has a deletion file.
func (f *Fragment) HasDeletionFile() bool { return f.count(fragmentDeletionFile) > 0 }

// DeletionFile decodes the fragment's deletion file, nil if it has none.
func (f *Fragment) DeletionFile() *pb.DeletionFile {
	var d *pb.DeletionFile
	for v := range f.messages(fragmentDeletionFile) { // a field that comes twice is merged
		if d == nil {
			d = &pb.DeletionFile{}
		}
		_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(v, d) // checked with the fragment
	}
	return d
}

// LiveRows is physical less deleted rows, nil if either is unknown.
func (f *Fragment) LiveRows() *uint64 {
	if f.PhysicalRows == nil || f.DeletedRows == nil {
		return nil
	}
	n := *f.PhysicalRows - *f.DeletedRows
	return &n
}

// Bytes is the sum of the recorded sizes of the data files, nil if one is unknown.
func (f *Fragment) Bytes() *uint64 {
	var n uint64
	for v := range f.messages(fragmentFile) {
		size := number(v, dataFileSize)
		if size == 0 || n+size < n {
			return nil
		}
		n += size
	}
	return &n
}

// messages are the encoded values of a field of messages.
func (f *Fragment) messages(field protowire.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for w := (wire{rest: f.message}); w.next(); {
			if w.num == field && w.typ == protowire.BytesType && !yield(w.bytes()) {
				return
			}
		}
	}
}

// makeFragments wraps the encoded fragments of a manifest, finds duplicates and impossible numbers, and returns what
// there is to warn about.
func makeFragments(list [][]byte) (all []*Fragment, live map[fri.FragID]*Fragment, warnings []string) {
	flat := make([]Fragment, len(list))
	counts := make([]uint64, 2*len(list)) // what PhysicalRows and DeletedRows point to
	all = make([]*Fragment, len(list))
	live = make(map[fri.FragID]*Fragment, len(list))
	silent := 0
	warn := func(format string, args ...any) {
		if len(warnings) >= maxFragmentWarnings {
			silent++
			return
		}
		warnings = append(warnings, fmt.Sprintf(format, args...))
	}
	for i, message := range list {
		f := &flat[i]
		all[i] = f
		f.message = message
		if id := f.read(counts[2*i:2*i+2], warn); id >= math.MaxUint32 {
			*f = Fragment{message: message, Invalid: fmt.Sprintf("fragment id %d is no 32-bit id", id)}
			warn("%s", f.Invalid)
			continue
		}
		if first, ok := live[f.ID]; ok {
			if !first.Duplicate {
				warn("fragment %d is listed more than once", f.ID)
			}
			first.Duplicate, f.Duplicate = true, true
			continue
		}
		live[f.ID] = f
	}
	if silent > 0 {
		warnings = append(warnings, fmt.Sprintf("%d more warnings about fragments are not listed", silent))
	}
	return all, live, warnings
}

// read takes over id and row counts as far as they are known and possible, and returns the id. counts is where the two
// counts are put.
func (f *Fragment) read(counts []uint64, warn func(string, ...any)) (id uint64) {
	var rows, deleted uint64
	deletions := false
	for w := (wire{rest: f.message}); w.next(); {
		switch {
		case w.num == fragmentID && w.typ == protowire.VarintType:
			id = w.number()
		case w.num == fragmentPhysicalRows && w.typ == protowire.VarintType:
			rows = w.number()
		case w.num == fragmentDeletionFile && w.typ == protowire.BytesType:
			deletions = true
			for d := (wire{rest: w.bytes()}); d.next(); {
				if d.num == deletionFileRows && d.typ == protowire.VarintType {
					deleted = d.number()
				}
			}
		}
	}
	if id >= math.MaxUint32 {
		return id
	}
	f.ID = fri.FragID(id)
	if rows > maxRows {
		warn("fragment %d: physical_rows %d is more than 2^32: taken as unknown", f.ID, rows)
	} else if rows > 0 {
		counts[0] = rows
		f.PhysicalRows = &counts[0]
	}
	switch {
	case !deletions:
		f.DeletedRows = &counts[1]
	case deleted == 0:
	case deleted > maxRows, f.PhysicalRows != nil && deleted > rows:
		warn("fragment %d: %d deleted rows are more than the fragment has: taken as unknown", f.ID, deleted)
	default:
		counts[1] = deleted
		f.DeletedRows = &counts[1]
	}
	return id
}
