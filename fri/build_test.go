package fri_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fri"
)

// The builders make wire bytes by hand, so that tests can break every rule.

func lenField(num protowire.Number, b ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), slices.Concat(b...))
}

func intField(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

// digest is the message of id, physical rows, deleted rows; zero fields are left out, as writers do.
func digest(id, rows, deleted uint64) []byte {
	var b []byte
	for i, v := range []uint64{id, rows, deleted} {
		if v != 0 {
			b = append(b, intField(protowire.Number(i+1), v)...)
		}
	}
	return b
}

func source(id, rows, deleted uint64) []byte { return lenField(1, digest(id, rows, deleted)) }
func dest(id, rows uint64) []byte            { return lenField(2, digest(id, rows, 0)) }

// ordered is a mapping with the given treemap bytes; partition one with a row map.
func ordered(treemap []byte) []byte { return lenField(3, lenField(1, treemap)) }

func partition(mapID string, size uint64) []byte {
	return lenField(4, lenField(1, []byte(mapID)), intField(2, size))
}

func transition(parts ...[]byte) []byte { return lenField(2, parts...) }

// group and version are legacy; sources are old fragments (field 2 of a group), destinations new ones (field 3).
func group(treemap []byte, old, fresh []fri.Digest) []byte {
	b := lenField(1, treemap)
	for _, d := range old {
		b = append(b, lenField(2, digest(d.ID, d.PhysicalRows, d.DeletedRows))...)
	}
	for _, d := range fresh {
		b = append(b, lenField(3, digest(d.ID, d.PhysicalRows, d.DeletedRows))...)
	}
	return lenField(3, b)
}

func version(stamp uint64, groups ...[]byte) []byte {
	return lenField(1, append([][]byte{intField(1, stamp)}, groups...)...)
}

// rows is a set of offsets per fragment.
type rows map[fri.FragID][]uint32

func span(from, to uint32) []uint32 {
	var s []uint32
	for i := from; i < to; i++ {
		s = append(s, i)
	}
	return s
}

// treemap serialises a set; runs says whether containers may be runs.
func treemap(tb testing.TB, set rows, runs bool) []byte {
	tb.Helper()
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(set)))
	for _, f := range slices.Sorted(func(yield func(fri.FragID) bool) {
		for f := range set {
			if !yield(f) {
				return
			}
		}
	}) {
		bm := roaring.BitmapOf(set[f]...)
		if runs {
			bm.RunOptimize()
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(f))
		var buf bytes.Buffer
		if _, err := bm.WriteTo(&buf); err != nil {
			tb.Fatal(err)
		}
		b = append(b, buf.Bytes()...)
	}
	return b
}

func open(tb testing.TB, indexVersion int32, content ...[]byte) *fri.History {
	tb.Helper()
	h, err := fri.Open(tb.Context(), bytes.NewReader(slices.Concat(content...)), fri.Options{
		IndexVersion: indexVersion, FlagReader: indexVersion == 1, FlagWriter: indexVersion == 1,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return h
}
