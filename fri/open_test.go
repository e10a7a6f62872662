package fri_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

func TestIsEntry(t *testing.T) {
	const url = "/lance.table.FragmentReuseIndexDetails"
	tests := []struct {
		name, url string
		details   bool
		fields    []int32
		want      fri.Class
		warning   string
	}{
		{fri.EntryName, url, true, nil, fri.IsFRI, ""},
		{fri.EntryName, url, true, []int32{3}, fri.IsFRI, ""},
		{fri.EntryName, "type.googleapis.com" + url, true, nil, fri.IsFRI, "Lance reads it"},
		{fri.EntryName, url[1:], true, nil, fri.IsFRI, "without a slash"},
		{fri.EntryName, strings.ToLower(url), true, nil, fri.IsFRI, "another case"},
		{fri.EntryName, url + "/", true, nil, fri.BrokenFRI, "have type"},
		{fri.EntryName, "FragmentReuseIndexDetails", true, nil, fri.BrokenFRI, "have type"},
		{fri.EntryName, url, false, nil, fri.BrokenFRI, "no details"},
		{fri.EntryName, "", true, nil, fri.BrokenFRI, `type ""`},
		{fri.EntryName, "/lance.table.BTreeIndexDetails", true, []int32{0}, fri.LookAlike, "can neither list"},
		{fri.EntryName, "", false, []int32{0}, fri.LookAlike, "user index"},
		{"__lance_frag_reuse2", url, true, nil, fri.NotFRI, ""},
		{"", url, true, nil, fri.NotFRI, ""},
	}
	for _, tt := range tests {
		got := fri.IsEntry(tt.name, tt.url, tt.details, tt.fields)
		if got.Class != tt.want || !strings.Contains(got.Warning, tt.warning) || (tt.warning == "") != (got.Warning == "") {
			t.Errorf("IsEntry(%q, %q, %v, %v) = %+v, want %v, %q", tt.name, tt.url, tt.details, tt.fields, got, tt.want, tt.warning)
		}
	}
}

func TestParseDetails(t *testing.T) {
	ext := func(fields ...[]byte) []byte { return lenField(2, fields...) }
	tests := []struct {
		name  string
		value []byte
		rule  int
		want  string // a part of the error, or the content
	}{
		{"inline", lenField(1, []byte("abc")), 0, "inline abc"},
		{"inline, empty", lenField(1), 0, "inline "},
		{"external", ext(lenField(1, []byte("p")), intField(2, 7), intField(3, 9)), 0, "p 7 9"},
		{"external, last value counts", ext(lenField(1, []byte("a")), lenField(1, []byte("b")), intField(3, 1), intField(3, 2)), 0, "b 0 2"},
		{"external, unknown fields", ext(intField(9, 1), lenField(1, []byte("a"))), 0, "a 0 0"},
		{"unknown fields around", slices.Concat(intField(7, 1), lenField(1, []byte("x")), lenField(9, []byte("y"))), 0, "inline x unknown 7 9"},
		{"missing", nil, 4, "missing FRI content"},
		{"only unknown", intField(7, 1), 4, "missing FRI content"},
		{"two", slices.Concat(lenField(1), ext()), 4, "a second content field (2)"},
		{"same twice", slices.Concat(lenField(1), lenField(1)), 4, "a second content field (1)"},
		{"varint", intField(1, 1), 4, "wire type 0"},
		{"external as varint", intField(2, 1), 4, "wire type 0"},
		{"cut", []byte{0x0A, 0x05, 1}, 3, "5 bytes long, 1 are left"},
		{"external cut", ext([]byte{0x0A, 0x05, 1}), 3, "5 bytes long"},
		{"path as varint", ext(intField(1, 1)), 3, "wire type 0"},
		{"size as bytes", ext(lenField(3)), 3, "wire type 2"},
		{"overflow", ext(intField(2, 1), intField(3, ^uint64(0))), 5, "overflows"},
		{"over int64", ext(intField(2, 1<<63)), 5, "overflows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := fri.ParseDetails(tt.value)
			if err != nil {
				h := fri.Broken(0, 0, err)
				if !fault.Is(err, fault.Corrupt) || h.Errors[0].Rule != tt.rule || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v (rule %d), want rule %d, %q", err, h.Errors[0].Rule, tt.rule, tt.want)
				}
				if strings.Contains(h.Errors[0].Message, "rule") || strings.Contains(h.Errors[0].Message, "corrupt") {
					t.Errorf("the finding repeats its fields: %q", h.Errors[0].Message)
				}
				return
			}
			got := fmt.Sprintf("inline %s", c.Inline)
			if e := c.External; e != nil {
				got = fmt.Sprint(e.Path, " ", e.Offset, " ", e.Size)
			}
			if len(c.Unknown) > 0 {
				got += " unknown"
			}
			for _, u := range c.Unknown {
				got += fmt.Sprint(" ", u.Number)
			}
			if tt.rule != 0 || got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestExternal(t *testing.T) {
	content := compact(t, 1, 2, 3)
	file := slices.Concat([]byte("1234567"), content, []byte("tail"))
	n := uint64(len(content))
	for _, tt := range []struct {
		off, size uint64
		want      string
	}{
		{7, n, ""},
		{7, n + 5, fmt.Sprintf("the content is at offset 7 and %d bytes long, but the file has %d bytes", n+5, len(file))},
		{1 << 40, 0, "but the file has"},
		{uint64(len(file)), 1, "but the file has"},
	} {
		h, err := fri.Open(t.Context(), bytes.NewReader(file), fri.Options{IndexVersion: 1, FlagReader: true, FlagWriter: true,
			External: &fri.External{Path: "details.binpb", Offset: tt.off, Size: tt.size}})
		switch {
		case err != nil:
			t.Error(err)
		case tt.want == "":
			got := make([]byte, n)
			if _, err := h.Content().ReadAt(got, 0); err != nil || !bytes.Equal(got, content) || !h.Transitions[0].Usable() {
				t.Errorf("content: got %x, %v\n%s", got, err, dump(h))
			}
			if err := h.Transitions[0].Survivors.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := h.Content().ReadAt(got[:1], int64(n)); !errors.Is(err, io.EOF) {
				t.Errorf("behind the content: got %v, want io.EOF", err)
			}
		case h.Broken == nil || h.Errors[0].Rule != 5 || !strings.Contains(h.Errors[0].Message, tt.want):
			t.Errorf("got %v, want %q", h.Broken, tt.want)
		}
	}
}

// flakyReader fails with err from a byte on, or ends there if err is nil.
type flakyReader struct {
	data  []byte
	from  int64
	err   error
	calls *atomic.Int64
}

func (r flakyReader) Size() int64 { return int64(len(r.data)) }

func (r flakyReader) ReadAt(p []byte, off int64) (int, error) {
	if r.calls != nil {
		r.calls.Add(1)
	}
	if off+int64(len(p)) <= r.from {
		return copy(p, r.data[off:]), nil
	}
	if r.err != nil {
		return 0, r.err
	}
	return copy(p, r.data[min(off, r.from):r.from]), io.EOF
}

func TestReadFailures(t *testing.T) {
	content := bigContent(3, 60, true)
	for _, tt := range []struct {
		name string
		err  error
		kind fault.Kind
	}{
		{"not found", fs.ErrNotExist, fault.NotFound},
		{"unavailable", fault.New("store", "x", fault.Unavailable, "down"), fault.Unavailable},
		{"timed out", context.DeadlineExceeded, fault.TimedOut},
		{"unclassified", errors.New("odd"), fault.Unknown},
	} {
		for _, from := range []int64{0, 100, int64(len(content)) - 10} {
			h, err := fri.Open(t.Context(), flakyReader{data: content, from: from, err: tt.err}, fri.Options{IndexVersion: 1})
			if h != nil || err == nil || fault.KindOf(err) != tt.kind || !errors.Is(err, tt.err) {
				t.Errorf("%s from byte %d: got %v, kind %v; want kind %v", tt.name, from, err, fault.KindOf(err), tt.kind)
			}
		}
	}
	h, err := fri.Open(t.Context(), flakyReader{data: content, from: 5000}, fri.Options{IndexVersion: 1})
	if err != nil || h.Broken == nil || h.Errors[0].Rule != 5 || h.Errors[0].Kind != fault.Corrupt {
		t.Errorf("a reader that ends early: got %v, %v; want rule 5", h, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fri.Open(ctx, bytes.NewReader(content), fri.Options{IndexVersion: 1}); !fault.Is(err, fault.Cancelled) {
		t.Errorf("cancelled: got %v", err)
	}
	ok, err := fri.Open(t.Context(), bytes.NewReader(content), fri.Options{IndexVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ok.Transitions[0].ID(ctx); !fault.Is(err, fault.Cancelled) {
		t.Errorf("ID, cancelled: got %v", err)
	}
	if id, err := ok.Transitions[0].ID(t.Context()); err != nil || len(id) != 16 {
		t.Errorf("ID after a cancelled one: got %q, %v", id, err)
	}
}

// TestReads counts the reads of an open: a jump per fragment on a local file, few large ones with a window.
func TestReads(t *testing.T) {
	content := bigContent(20, 16, true)
	for _, tt := range []struct{ window, most int }{{0, 25}, {1 << 20, 4}} {
		var calls atomic.Int64
		r := flakyReader{data: content, from: int64(len(content)), calls: &calls}
		h, err := fri.Open(t.Context(), r, fri.Options{IndexVersion: 1, FlagReader: true, FlagWriter: true, Window: tt.window})
		if err != nil || !h.Transitions[0].Usable() {
			t.Fatal(err)
		}
		if n := calls.Load(); n > int64(tt.most) {
			t.Errorf("window %d: %d reads of %d bytes, want at most %d", tt.window, n, len(content), tt.most)
		}
	}
}

func TestID(t *testing.T) {
	const mapID = "0f8fad5b-d9cb-469f-a165-70867728950e"
	hash := func(b []byte) string {
		s := sha256.Sum256(b)
		return hex.EncodeToString(s[:8])
	}
	head := slices.Concat(source(1, 2, 0), dest(2, 2))
	plain := slices.Concat(head, lenField(4, lenField(1, []byte(mapID)), intField(2, 9)))
	odd := slices.Concat(head, []byte{0x22, 0xA9, 0x80, 0x00}, lenField(1, []byte(mapID)), intField(2, 300)) // a length in three bytes
	big := bigContent(3, 60, true)
	tests := []struct {
		name    string
		version int32
		content []byte
		want    string
	}{
		{"no base_id", 1, lenField(2, plain), hash(plain)},
		{"base_id", 1, transition(head, lenField(4, lenField(1, []byte(mapID)), intField(2, 9), intField(3, 5))), hash(plain)},
		{"base_id 0", 1, transition(head, lenField(4, lenField(1, []byte(mapID)), intField(2, 9), intField(3, 0))), hash(plain)},
		{"base_id first and last", 1, transition(head, lenField(4, intField(3, 1), lenField(1, []byte(mapID)), intField(2, 9), intField(3, 5))), hash(plain)},
		{"length kept byte for byte", 1, lenField(2, odd), hash(odd)},
		{"unknown field behind", 1, transition(head, lenField(4, lenField(1, []byte(mapID)), intField(2, 9), intField(3, 5)), intField(9, 1)),
			hash(slices.Concat(plain, intField(9, 1)))},
		{"a field 3 that is not base_id", 1, transition(head, lenField(4, lenField(1, []byte(mapID)), lenField(3))), hash(slices.Concat(head, lenField(4, lenField(1, []byte(mapID)), lenField(3))))},
		{"group", 0, version(7, group(unhex(t, v6), []fri.Digest{{ID: 10, PhysicalRows: 8}}, nil)),
			hash(slices.Concat(lenField(1, unhex(t, v6)), lenField(2, digest(10, 8, 0))))},
		{"large", 1, big, ""},
	}
	tests[len(tests)-1].want = func() string {
		h := open(t, 1, big)
		tr := h.Transitions[0]
		return hash(big[tr.Offset : tr.Offset+tr.Length])
	}()
	for _, tt := range tests {
		h := open(t, tt.version, tt.content)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if got, err := h.Transitions[0].ID(t.Context()); err != nil || got != tt.want {
					t.Errorf("%s: got %s, %v; want %s", tt.name, got, err, tt.want)
				}
			})
		}
		wg.Wait()
	}
}
