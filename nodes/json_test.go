package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// indented is what encoding/json makes of the same text: the layout to meet.
func indented(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, b)
	}
	return out.Bytes()
}

func TestEncoderLayout(t *testing.T) {
	j := newJSONDoc()
	j.K("name", func(e *enc) { e.Str("a\"b\\c\n\x01\x7fé\xff") })
	j.K("none", func(e *enc) { e.Null() })
	j.K("wide", func(e *enc) { e.Wide(1<<64 - 1) })
	j.ArrayOf("empty", 0, nil)
	j.Object("empty_object")
	j.End()
	j.Array("list")
	j.Items(3, func(e *enc, i int) { e.Int(int64(i)) })
	j.ItemObject()
	j.K("t", func(e *enc) { e.Time(time.Unix(1, 5)) })
	j.ArrayOf("deep", 1, func(e *enc, _ int) { e.Obj(func() { e.K("x").Arr(func() {}) }) })
	j.End()
	j.End()
	got, err := jsonBytes(context.Background(), j.Done())
	if err != nil {
		t.Fatal(err)
	}
	if want := append(indented(t, bytes.TrimSuffix(got, []byte("\n"))), '\n'); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, s := range []string{"\"name\": \"a\\\"b\\\\c\\n\\u0001\\u007fé\ufffd\"", `"wide": "18446744073709551615"`,
		`"empty": []`, `"empty_object": {}`, `"t": "1970-01-01T00:00:01.000000005Z"`} {
		if !bytes.Contains(got, []byte(s)) {
			t.Errorf("%s is missing in\n%s", s, got)
		}
	}
}

func TestJSONStringsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		var back string
		if err := json.Unmarshal(appendJSONString(nil, s), &back); err != nil {
			t.Fatal(err)
		}
		if back != strings.ToValidUTF8(s, "\ufffd") {
			t.Fatalf("%q came back as %q", s, back)
		}
	})
}

// bigDoc is a document of several MiB in parts of very different sizes.
func bigDoc(n int) *document {
	j := newJSONDoc()
	j.K("head", func(e *enc) { e.Str("x") })
	j.ArrayOf("items", n, func(e *enc, i int) {
		e.Obj(func() {
			e.K("i").Int(int64(i))
			e.K("pad").Str(strings.Repeat("p", i%997))
		})
	})
	return j.Done()
}

func TestDocumentReadsInPieces(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{0, 1, 100, 9000} {
		d := bigDoc(n)
		whole, err := jsonBytes(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.render(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if r.size != int64(len(whole)) {
			t.Fatalf("%d items: size %d, want %d", n, r.size, len(whole))
		}
		if n == 9000 && (r.bytes.Load() != nil || len(r.points) < 4) {
			t.Fatalf("%d items: %d checkpoints, kept %v", n, len(r.points), r.bytes.Load() != nil)
		}
		var at tail
		for off := int64(0); off < r.size; off += 100_003 {
			p := make([]byte, 100_003)
			m, err := r.readAt(ctx, p, off, &at)
			if err != nil || !bytes.Equal(p[:m], whole[off:min(off+int64(len(p)), r.size)]) {
				t.Fatalf("%d items: sequential read at %d differs (%v)", n, off, err)
			}
		}
		rapid.Check(t, func(t *rapid.T) {
			off := rapid.Int64Range(0, r.size+3).Draw(t, "off")
			p := make([]byte, rapid.IntRange(0, 5000).Draw(t, "n"))
			with := &at
			if rapid.Bool().Draw(t, "fresh") {
				with = nil
			}
			m, err := r.readAt(ctx, p, off, with)
			want := whole[min(off, r.size):min(off+int64(len(p)), r.size)]
			if err != nil || !bytes.Equal(p[:m], want) {
				t.Fatalf("read of %d at %d: got %d bytes, want %d (%v)", len(p), off, m, len(want), err)
			}
		})
	}
}

func TestDocumentStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := bigDoc(9000).render(ctx); err == nil {
		t.Error("a cancelled pass gave no error")
	}
}

func TestEncodeName(t *testing.T) {
	long := strings.Repeat("é", 130)
	for _, c := range []struct{ raw, want string }{
		{"", "%"}, {".", "%2E"}, {"..", "%2E%2E"}, {"...", "..."}, {"a/b", "a%2Fb"}, {"50%", "50%25"},
		{"tab\there", "tab%09here"}, {"\x7f", "%7F"}, {"a\xffb", "a%FFb"}, {"snow ☃", "snow ☃"},
		{long, strings.Repeat("é", 115) + "~" + fmt.Sprintf("%x", sha(long)[:4])},
		{strings.Repeat("/", 81), strings.Repeat("%2F", 77) + "~" + fmt.Sprintf("%x", sha(strings.Repeat("/", 81))[:4])},
		{strings.Repeat("a", 240), strings.Repeat("a", 240)},
	} {
		if got := EncodeName(c.raw); got != c.want {
			t.Errorf("EncodeName(%.20q): got %q, want %q", c.raw, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := string(rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "raw"))
		got := EncodeName(raw)
		if len(got) == 0 || len(got) > maxNameBytes || strings.ContainsAny(got, "/\x00") || !validText([]byte(got)) || got == "." || got == ".." {
			t.Fatalf("EncodeName(%q) = %q", raw, got)
		}
	})
}

func TestUniqueNames(t *testing.T) {
	u := newUniqueNames()
	var got []string
	for _, n := range []string{"a", "a", "a~2", "a", "b"} {
		got = append(got, u.take(n))
	}
	if want := "a a~2 a~2~2 a~3 b"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestInodeRange(t *testing.T) {
	if inode("a", "bc") == inode("ab", "c") {
		t.Error("inode does not tell lists of parts apart")
	}
	if first, again := inode("a"), inode("a"); first != again {
		t.Error("inode is not stable")
	}
	for i := range 1000 {
		if n := inode(fmt.Sprint(i)); n < 2 || n >= 1<<63 {
			t.Fatalf("inode %d out of range", n)
		}
	}
}
