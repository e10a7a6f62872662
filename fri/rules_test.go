package fri_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// compact is a well-formed tagged transition: `rows` rows of fragment `from`, none deleted, go to fragment `to`.
func compact(tb testing.TB, from, to, n uint64) []byte {
	tb.Helper()
	return transition(source(from, n, 0), dest(to, n), ordered(treemap(tb, rows{fri.FragID(from): span(0, uint32(n))}, true)))
}

// state is what became of the records of a content: "2 invalid rule 16" per record in wire order, "ok" where usable.
func state(h *fri.History) string {
	if h.Broken != nil {
		return fmt.Sprintf("broken rule %d", h.Errors[0].Rule)
	}
	out := make([]string, len(h.Transitions))
	for _, t := range h.Transitions {
		s := "ok"
		if !t.Usable() {
			s = t.Kind.String()
			for _, e := range h.Errors {
				if e.Record == t.Record {
					s += fmt.Sprintf(" rule %d", e.Rule)
					break
				}
			}
			if !t.SourcesOK {
				s += " sources unknown"
			}
		}
		out[t.Record-1] = s
	}
	s := strings.Join(out, ", ")
	if h.Opaque {
		s += "; opaque"
	}
	return s
}

func TestRules(t *testing.T) {
	const id = "0f8fad5b-d9cb-469f-a165-70867728950e"
	full := func(f fri.FragID, n uint32) []byte { return treemap(t, rows{f: span(0, n)}, false) }
	good := compact(t, 50, 51, 3)
	legacy := version(7, group(full(1, 4), []fri.Digest{{ID: 1, PhysicalRows: 4}}, []fri.Digest{{ID: 2, PhysicalRows: 4}}))
	huge := uint64(1) << 32
	badWire := []byte{0x0A, 0x05, 0x01} // field 1 of 5 bytes, of which one is there

	tests := []struct {
		name    string
		version int32
		content []byte
		want    string
		message string // a part of the first error, or of the first warning where there is no error
	}{
		{"empty content", 0, nil, "", ""},
		{"empty tagged content", 1, nil, "", ""},
		{"empty version", 0, version(3), "", ""},
		{"legacy", 0, legacy, "ok", ""},
		{"lifted", 1, legacy, "ok", ""},
		{"tagged", 1, good, "ok", ""},

		{"rule 1", 2, good, "broken rule 1", "index_version 2"},
		{"rule 1 negative", -1, nil, "broken rule 1", "index_version -1"},

		{"rule 3 truncated key", 1, []byte{0x80}, "broken rule 3", "truncated key"},
		{"rule 3 field 0", 1, []byte{0x00}, "broken rule 3", "field number 0"},
		{"rule 3 key too large", 1, []byte{0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00}, "broken rule 3", "bad key"},
		{"rule 3 wire type 6", 1, []byte{0x0E}, "broken rule 3", "wire type 6"},
		{"rule 3 wire type 7", 0, []byte{0x0F}, "broken rule 3", "wire type 7"},
		{"rule 3 group end", 0, []byte{0x0C}, "broken rule 3", "wire type 4"},
		{"rule 3 varint of 11 bytes", 1, append([]byte{0x38}, slices.Repeat([]byte{0xFF}, 11)...), "broken rule 3", "longer than 64 bits"},
		{"rule 3 length", 1, []byte{0x12, 0x05, 0x01}, "broken rule 3", "field 2 is 5 bytes long, 1 are left"},
		{"rule 3 length of 2^63", 1, append([]byte{0x12}, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01), "broken rule 3", "are left"},
		{"rule 3 fixed64", 1, []byte{0x39, 1, 2}, "broken rule 3", "needs 8 bytes"},
		{"rule 3 fixed32", 1, []byte{0x3D, 1, 2}, "broken rule 3", "needs 4 bytes"},
		{"rule 3 group without end", 1, []byte{0x3B, 0x08, 0x01}, "broken rule 3", "no end"},
		{"rule 3 group ends as another", 1, []byte{0x3B, 0x44}, "broken rule 3", "group 7 ends as group 8"},
		{"rule 3 deep groups", 1, slices.Repeat([]byte{0x3B}, 200), "broken rule 3", "deeper than 100"},
		{"rule 3 inside a transition", 1, slices.Concat(good, transition(badWire)), "broken rule 3", "record 2"},

		{"rule 6 field 1 varint", 0, intField(1, 7), "broken rule 6", "wire type 0"},
		{"rule 6 field 2 varint, tagged", 1, intField(2, 7), "broken rule 6", "wire type 0"},
		{"rule 6 version", 0, lenField(1, badWire), "broken rule 6", ""},
		{"rule 6 stamp is bytes", 0, lenField(1, lenField(1, []byte("x"))), "broken rule 6", "dataset_version has wire type 2"},
		{"rule 6 groups is a varint", 0, lenField(1, intField(3, 1)), "broken rule 6", "groups has wire type 0"},
		{"rule 6 group", 0, lenField(1, lenField(3, badWire)), "broken rule 6", "version 1, group 1"},
		{"rule 6 group rows", 0, lenField(1, lenField(3, intField(1, 1))), "broken rule 6", "field 1 of a group"},
		{"rule 6 digest", 0, lenField(1, lenField(3, lenField(2, badWire))), "broken rule 6", ""},
		{"rule 6 digest field", 1, lenField(1, lenField(3, lenField(2, lenField(1, nil)))), "broken rule 6", "wire type 2"},

		{"rule 7", 0, slices.Concat(legacy, good), "ok, ordered_compaction", "1 transition under index_version 0"},
		{"rule 7 before the wire type", 0, slices.Concat(legacy, intField(2, 7)), "ok, invalid sources unknown; opaque", "1 transition under index_version 0"},
		{"rule 7 bad wire", 0, slices.Concat(legacy, transition(badWire)), "ok, invalid sources unknown; opaque", "under index_version 0"},

		{"rule 8", 1, slices.Concat(intField(7, 1), good), "ok; opaque", "1 unknown field in the content (field 7)"},
		{"rule 8 legacy", 0, slices.Concat(legacy, lenField(9, []byte("x"))), "ok; opaque", "Lance skips it"},
		{"rule 8 group", 1, slices.Concat([]byte{0x3B, 0x08, 0x01, 0x3C}, good), "ok; opaque", "field 7"},

		{"rule 9 wire type", 1, transition(source(1, 2, 0), intField(3, 1)), "invalid rule 9", "mapping field 3 has wire type 0"},
		{"rule 9 two", 1, transition(source(1, 2, 0), ordered(full(1, 2)), partition(id, 9)), "invalid rule 9", "multiple mapping alternatives"},
		{"rule 9 the same twice", 1, transition(source(1, 2, 0), partition(id, 9), partition(id, 9)), "invalid rule 9", "multiple"},
		{"rule 9 before 10", 1, transition(source(1, 2, 0), intField(9, 1), ordered(nil), ordered(nil)), "invalid rule 9", "multiple"},
		{"rule 9, then bad wire", 1, transition(source(1, 2, 0), ordered(nil), ordered(nil), badWire), "invalid rule 9 sources unknown; opaque", "multiple"},
		{"rule 10", 1, slices.Concat(transition(source(1, 2, 0), dest(2, 2), ordered(full(1, 2)), intField(9, 1)), good), "unsupported rule 10, ok", "unknown field 9 in the transition"},
		{"rule 10 before 11 and 12", 1, transition(intField(5, 1)), "unsupported rule 10", "unknown field 5"},
		{"rule 10, sources do not decode", 1, transition(lenField(1, lenField(1, nil)), intField(9, 1)), "unsupported rule 10 sources unknown; opaque", "field 9"},
		{"rule 10 takes no part in 22", 1, slices.Concat(transition(source(50, 3, 0), dest(51, 3), intField(9, 1)), good), "unsupported rule 10, ok", ""},
		{"rule 11", 1, transition(source(1, 2, 0), dest(2, 2)), "invalid rule 11", "no mapping"},
		{"rule 11 empty transition", 1, transition(), "invalid rule 11", "no mapping"},
		{"rule 12", 1, transition(dest(2, 0), ordered(make([]byte, 8))), "invalid rule 12", "no sources"},
		{"rule 12 lifted", 1, version(1, group(make([]byte, 8), nil, nil)), "invalid rule 12", "no sources"},
		{"rule 12 legacy is no rule", 0, version(1, group(make([]byte, 8), nil, nil)), "ok", ""},
		{"no destinations", 1, transition(source(1, 2, 2), ordered(make([]byte, 8))), "ok", ""},
		{"digest does not decode", 1, slices.Concat(transition(lenField(1, badWire), ordered(full(1, 2))), good), "invalid rule 3 sources unknown, ok; opaque", "sources:"},
		{"destination does not decode", 1, transition(source(1, 2, 0), lenField(2, badWire), ordered(full(1, 2))), "invalid rule 3", "destinations:"},
		{"sources is a varint", 1, transition(intField(1, 1), ordered(full(1, 2))), "invalid rule 3 sources unknown; opaque", "field 1 (sources) has wire type 0"},

		{"rule 13 id", 1, transition(source(0xFFFFFFFF, 0, 0), ordered(make([]byte, 8))), "invalid rule 13", "4294967295 is no fragment id"},
		{"rule 13 id of 2^32", 1, transition(source(huge, 2, 2), ordered(make([]byte, 8))), "invalid rule 13", "4294967296"},
		{"rule 13 rows", 1, transition(source(1, huge, huge), ordered(make([]byte, 8))), "invalid rule 13", "4294967296 rows"},
		{"rule 13 deleted", 1, transition(source(1, 2, 3), ordered(make([]byte, 8))), "invalid rule 13", "3 deleted rows of 2"},
		{"rule 14 sources", 1, transition(source(1, 1, 0), source(1, 1, 0), dest(2, 2), ordered(full(1, 2))), "invalid rule 14", "listed twice as a source"},
		{"rule 14 destinations", 1, transition(source(1, 2, 0), dest(2, 1), dest(2, 1), ordered(full(1, 2))), "invalid rule 14", "listed twice as a destination"},
		{"rule 15", 1, transition(source(1, 2, 0), lenField(2, digest(2, 2, 1)), ordered(full(1, 2))), "invalid rule 15", "creation-time"},
		{"rule 16", 1, transition(source(1, 2, 0), dest(2, 3), ordered(full(1, 2))), "invalid rule 16", "sources have 2 live rows, destination holds 3"},
		{"rule 16 partition", 1, transition(source(1, 2, 0), dest(2, 1), dest(3, 3), partition(id, 9)), "invalid rule 16", "destinations hold 4 rows"},

		{"rule 17 nothing", 1, transition(source(1, 2, 0), dest(2, 2), ordered(nil)), "invalid rule 17", "needs 8 bytes"},
		{"rule 17 no bytes field", 1, transition(source(1, 2, 0), dest(2, 2), lenField(3)), "invalid rule 17", "needs 8 bytes"},
		{"rule 17 trailing", 1, transition(source(1, 2, 0), dest(2, 2), ordered(append(full(1, 2), 0))), "invalid rule 17", "trailing bytes"},
		{"trailing legacy", 0, version(1, group(append(full(1, 2), 0, 0), []fri.Digest{{1, 2, 0}}, []fri.Digest{{2, 2, 0}})), "ok", "2 bytes behind"},
		{"mapping does not decode", 1, transition(source(1, 2, 0), dest(2, 2), lenField(3, badWire)), "invalid rule 3", "ordered_compaction"},
		{"rule 18", 1, transition(source(1, 4, 1), dest(2, 3), ordered(full(1, 2))), "invalid rule 18", "fragment 1 has 2 survivors, its digest has 3"},
		{"rule 18 empty", 1, transition(source(1, 3, 0), dest(2, 1), dest(3, 2), ordered(make([]byte, 8))), "invalid rule 18", "survivors 0, destinations hold 3"},
		{"rule 18 per source", 1, transition(source(1, 3, 1), source(2, 3, 1), dest(3, 4), ordered(treemap(t, rows{1: span(0, 3), 2: span(0, 1)}, false))), "invalid rule 18", "fragment 1 has 3"},
		{"rule 19 offset", 1, transition(source(1, 3, 1), dest(2, 2), ordered(treemap(t, rows{1: {0, 3}}, false))), "invalid rule 19", "offset 3, outside its 3 rows"},
		{"rule 19 foreign", 1, transition(source(1, 2, 0), dest(2, 2), ordered(treemap(t, rows{1: {0, 1}, 9: {0}}, false))), "invalid rule 19", "fragment 9, which is not a source"},
		{"empty foreign bitmap", 1, transition(source(1, 2, 0), dest(2, 2), ordered(treemap(t, rows{1: {0, 1}, 9: {}}, false))), "ok", ""},

		{"rule 20", 1, transition(source(1, 2, 0), dest(2, 2), partition("../x", 9)), "invalid rule 20", `"../x"`},
		{"rule 20 missing", 1, transition(source(1, 2, 0), dest(2, 2), lenField(4, intField(2, 9))), "invalid rule 20", `""`},
		{"rule 20 long", 1, transition(source(1, 2, 0), dest(2, 2), partition(strings.Repeat("a", 1000), 9)), "invalid rule 20", "1000 bytes"},
		{"rule 21", 1, transition(source(1, 2, 0), dest(2, 2), partition(id, 0)), "invalid rule 21", "map_size_bytes is 0"},
		{"partition without destinations", 1, transition(source(1, 2, 2), partition(id, 9)), "invalid rule 21", "without destinations"},
		{"partition does not decode", 1, transition(source(1, 2, 0), dest(2, 2), lenField(4, intField(1, 9))), "invalid rule 3", "stable_partition"},
		{"partition in any case", 1, transition(source(1, 2, 0), dest(2, 2), partition(strings.ToUpper(id), 9)), "ok", ""},
		{"partition braced", 1, transition(source(1, 2, 0), dest(2, 2), partition("{"+id+"}", 9)), "ok", ""},
		{"partition simple", 1, transition(source(1, 2, 0), dest(2, 2), partition(strings.ReplaceAll(id, "-", ""), 9)), "ok", ""},
		{"partition urn", 1, transition(source(1, 2, 0), dest(2, 2), partition("urn:uuid:"+id, 9)), "ok", ""},
		{"partition URN", 1, transition(source(1, 2, 0), dest(2, 2), partition("URN:UUID:"+id, 9)), "invalid rule 20", ""},
		{"partition bad digit", 1, transition(source(1, 2, 0), dest(2, 2), partition("g"+id[1:], 9)), "invalid rule 20", ""},

		{"rule 22 producers", 1, slices.Concat(compact(t, 1, 9, 2), compact(t, 2, 9, 2), good), "invalid rule 22, invalid rule 22, ok", "duplicate producer for fragment 9: records 1 and 2"},
		{"rule 22 consumers", 1, slices.Concat(compact(t, 1, 8, 2), good, compact(t, 1, 9, 2)), "invalid rule 22, ok, invalid rule 22", "duplicate consumer for fragment 1: records 1 and 3"},
		{"rule 22 self", 1, slices.Concat(good, transition(source(1, 2, 0), dest(1, 2), ordered(full(1, 2)))), "ok, invalid rule 22", "cycle of records 2"},
		{"rule 22 cycle", 1, slices.Concat(compact(t, 1, 2, 2), good, compact(t, 2, 3, 2), compact(t, 3, 1, 2), compact(t, 51, 52, 3)), "invalid rule 22, ok, invalid rule 22, invalid rule 22, ok", "cycle of records 1, 3 and 4"},
		{"rule 22 cycle through a duplicate", 1, slices.Concat(compact(t, 1, 2, 2), compact(t, 2, 1, 2), compact(t, 2, 1, 2)), "invalid rule 22, invalid rule 22, invalid rule 22", ""},
		{"rule 22 lifted and tagged", 1, slices.Concat(legacy, compact(t, 1, 2, 4)), "invalid rule 22, invalid rule 22", "records 1 and 2"},
		{"rule 22 legacy is no rule", 0, slices.Concat(legacy, legacy), "ok, ok", "fragment 1 is a source of records 1 and 2"},
		{"rule 23", 1, slices.Concat(compact(t, 1, 2, 2), compact(t, 2, 3, 5), good), "invalid rule 23, invalid rule 23, ok", "fragment 2 has 2 rows here and 5 in record 2"},
		{"rule 23, deletions may grow", 1, slices.Concat(compact(t, 1, 2, 2), transition(source(2, 2, 1), dest(3, 1), ordered(treemap(t, rows{2: {1}}, false)))), "ok, ok", ""},

		{"legacy id", 0, version(1, group(make([]byte, 8), []fri.Digest{{huge, 1, 1}}, nil)), "invalid rule 0", "4294967296 is no fragment id"},
		{"legacy new id", 0, version(1, group(make([]byte, 8), []fri.Digest{{1, 1, 1}}, []fri.Digest{{huge, 0, 0}})), "invalid rule 0", "destination 4294967296"},
		{"legacy rows", 0, version(1, group(make([]byte, 8), []fri.Digest{{1, huge, 1}}, nil)), "invalid rule 0", "4294967296 rows"},
		{"legacy twice in a group", 0, version(1, group(make([]byte, 8), []fri.Digest{{1, 1, 1}, {1, 1, 1}}, nil)), "invalid rule 0", "listed twice"},
		{"legacy twice in a version", 0, version(1,
			group(full(1, 1), []fri.Digest{{1, 1, 0}}, []fri.Digest{{2, 1, 0}}),
			group(full(5, 1), []fri.Digest{{5, 1, 0}}, []fri.Digest{{6, 1, 0}}),
			group(full(1, 1), []fri.Digest{{1, 1, 0}}, []fri.Digest{{3, 1, 0}})), "invalid rule 0, ok, invalid rule 0", "two groups of version 1: groups 1, 3"},
		{"legacy offset", 0, version(1, group(full(1, 2), []fri.Digest{{1, 0, 0}}, []fri.Digest{{2, 2, 0}})), "invalid rule 0", "outside its 0 rows"},
		{"legacy foreign", 0, version(1, group(full(9, 2), []fri.Digest{{1, 2, 0}}, []fri.Digest{{2, 2, 0}})), "invalid rule 0", "not a source"},
		{"legacy counts", 0, version(1, group(full(1, 2), []fri.Digest{{1, 2, 0}}, []fri.Digest{{2, 3, 0}})), "invalid rule 0", "survivors 2, destination holds 3"},
		{"legacy writer bug", 0, version(1, group(make([]byte, 8), []fri.Digest{{0, 400, 0}, {1, 400, 0}}, []fri.Digest{{2, 800, 0}})), "invalid rule 0", "survivors 0, destination holds 800 rows (a known writer bug: Lance 0.30"},
		{"legacy all deleted", 0, version(1, group(make([]byte, 8), []fri.Digest{{1, 2, 2}}, nil)), "ok", ""},
		{"legacy garbage", 0, version(1, group([]byte("garbage!garbage!"), []fri.Digest{{1, 2, 0}}, []fri.Digest{{2, 2, 0}})), "invalid rule 0", "survivor bitmap"},
		{"legacy deleted rows", 0, version(1, group(full(1, 2), []fri.Digest{{1, 4, 0}}, []fri.Digest{{2, 2, 9}})), "ok", "fragment 1 says 0, its survivors leave 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := open(t, tt.version, tt.content)
			if got := state(h); got != tt.want {
				t.Errorf("got %q, want %q\n%s", got, tt.want, dump(h))
			}
			first := ""
			if len(h.Warnings) > 0 {
				first = h.Warnings[0].Message
			}
			if len(h.Errors) > 0 {
				first = h.Errors[0].Message
			}
			if !strings.Contains(first, tt.message) {
				t.Errorf("got %q, want a part %q", first, tt.message)
			}
			for _, tr := range h.Transitions {
				for _, d := range tr.Sources {
					if d.ID < huge && slices.Contains(h.Consumer(d.Frag()), tr) != tr.Usable() {
						t.Errorf("record %d: usable %v, but Consumer(%d) says otherwise", tr.Record, tr.Usable(), d.ID)
					}
					if d.ID < huge && slices.Contains(h.Claimants(d.Frag()), tr) == tr.Usable() {
						t.Errorf("record %d: usable %v, but Claimants(%d) says otherwise", tr.Record, tr.Usable(), d.ID)
					}
				}
				if err := tr.Err; err != nil && !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Unsupported) {
					t.Errorf("record %d: kind %v", tr.Record, fault.KindOf(err))
				}
			}
		})
	}
}
