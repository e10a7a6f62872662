package fri_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/fri"
)

// FuzzParseDetails feeds any bytes as the value of the details. An accepted content lies within them.
func FuzzParseDetails(f *testing.F) {
	for _, s := range []string{"", "0a00", "1200", "12110a0d64657461696c732e62696e70621861", "0a000a00", "0801", "120018ffffffffffffffffff01",
		"3b3c0a00", "0aff", "1a00"} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		c, err := fri.ParseDetails(value)
		if err != nil {
			if fri.Broken(0, 0, err).Errors[0].Rule < 3 {
				t.Fatalf("no rule in %v", err)
			}
			return
		}
		if (c.Inline == nil) == (c.External == nil) {
			t.Fatalf("inline %v, external %v", c.Inline, c.External)
		}
		if !bytes.Contains(value, c.Inline) {
			t.Fatal("the content is not in the value")
		}
		if e := c.External; e != nil && e.Offset+e.Size < e.Offset {
			t.Fatalf("offset %d + size %d overflows", e.Offset, e.Size)
		}
	})
}

// FuzzInlineContent opens any bytes as a content of either generation and checks what every history promises.
func FuzzInlineContent(f *testing.F) {
	for _, v := range vectors {
		if v.content != "" {
			f.Add(int32(v.version), unhex(f, v.content))
		}
	}
	full := treemap(f, rows{1: span(0, 2)}, true)
	f.Add(int32(1), slices.Concat(compact(f, 1, 2, 2), compact(f, 2, 3, 2), compact(f, 3, 1, 2), compact(f, 2, 9, 3)))
	f.Add(int32(1), slices.Concat(version(3, group(full, []fri.Digest{{ID: 1, PhysicalRows: 2}}, []fri.Digest{{ID: 2, PhysicalRows: 2}})), intField(7, 1)))
	f.Add(int32(0), slices.Concat(compact(f, 1, 2, 2), version(3, group(full, []fri.Digest{{ID: 1, PhysicalRows: 2}}, nil), group(full, nil, nil))))
	f.Add(int32(1), transition(source(1, 2, 0), dest(2, 2), intField(9, 1), ordered(full), partition("x", 1)))
	f.Fuzz(func(t *testing.T, iv int32, content []byte) {
		iv &= 1
		h := open(t, iv, content)
		checkPromises(t, h)
		// The same content read in small pieces and jumps says the same.
		again, err := fri.Open(t.Context(), bytes.NewReader(slices.Concat(content, make([]byte, 9))), fri.Options{
			IndexVersion: iv, FlagReader: iv == 1, FlagWriter: iv == 1, Window: 1,
			External: &fri.External{Size: uint64(len(content))}, Cache: fri.NewCache(1000),
		})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := dump(h), dump(again); a != b {
			t.Fatalf("opened twice:\n%s\n%s", a, b)
		}
	})
}

// checkPromises checks the invariants of a history.
func checkPromises(t *testing.T, h *fri.History) {
	t.Helper()
	if h.Broken != nil {
		if len(h.Transitions) > 0 || len(h.Errors) != 1 {
			t.Fatalf("broken, but\n%s", dump(h))
		}
		return
	}
	records := map[int]bool{}
	placed := map[fri.FragID]bool{}
	for i, tr := range h.Transitions {
		if tr.Seq != i+1 || records[tr.Record] || tr.Record < 1 || tr.Record > len(h.Transitions) {
			t.Fatalf("place %d: seq %d, record %d", i, tr.Seq, tr.Record)
		}
		records[tr.Record] = true
		named := slices.ContainsFunc(h.Errors, func(f fri.Finding) bool { return f.Record == tr.Record })
		unapplied := tr.Form == fri.Tagged && !h.Tagged
		if tr.Usable() == named && !unapplied {
			t.Fatalf("record %d: usable %v, named in an error %v\n%s", tr.Record, tr.Usable(), named, dump(h))
		}
		if !tr.Usable() && h.Tagged && tr.Seq != tr.Record {
			t.Fatalf("record %d cannot be used and stands at %d", tr.Record, tr.Seq)
		}
		if !tr.Usable() && !tr.SourcesOK && !h.Opaque {
			t.Fatalf("record %d may have consumed anything, but the history is not opaque", tr.Record)
		}
		if id, err := tr.ID(t.Context()); err != nil || len(id) != 16 {
			t.Fatalf("id %q, %v", id, err)
		}
		if len(tr.Checks) == 0 || strings.Contains(tr.Kind.String(), "unknown") {
			t.Fatalf("record %d: kind %v, %d checks", tr.Record, tr.Kind, len(tr.Checks))
		}
		if !tr.Usable() {
			continue
		}
		if in, moved, dropped, ok := tr.Rows(); !ok || in != moved+dropped {
			t.Fatalf("record %d: rows %d = %d + %d, %v", tr.Record, in, moved, dropped, ok)
		}
		for _, d := range tr.Sources {
			if p := h.Producer(d.Frag()); h.Tagged && len(p) > 0 && !placed[d.Frag()] {
				t.Fatalf("record %d consumes fragment %d before record %d produces it", tr.Record, d.ID, p[0].Record)
			}
			if c := h.Consumer(d.Frag()); !slices.Contains(c, tr) || h.Tagged && len(c) != 1 {
				t.Fatalf("fragment %d has %d consumers", d.ID, len(c))
			}
		}
		for _, d := range tr.Destinations {
			placed[d.Frag()] = true
		}
		if s := tr.Survivors; s != nil && s.Total() < 1<<18 {
			if err := s.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range h.Steps {
		for _, i := range step {
			if h.Transitions[i].Form != fri.Legacy {
				t.Fatalf("step %v holds a %v", step, h.Transitions[i].Form)
			}
		}
	}
}
