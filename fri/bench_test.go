package fri_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fri"
)

// bigTreemap is a set of full-size bitmap containers: frags fragments of conts containers each, one row in 64 missing.
func bigTreemap(frags, conts int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(frags))
	payload := make([]byte, 8192)
	for i := range payload {
		payload[i] = 0xFF
	}
	for i := 0; i < len(payload); i += 8 {
		payload[i] = 0xFE
	}
	card := 65536 - 1024
	for f := range frags {
		b = binary.LittleEndian.AppendUint32(b, uint32(f))
		b = binary.LittleEndian.AppendUint32(b, 12346)
		b = binary.LittleEndian.AppendUint32(b, uint32(conts))
		for c := range conts {
			b = binary.LittleEndian.AppendUint16(b, uint16(c))
			b = binary.LittleEndian.AppendUint16(b, uint16(card-1))
		}
		for c := range conts {
			b = binary.LittleEndian.AppendUint32(b, uint32(8+8*conts+8192*c))
		}
		for range conts {
			b = append(b, payload...)
		}
	}
	return b
}

// bigContent is a legacy or tagged content with one record over such a treemap.
func bigContent(frags, conts int, tagged bool) []byte {
	tm := bigTreemap(frags, conts)
	rows := uint64(conts) * 65536
	deleted := uint64(conts) * 1024
	var rec []byte
	if tagged {
		for f := range frags {
			rec = append(rec, source(uint64(f), rows, deleted)...)
		}
		rec = append(rec, dest(1<<20, uint64(frags)*(rows-deleted))...)
		rec = append(rec, ordered(tm)...)
		return lenField(2, rec)
	}
	rec = protowire.AppendBytes(protowire.AppendTag(rec, 1, protowire.BytesType), tm)
	for f := range frags {
		rec = append(rec, lenField(2, digest(uint64(f), rows, deleted))...)
	}
	rec = append(rec, lenField(3, digest(1<<20, uint64(frags)*(rows-deleted), 0))...)
	return lenField(1, intField(1, 7), lenField(3, rec))
}

// BenchmarkOpenHeaders opens a record of 125 MB (1e9 rows, 16,000 containers) that lies in a local file.
// The bar is 5 ms (docs/DESIGN.md, "Bars").
func BenchmarkOpenHeaders(b *testing.B) {
	for _, tagged := range []bool{false, true} {
		name := "legacy"
		var iv int32
		if tagged {
			name, iv = "tagged", 1
		}
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "details.binpb")
			if err := os.WriteFile(path, bigContent(1000, 16, tagged), 0o600); err != nil {
				b.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			st, err := f.Stat()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				h, err := fri.Open(b.Context(), sized{f, st.Size()}, fri.Options{IndexVersion: iv, FlagReader: tagged, FlagWriter: tagged})
				if err != nil {
					b.Fatal(err)
				}
				if !h.Transitions[0].Usable() {
					b.Fatal(dump(h))
				}
			}
		})
	}
}

// sized is a file with its size.
type sized struct {
	*os.File
	size int64
}

func (s sized) Size() int64 { return s.size }

// BenchmarkLoad reads and checks one container of each kind.
func BenchmarkLoad(b *testing.B) {
	gaps := make([]uint32, 0, 4000)
	for i := range uint32(4000) {
		gaps = append(gaps, i*16)
	}
	for _, bb := range []struct {
		name string
		rows []uint32
		runs bool
	}{
		{"bitmap", append(span(0, 30000), 65535), false},
		{"array", gaps, false},
		{"run", append(span(0, 30000), span(40000, 65536)...), true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			n := uint64(len(bb.rows))
			h := open(b, 1, transition(source(1, 65536, 65536-n), dest(2, n), ordered(treemap(b, rows{1: bb.rows}, bb.runs))))
			s := h.Transitions[0].Survivors
			fs, _ := s.Fragment(1)
			var words [1024]uint64
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Load(b.Context(), fs.Containers[0], &words); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpenShared opens a legacy content of 31 records whose records are all in the cache.
func BenchmarkOpenShared(b *testing.B) {
	var content []byte
	for i := range uint64(31) {
		f := fri.FragID(i)
		content = append(content, version(i, group(treemap(b, rows{f: span(0, 1000)}, true),
			[]fri.Digest{{ID: i, PhysicalRows: 1000}}, []fri.Digest{{ID: i + 1, PhysicalRows: 1000}}))...)
	}
	opt := fri.Options{Cache: fri.NewCache(1 << 20)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fri.Open(b.Context(), bytes.NewReader(content), opt); err != nil {
			b.Fatal(err)
		}
	}
}
