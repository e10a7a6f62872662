package fri_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// order renders the record numbers in the order of application.
func order(h *fri.History) string {
	var out []string
	for _, t := range h.Transitions {
		s := fmt.Sprint(t.Record)
		if !t.Usable() {
			s += "!"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestOrder(t *testing.T) {
	unknown := transition(source(90, 1, 0), intField(9, 1))
	fanIn := transition(source(2, 2, 0), source(4, 2, 0), dest(5, 4), ordered(treemap(t, rows{2: span(0, 2), 4: span(0, 2)}, true)))
	tests := []struct {
		name    string
		content [][]byte
		want    string
	}{
		{"in order", [][]byte{compact(t, 1, 2, 2), compact(t, 2, 3, 2)}, "1 2"},
		{"reversed", [][]byte{compact(t, 2, 3, 2), compact(t, 1, 2, 2)}, "2 1"},
		{"independent ones keep the wire order", [][]byte{compact(t, 7, 8, 2), compact(t, 1, 2, 2), compact(t, 5, 6, 2)}, "1 2 3"},
		{"first in, first out", [][]byte{compact(t, 1, 2, 2), compact(t, 2, 3, 2), compact(t, 7, 8, 2)}, "1 3 2"},
		{"fan in", [][]byte{fanIn, compact(t, 3, 4, 2), compact(t, 1, 2, 2)}, "2 3 1"},
		{"unusable ones stay", [][]byte{compact(t, 3, 4, 2), unknown, compact(t, 2, 3, 2), compact(t, 1, 2, 2)}, "4 2! 3 1"},
		{"a spoilt producer orders nothing", [][]byte{compact(t, 2, 3, 2), transition(source(1, 2, 0), dest(2, 2))}, "1 2!"},
	}
	for _, tt := range tests {
		h := open(t, 1, tt.content...)
		if got := order(h); got != tt.want {
			t.Errorf("%s: got %s, want %s\n%s", tt.name, got, tt.want, dump(h))
		}
	}
}

// TestGraphProperty compares rules 22 and 23 with a naive reading of them, on random histories of few fragments.
func TestGraphProperty(t *testing.T) {
	type end struct{ id, rows uint64 }
	type rec struct{ src, dst []end }
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(rt, "records")
		recs := make([]rec, n)
		var content []byte
		for i := range recs {
			ids := rapid.SliceOfNDistinct(rapid.Uint64Range(0, 14), 1, 4, rapid.ID[uint64]).Draw(rt, "ids")
			cut := rapid.IntRange(1, len(ids)).Draw(rt, "cut")
			set := rows{}
			var b []byte
			live := uint64(0)
			for _, id := range ids[:cut] { // one row survives of each source, of one or two
				e := end{id, rapid.SampledFrom([]uint64{1, 1, 1, 2}).Draw(rt, "rows")}
				recs[i].src = append(recs[i].src, e)
				keep := uint64(0)
				if cut < len(ids) {
					keep = 1
					set[fri.FragID(id)] = []uint32{0}
				}
				live += keep
				b = append(b, source(id, e.rows, e.rows-keep)...)
			}
			for j, id := range ids[cut:] { // one row each, the last takes what is left
				k := min(live, 1)
				if j == len(ids)-cut-1 {
					k = live
				}
				live -= k
				recs[i].dst = append(recs[i].dst, end{id, k})
				b = append(b, dest(id, k)...)
			}
			content = append(content, transition(b, ordered(treemap(t, set, false)))...)
		}
		find := func(es []end, id uint64) int { return slices.IndexFunc(es, func(e end) bool { return e.id == id }) }
		spoilt := make([]bool, n)
		reach := make([][]bool, n)
		for i, a := range recs {
			reach[i] = make([]bool, n)
			for j, b := range recs {
				for _, d := range a.dst {
					spoilt[i] = spoilt[i] || i != j && find(b.dst, d.id) >= 0
					if k := find(b.src, d.id); k >= 0 {
						reach[i][j] = true
						if b.src[k].rows != d.rows {
							spoilt[i], spoilt[j] = true, true
						}
					}
				}
				for _, s := range a.src {
					spoilt[i] = spoilt[i] || i != j && find(b.src, s.id) >= 0
				}
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		h := open(t, 1, content)
		checkPromises(t, h)
		for _, tr := range h.Transitions {
			i := tr.Record - 1
			// Where two records produce or consume one fragment, rule 22 names them all and rule 23 is not asked.
			want := spoilt[i] || reach[i][i]
			if tr.Usable() == want {
				rt.Fatalf("record %d: usable %v, want %v\n%s", tr.Record, tr.Usable(), !want, dump(h))
			}
		}
	})
}

func TestLegacySteps(t *testing.T) {
	one := func(from, to uint64) []byte {
		return group(treemap(t, rows{fri.FragID(from): {0}}, false), []fri.Digest{{ID: from, PhysicalRows: 1}}, []fri.Digest{{ID: to, PhysicalRows: 1}})
	}
	h := open(t, 0, version(5, one(1, 2), one(3, 4)), compact(t, 60, 61, 2), version(9), version(4, one(2, 6)))
	if got, want := fmt.Sprint(h.Steps), "[[0 1] [] [3]]"; got != want {
		t.Errorf("steps: got %s, want %s", got, want)
	}
	last := h.Transitions[3]
	if *last.Legacy != (fri.LegacyRef{DatasetVersion: 4, Version: 3, Group: 1}) || last.Record != 4 || last.Seq != 4 {
		t.Errorf("last record: %+v %+v", last, last.Legacy)
	}
	if h.Transitions[2].Usable() || len(h.Claimants(60)) != 1 || !h.Unresolvable(60) || h.Unresolvable(6) {
		t.Errorf("the transition under index_version 0 is not what it should be\n%s", dump(h))
	}
	if p := h.Producer(2); len(p) != 1 || p[0].Record != 1 || len(h.Consumer(2)) != 1 || h.Consumer(99) != nil {
		t.Errorf("fragment 2: produced by %v, consumed by %v", p, h.Consumer(2))
	}
	if lifted := open(t, 1, version(5, one(1, 2))); lifted.Steps != nil {
		t.Errorf("a tagged history has steps: %v", lifted.Steps)
	}
}

func TestWarnings(t *testing.T) {
	many := make([][]byte, 0, 65540)
	for i := range uint64(65536) {
		many = append(many, dest(100+i, 1))
	}
	wide := transition(source(1, 65536, 0), slices.Concat(many...), partition("0f8fad5b-d9cb-469f-a165-70867728950e", 9))
	good := compact(t, 1, 2, 2)
	tests := []struct {
		name    string
		opt     fri.Options
		content []byte
		want    string // a part of the only warning; "" = no warning
	}{
		{"tagged with flag", fri.Options{IndexVersion: 1, FlagReader: true, FlagWriter: true}, good, ""},
		{"tagged without flag", fri.Options{IndexVersion: 1}, good, "flag missing: index_version is 1"},
		{"flag in the reader word only", fri.Options{IndexVersion: 1, FlagReader: true}, good, "set in the reader word of the manifest and missing in the writer"},
		{"flag in the writer word only", fri.Options{FlagWriter: true}, nil, "set in the writer word"},
		{"legacy with flag", fri.Options{FlagReader: true, FlagWriter: true}, nil, ""},
		{"65,536 destinations", fri.Options{IndexVersion: 1, FlagReader: true, FlagWriter: true}, wide, "65536 destinations: Lance cannot list any index"},
	}
	for _, tt := range tests {
		h, err := fri.Open(t.Context(), bytes.NewReader(tt.content), tt.opt)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case len(h.Errors) > 0 || h.Broken != nil:
			t.Errorf("%s: %v", tt.name, h.Errors)
		case tt.want == "" && len(h.Warnings) > 0:
			t.Errorf("%s: got %v, want none", tt.name, h.Warnings)
		case tt.want != "" && (len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0].Message, tt.want)):
			t.Errorf("%s: got %v, want %q", tt.name, h.Warnings, tt.want)
		}
	}
	h := open(t, 1, good)
	h.AddWarning("odd")
	if got := h.Warnings[0].String(); got != "odd" {
		t.Errorf("AddWarning: got %q", got)
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	set := treemap(t, rows{1: span(0, 2)}, false)
	tagged := transition(lenField(1, digest(1, 2, 0), intField(9, 300)), dest(2, 2), lenField(3, lenField(1, set), lenField(8, []byte("abc"))))
	h := open(t, 1, tagged, intField(7, 5), lenField(1, intField(1, 3), intField(2, 1)))
	if !h.Transitions[0].Usable() {
		t.Fatal(dump(h))
	}
	var got []string
	for _, u := range slices.Concat(h.Transitions[0].Unknown, h.Unknown) {
		got = append(got, fmt.Sprintf("%s %d/%d %x", u.Path, u.Number, u.WireType, u.Value))
	}
	want := []string{"sources[0] 9/0 ac02", "ordered_compaction 8/2 616263", "content 7/0 05", "version 2/0 01"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	u := h.Transitions[0].Unknown[1]
	if at := h.Transitions[0].Offset + u.Offset; string(tagged[at:at+u.Length]) != "abc" {
		t.Errorf("offset %d, length %d do not name the value", u.Offset, u.Length)
	}
	long := open(t, 1, transition(source(1, 2, 0), dest(2, 2), lenField(3, lenField(1, set), lenField(8, make([]byte, 5000)))))
	if u := long.Transitions[0].Unknown[0]; u.Value != nil || u.Length != 5000 {
		t.Errorf("a long value: %d bytes kept, length %d", len(u.Value), u.Length)
	}
}

func TestChecks(t *testing.T) {
	mark := func(h *fri.History) string {
		var out []string
		for _, c := range h.Transitions[0].Checks {
			s := c.Name
			switch {
			case c.OK == nil:
				s += "?"
			case !*c.OK:
				s += "!"
			}
			out = append(out, s)
		}
		return strings.Join(out, " ")
	}
	const id = "0f8fad5b-d9cb-469f-a165-70867728950e"
	set := treemap(t, rows{1: span(0, 2)}, false)
	for _, tt := range []struct {
		name    string
		version int32
		content []byte
		want    string
	}{
		{"ordered compaction", 1, compact(t, 1, 2, 2), "wire mapping digests row_counts survivors_headers survivors_payload graph"},
		{"large", 1, bigContent(3, 60, true), "wire mapping digests row_counts survivors_headers survivors_payload? graph"},
		{"stable partition", 1, transition(source(1, 2, 0), dest(2, 2), partition(id, 9)), "wire mapping digests row_counts map_id map_size row_map? graph"},
		{"bad partition", 1, transition(source(1, 2, 0), dest(2, 3), partition("x", 0)), "wire mapping digests row_counts! map_id! map_size! row_map? graph?"},
		{"unsupported", 1, transition(source(1, 2, 0), intField(9, 1), ordered(set)), "wire mapping! digests? row_counts? survivors_headers? survivors_payload? graph?"},
		{"no mapping", 1, transition(source(1, 2, 0)), "wire mapping! digests? row_counts? graph?"},
		{"bad digest", 1, transition(source(1, 2, 3), dest(2, 2), ordered(set)), "wire mapping digests! row_counts? survivors_headers? survivors_payload graph?"},
		{"trailing", 1, transition(source(1, 2, 0), dest(2, 2), ordered(append(slices.Clone(set), 1))), "wire mapping digests row_counts? survivors_headers! survivors_payload graph?"},
		{"cycle", 1, compact(t, 1, 1, 2), "wire mapping digests row_counts survivors_headers survivors_payload graph!"},
		{"index_version 0", 0, compact(t, 1, 2, 2), "wire mapping? digests? row_counts? survivors_headers? survivors_payload? graph?"},
	} {
		if got := mark(open(t, tt.version, tt.content)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestCache checks that records are shared by their bytes, wherever they stand, and that the budget holds.
func TestCache(t *testing.T) {
	cache := fri.NewCache(1 << 20)
	openWith := func(identity string, content ...[]byte) *fri.History {
		h, err := fri.Open(t.Context(), bytes.NewReader(slices.Concat(content...)), fri.Options{IndexVersion: 1, FlagReader: true,
			FlagWriter: true, Cache: cache, Identity: identity})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	a, b, c := compact(t, 1, 2, 2), compact(t, 2, 3, 2), compact(t, 5, 6, 2)
	first := openWith("", a, b)
	second := openWith("", c, b, a)
	if s := cache.Stats(); s.Hits != 2 || s.Misses != 3 || s.Records != 3 || s.Bytes <= 0 {
		t.Errorf("got %+v, want 2 hits and 3 misses", s)
	}
	if order(second) != "1 3 2" || order(first) != "1 2" {
		t.Errorf("orders %s and %s", order(first), order(second))
	}
	x, y := first.Transitions[0], second.Transitions[1]
	if &x.Sources[0] != &y.Sources[0] || x.Seq == y.Seq || x.Offset == y.Offset {
		t.Errorf("the record is not shared as it should be: %+v, %+v", x, y)
	}
	if err := y.Survivors.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	big := bigContent(3, 60, true)
	before := cache.Stats()
	openWith("etag", big)
	openWith("etag", big)
	openWith("other", big)
	openWith("", big)
	if s := cache.Stats(); s.Hits != before.Hits+1 || s.Misses != before.Misses+2 {
		t.Errorf("large records: got %+v after %+v, want one hit and two misses", s, before)
	}
	small := fri.NewCache(2000)
	var wg sync.WaitGroup
	for i := range uint64(50) {
		wg.Go(func() {
			h, err := fri.Open(t.Context(), bytes.NewReader(compact(t, i%20, i%20+1, 2)), fri.Options{IndexVersion: 1, Cache: small})
			if err != nil || !h.Transitions[0].Usable() {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s := small.Stats(); s.Bytes > 2000 || s.Records == 0 {
		t.Errorf("over the budget: %+v", s)
	}
}

// TestLimits feeds contents that would cost far more memory than they have bytes.
func TestLimits(t *testing.T) {
	start := time.Now()
	tests := []struct {
		name    string
		version int32
		content []byte
	}{
		{"many transitions", 1, slices.Repeat([]byte{0x12, 0x00}, 60_000)},
		{"many groups", 0, lenField(1, slices.Repeat([]byte{0x1A, 0x00}, 60_000))},
		{"many versions", 0, slices.Repeat([]byte{0x0A, 0x00}, 70_000)},
	}
	for _, tt := range tests {
		h := open(t, tt.version, tt.content)
		if h.Broken == nil || !fault.Is(h.Broken, fault.TooLarge) || !strings.Contains(h.Broken.Error(), "limit") {
			t.Errorf("%s: got %v, want too large", tt.name, h.Broken)
		}
	}
	many := open(t, 1, transition(slices.Repeat([]byte{0x0A, 0x00}, 1<<20+1), ordered(make([]byte, 8))))
	if tr := many.Transitions[0]; tr.SourcesOK || !many.Opaque || !slices.ContainsFunc(many.Errors, func(f fri.Finding) bool { return f.Kind == fault.TooLarge }) {
		t.Errorf("many digests: %d sources, errors %.300v", len(tr.Sources), many.Errors)
	}
	unknown := open(t, 1, slices.Repeat([]byte{0x38, 0x01}, 50_000))
	if unknown.UnknownRecords != 50_000 || len(unknown.Unknown) > 1000 {
		t.Errorf("many unknown fields: %d counted, %d kept", unknown.UnknownRecords, len(unknown.Unknown))
	}
	// One fragment that thousands of records consume: the findings are bounded, and the work is not squared.
	same := open(t, 1, slices.Repeat(compact(t, 1, 2, 1), 4_000))
	if len(same.Errors) > 5000 || len(same.Consumer(1)) != 0 || len(same.Claimants(1)) != 4_000 {
		t.Errorf("%d errors, %d claimants", len(same.Errors), len(same.Claimants(1)))
	}
	legacy := group(treemap(t, rows{1: {0}}, false), []fri.Digest{{ID: 1, PhysicalRows: 1}}, []fri.Digest{{ID: 2, PhysicalRows: 1}})
	one := open(t, 0, version(3, slices.Repeat(legacy, 4_000)))
	if len(one.Errors) > 5000 || len(one.Claimants(1)) != 4_000 {
		t.Errorf("legacy: %d errors, %d claimants", len(one.Errors), len(one.Claimants(1)))
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
}
