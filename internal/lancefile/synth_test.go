package lancefile_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/lancefile"
)

var update = flag.Bool("update", false, "write the golden files of synthesised results anew")

// all reads a synthesised file whole.
func all(t testing.TB, s *lancefile.Synth) []byte {
	t.Helper()
	b := make([]byte, s.Size())
	if n, err := s.ReadAt(t.Context(), b, 0); err != nil || int64(n) != s.Size() {
		t.Fatalf("ReadAt gives %d of %d bytes: %v", n, s.Size(), err)
	}
	return b
}

func synthesise(t testing.TB, b []byte, e lancefile.Edit) []byte {
	t.Helper()
	s, err := lancefile.Synthesise(t.Context(), open(t, b), e)
	if err != nil {
		t.Fatal(err)
	}
	return all(t, s)
}

// values is a Flat of the given values.
func values(column int, v ...uint64) lancefile.Flat {
	return lancefile.Flat{Column: column, Fill: func(_ context.Context, from uint64, dst []uint64) error {
		copy(dst, v[from:])
		return nil
	}}
}

// compareGolden compares with testdata/golden/<name>.golden, which is hexadecimal.
func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".golden")
	if *update {
		var text strings.Builder
		for b := got; len(b) > 0; b = b[min(32, len(b)):] {
			text.WriteString(hex.EncodeToString(b[:min(32, len(b))]) + "\n")
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%x, want\n%x", name, got, want)
	}
}

func TestSynthesiseGolden(t *testing.T) {
	ids := []uint64{1<<32 | 5, 0xFFFFFFFE<<32 | 1, 3<<32 | 7}
	for _, name := range []string{"mini20", "mini22", "mini23"} {
		t.Run(name, func(t *testing.T) {
			original := golden(t, name)
			got := synthesise(t, original, lancefile.Edit{Flats: []lancefile.Flat{values(0, ids...)}})
			compareGolden(t, name+"_ids", got)
			f := open(t, got)
			for i, v := range read[uint64](t, f, 0) {
				if uint64(v) != ids[i] {
					t.Errorf("id %d is %d, want %d", i, uint64(v), ids[i])
				}
			}
			if v := read[uint16](t, f, 1); !slices.Equal(v, goldenLabels) {
				t.Errorf("label %v, want %v", v, goldenLabels)
			}
			if name == "mini20" {
				if len(got) != len(original) || !bytes.Equal(got[24:], original[24:]) {
					t.Error("an overlay changes more than the ids")
				}
				return
			}
			// The new buffer and its padding; and the page's offset, 128, takes two bytes instead of one.
			if want := len(original) + 64 + 1; len(got) != want {
				t.Errorf("size %d, want %d", len(got), want)
			}
		})
	}
}
