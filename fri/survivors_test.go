package fri_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// le appends little-endian numbers: 2, 4 or 8 bytes by their Go type.
func le(nums ...any) []byte {
	var b []byte
	for _, n := range nums {
		switch v := n.(type) {
		case uint16:
			b = binary.LittleEndian.AppendUint16(b, v)
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, v)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, v)
		case []byte:
			b = append(b, v...)
		default:
			panic(fmt.Sprintf("%T", n))
		}
	}
	return b
}

type (
	u16 = uint16
	u32 = uint32
	u64 = uint64
)

// TestTreemapStrict feeds survivor bitmaps that violate the format in one place. Lance takes some of them; the message
// then says so.
func TestTreemapStrict(t *testing.T) {
	array := func(key u32, vals ...u16) []byte { // one fragment, one array container
		b := le(key, u32(12346), u32(1), u16(0), u16(len(vals)-1), u32(16))
		for _, v := range vals {
			b = le(b, v)
		}
		return b
	}
	run := func(key u32, card int, pairs ...u16) []byte { // one fragment, one run container
		b := le(key, u32(12347), []byte{1}, u16(0), u16(card-1), u16(len(pairs)/2))
		for _, v := range pairs {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		return b
	}
	tests := []struct {
		name string
		set  []byte
		want string // a part of the message; "" = well-formed, with the rows 0..2 of fragment 1
	}{
		{"array", le(u64(1), array(1, 0, 1, 2)), ""},
		{"run", le(u64(1), run(1, 3, 0, 2)), ""},
		{"count only", le(u64(1)), "claims 1 fragments"},
		{"huge count", le(u64(1)<<60, array(1, 0, 1, 2)), "hold at most"},
		{"count of all ones", le(^u64(0), array(1, 0, 1, 2)), "hold at most"},
		{"fewer fragments than said", le(u64(2), array(1, 0, 1, 2)), "a fragment's bitmap needs 12 bytes, 0 are left"},
		{"keys repeated", le(u64(2), array(1, 0, 1, 2), array(1, 0, 1, 2)), "fragment 1 after fragment 1; fragments must ascend (Lance reads"},
		{"keys unsorted", le(u64(2), array(2, 0, 1, 2), array(1, 0, 1, 2)), "fragment 1 after fragment 2"},
		{"bad cookie", le(u64(1), u32(1), u32(12345), u32(0)), "cookie 0x3039"},
		{"cookie with high bits", le(u64(1), u32(1), u32(12346|1<<16), u32(0)), "cookie 0x1303a"},
		{"too many containers", le(u64(1), u32(1), u32(12346), u32(65537)), "65537 containers"},
		{"header cut", le(u64(1), u32(1), u32(12346), u32(9), make([]byte, 20)), "header needs"},
		{"run header cut", le(u64(1), u32(1), u32(12347|0xFFFF<<16), make([]byte, 20)), "header needs"},
		{"containers unsorted", le(u64(1), u32(1), u32(12346), u32(2), u16(1), u16(0), u16(0), u16(0), u32(24), u32(26), u16(0), u16(0)), "container 0 after container 1"},
		{"containers repeated", le(u64(1), u32(1), u32(12346), u32(2), u16(0), u16(0), u16(0), u16(0), u32(24), u32(26), u16(0), u16(1)), "container 0 after container 0"},
		{"offset table", le(u64(1), u32(1), u32(12346), u32(1), u16(0), u16(2), u32(17), u16(0), u16(1), u16(2)), "offset table puts container 0 at byte"},
		{"array cut", le(u64(1), u32(1), u32(12346), u32(1), u16(0), u16(2), u32(16), u16(0), u16(1)), "container 0 needs 6 bytes, 4 are left"},
		{"array unsorted", le(u64(1), array(1, 0, 2, 1)), "fragment 1: array container 0: value 1 after 2"},
		{"array repeated", le(u64(1), array(1, 0, 1, 1)), "value 1 after 1"},
		{"run empty", le(u64(1), u32(1), u32(12347), []byte{1}, u16(0), u16(0), u16(0)), "has no runs"},
		{"run cut", le(u64(1), u32(1), u32(12347), []byte{1}, u16(0), u16(0), u16(2), u16(0), u16(0)), "needs 10 bytes"},
		{"run without its count", le(u64(1), u32(1), u32(12347), []byte{1}, u16(0), u16(0)), "a run container needs 2 bytes"},
		{"runs touch", le(u64(1), run(1, 3, 0, 0, 1, 1)), "the run from 1 follows one that ends at 0"},
		{"runs overlap", le(u64(1), run(1, 4, 0, 2, 2, 0)), "the run from 2 follows one that ends at 2"},
		{"runs unsorted", le(u64(1), run(1, 2, 5, 0, 0, 0)), "the run from 0 follows"},
		{"run past the end", le(u64(1), run(1, 3, 65535, 2)), "past 65535"},
		{"first run past the end", le(u64(1), run(1, 4, 65530, 9, 0, 0)), "past 65535"},
		{"run cardinality", le(u64(1), run(1, 4, 0, 2)), "hold 3 values, the header says 4"},
		{"too many runs", le(u64(1), run(1, 3, slices.Repeat([]u16{0, 0}, 32769)...)), "has 32769 runs"},
		{"bitmap zero", le(u64(1), u32(1), u32(12346), u32(1), u16(0), u16(4999), u32(16), make([]byte, 8192)), "no bit set"},
		{"bitmap cardinality", le(u64(1), u32(1), u32(12346), u32(1), u16(0), u16(4999), u32(16), make([]byte, 8191), []byte{0x80}), "1 bits are set, the header says 5000"},
		{"bitmap cut", le(u64(1), u32(1), u32(12346), u32(1), u16(0), u16(4999), u32(16), make([]byte, 8191)), "needs 8192 bytes, 8191 are left"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := open(t, 1, transition(source(1, 3, 0), dest(2, 3), ordered(tt.set)))
			tr := h.Transitions[0]
			if tt.want == "" {
				if !tr.Usable() || !tr.Survivors.Checked() {
					t.Fatal(dump(h))
				}
				if got := loadAll(t, tr.Survivors); !slices.Equal(got[1], []u32{0, 1, 2}) {
					t.Errorf("got %v", got)
				}
				return
			}
			i := slices.IndexFunc(h.Errors, func(f fri.Finding) bool { return f.Rule == 17 })
			if tr.Usable() || i < 0 || !strings.Contains(h.Errors[i].Message, tt.want) || !strings.Contains(h.Errors[i].Message, "at byte ") {
				t.Errorf("want a part %q of rule 17, got\n%s", tt.want, dump(h))
			}
		})
	}
}

// loadAll reads every container of a set.
func loadAll(tb testing.TB, s *fri.Survivors) rows {
	tb.Helper()
	got := rows{}
	for _, f := range s.Keys() {
		fs, ok := s.Fragment(f)
		if !ok {
			tb.Fatalf("fragment %d is a key, but not found", f)
		}
		got[f] = loadFragment(tb, s, fs)
		n := uint64(len(got[f]))
		if fs.Rows != n || n > 0 && fs.Max != got[f][n-1] {
			tb.Errorf("fragment %d: got %d rows, max %d; the payload has %d", f, fs.Rows, fs.Max, n)
		}
	}
	return got
}

func loadFragment(tb testing.TB, s *fri.Survivors, fs fri.FragSurvivors) []u32 {
	tb.Helper()
	var out []u32
	var words [1024]uint64
	for _, c := range fs.Containers {
		if err := s.Load(tb.Context(), c, &words); err != nil {
			tb.Fatal(err)
		}
		for i, w := range words {
			for ; w != 0; w &= w - 1 {
				out = append(out, u32(c.Key)<<16|u32(i*64+bits.TrailingZeros64(w)))
			}
		}
	}
	return out
}

// TestLazyPayload damages a payload in a record that is too long to be read at open: the record opens, the damaged
// container fails with its place, all others load.
func TestLazyPayload(t *testing.T) {
	content := bigContent(3, 60, true)
	at := bytes.LastIndex(content, bytes.Repeat([]byte{0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, 2))
	content[at-8*8192] = 0xFF // one bit more, not in a last container
	h := open(t, 1, content)
	tr := h.Transitions[0]
	if !tr.Usable() || tr.Survivors.Checked() {
		t.Fatal(dump(h))
	}
	for _, c := range tr.Checks {
		if c.Name == "survivors_payload" && c.OK != nil {
			t.Errorf("payload check: got %v, want not looked at", *c.OK)
		}
	}
	bad := 0
	var words [1024]uint64
	for _, f := range tr.Survivors.Keys() {
		fs, _ := tr.Survivors.Fragment(f)
		for _, c := range fs.Containers {
			err := tr.Survivors.Load(t.Context(), c, &words)
			if err == nil {
				continue
			}
			bad++
			want := fmt.Sprintf("@%d", tr.Offset+c.Off)
			if !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "64513 bits are set") {
				t.Errorf("got %v, want corrupt at %s", err, want)
			}
		}
	}
	if bad != 1 {
		t.Errorf("%d containers failed, want 1", bad)
	}
	if err := tr.Survivors.Verify(t.Context()); !fault.Is(err, fault.Corrupt) {
		t.Errorf("Verify: got %v, want corrupt", err)
	}
	if err := tr.Survivors.Load(t.Context(), fri.Container{Len: 1 << 30}, &words); !fault.Is(err, fault.Invalid) {
		t.Errorf("a container of 1 GiB: got %v, want invalid", err)
	}
	if err := tr.Survivors.Load(t.Context(), fri.Container{Len: 2}, &words); err == nil {
		t.Error("a container without a kind loads")
	}
}

// setOf draws a set with every kind of container, edges included.
func setOf(t *rapid.T) rows {
	set := rows{}
	for range rapid.IntRange(0, 5).Draw(t, "fragments") {
		f := fri.FragID(rapid.OneOf(rapid.Uint32Range(0, 9), rapid.Uint32Range(0, 0xFFFFFFFD)).Draw(t, "fragment"))
		var offs []u32
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			start := rapid.OneOf(rapid.Uint32Range(0, 70), rapid.Uint32Range(65530, 65542), rapid.Uint32Range(131070, 131074),
				rapid.Uint32Range(0, 1<<20)).Draw(t, "start")
			n := rapid.OneOf(rapid.Uint32Range(1, 5), rapid.Uint32Range(4090, 4100), rapid.Uint32Range(1, 70000)).Draw(t, "n")
			step := rapid.Uint32Range(1, 3).Draw(t, "step")
			for i := range n {
				offs = append(offs, start+i*step)
			}
		}
		slices.Sort(offs)
		set[f] = slices.Compact(offs)
	}
	return set
}

// recordOf is a well-formed tagged record over a set.
func recordOf(tb testing.TB, set rows, runs bool) []byte {
	tb.Helper()
	var b []byte
	total := 0
	for f, offs := range set {
		n, live := uint64(0), uint64(len(offs))
		if live > 0 {
			n = uint64(offs[live-1]) + 1
		}
		b = append(b, source(uint64(f), n, n-live)...)
		total += len(offs)
	}
	if len(set) == 0 {
		b = source(1, 5, 5)
	}
	return transition(b, dest(0xFFFFFFFE, uint64(total)), ordered(treemap(tb, set, runs)))
}

// TestSurvivorsProperty compares the reader with roaring64 and with the set that was written, for any window.
func TestSurvivorsProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set := setOf(rt)
		content := recordOf(t, set, rapid.Bool().Draw(rt, "runs"))
		window := rapid.SampledFrom([]int{0, 1, 16, 100, 5000, 1 << 20}).Draw(rt, "window")
		h, err := fri.Open(t.Context(), bytes.NewReader(content), fri.Options{IndexVersion: 1, FlagReader: true, FlagWriter: true, Window: window})
		if err != nil {
			rt.Fatal(err)
		}
		tr := h.Transitions[0]
		if !tr.Usable() {
			rt.Fatal(dump(h))
		}
		got := loadAll(t, tr.Survivors)
		for f, offs := range set {
			if !slices.Equal(got[f], offs) {
				rt.Fatalf("fragment %d: got %d offsets, want %d", f, len(got[f]), len(offs))
			}
		}
		if len(got) != len(set) {
			rt.Fatalf("got %d fragments, want %d", len(got), len(set))
		}
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// FuzzTreemap opens any bytes as survivors of a record. Whatever is accepted must be what roaring64 reads, and no
// payload may fail later in a record that was checked.
func FuzzTreemap(f *testing.F) {
	f.Add(treemap(f, rows{1: {0, 2, 3}, 2: {0}}, false))
	f.Add(treemap(f, rows{3: span(0, 10)}, true))
	f.Add(treemap(f, rows{0: span(0, 5000), 7: slices.Concat(span(0, 70000), span(100000, 100004))}, true))
	f.Add(treemap(f, rows{0: span(0, 5000)}, false))
	f.Add(le(u64(2), u32(1), u32(12346), u32(0), u32(1), u32(12346), u32(0)))
	f.Add(le(^u64(0), make([]byte, 40)))
	f.Fuzz(func(t *testing.T, set []byte) {
		h := open(t, 0, version(1, group(set, nil, nil)))
		s := h.Transitions[0].Survivors
		if s == nil {
			return
		}
		want := roaring64.New()
		if _, err := want.ReadFrom(bytes.NewReader(set)); err != nil {
			t.Fatalf("roaring64 refuses it: %v", err)
		}
		if s.Total() != want.GetCardinality() {
			t.Fatalf("got %d survivors, want %d", s.Total(), want.GetCardinality())
		}
		if s.Total() > 1<<18 {
			return // a few bytes of runs hold many rows
		}
		n := uint64(0)
		for f, offs := range loadAll(t, s) {
			for _, o := range offs {
				n++
				if !want.Contains(uint64(fri.Addr(f, o))) {
					t.Fatalf("%d:%d is not in the set", f, o)
				}
			}
		}
		if n != s.Total() {
			t.Fatalf("got %d survivors, want %d", n, s.Total())
		}
	})
}
