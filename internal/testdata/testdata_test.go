package testdata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryDatasetIsThere(t *testing.T) {
	want := map[string]int{"legacy": 37, "tagged": 16, "spliced": 40}
	for family, n := range want {
		names := Names(t, family)
		if len(names) != n {
			t.Errorf("%s: got %d datasets, want %d: %v", family, len(names), n, names)
		}
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(Dataset(t, name), "_versions")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestExpectedIsAscendingAndComplete(t *testing.T) {
	counts := map[string]int{ // from testdata/README.md
		"legacy/basic": 435, "legacy/chain": 3753, "legacy/weird_names": 423, "legacy/external": 636789,
		"tagged/chain": 3849, "tagged/clone": 1334,
	}
	for _, family := range []string{"legacy", "tagged"} {
		for _, name := range Names(t, family) {
			if !HasExpected(t, name) {
				continue
			}
			n, before := 0, uint64(0)
			for r := range Expected(t, name) {
				if n > 0 && r.Old <= before {
					t.Fatalf("%s: address %d after %d", name, r.Old, before)
				}
				before = r.Old
				n++
				outcome, addr := Want(r)
				if hasAddr := outcome != "dropped" && outcome != "dangling"; hasAddr != (addr != nil) {
					t.Fatalf("%s: %d: Want gives %s with address %v", name, r.Old, outcome, addr)
				}
			}
			if want, ok := counts[name]; ok && n != want {
				t.Errorf("%s: got %d rows, want %d", name, n, want)
			}
			if _, _, sampled := Hashes(t, name); sampled != (name == "tagged/big" || name == "tagged/external") {
				t.Errorf("%s: sampled %v", name, sampled)
			}
		}
	}
}

func TestWant(t *testing.T) {
	ptr := func(a uint64) *uint64 { return &a }
	recorded := &expectation{kept: map[uint32]bool{1: true}, unrecorded: map[uint64]bool{1<<32 | 9: true}}
	bare := &expectation{none: true}
	for _, c := range []struct {
		name    string
		row     Row
		outcome string
		addr    *uint64
	}{
		{"moved", Row{Old: 1 << 32, Outcome: "moved", New: ptr(7), Detail: "live", Last: ptr(7), of: recorded}, "moved", ptr(7)},
		{"deleted now", Row{Old: 1 << 32, Outcome: "dropped", Detail: "deleted_after", Last: ptr(7), of: recorded}, "deleted_now", ptr(7)},
		{"dangling", Row{Old: 2 << 32, Outcome: "dropped", Detail: "dangling", Last: ptr(2 << 32), of: recorded}, "dangling", nil},
		{"dropped by a kept record", Row{Old: 1 << 32, Outcome: "dropped", Detail: "deleted_before", of: recorded}, "dropped", nil},
		{"dropped by a record that is gone", Row{Old: 3 << 32, Outcome: "dropped", Detail: "deleted_before", of: recorded}, "dangling", nil},
		{"moved without a record", Row{Old: 1<<32 | 9, Outcome: "moved", New: ptr(7), Detail: "live", Last: ptr(7), of: recorded}, "dangling", nil},
		{"no history, stayed", Row{Old: 5, Outcome: "same", New: ptr(5), Detail: "live", Last: ptr(5), of: bare}, "same", ptr(5)},
		{"no history, deleted", Row{Old: 5, Outcome: "dropped", Detail: "deleted_after", Last: ptr(5), of: bare}, "deleted_now", ptr(5)},
		{"no history, moved", Row{Old: 5, Outcome: "moved", New: ptr(7), Detail: "live", Last: ptr(7), of: bare}, "dangling", nil},
	} {
		outcome, addr := Want(c.row)
		if outcome != c.outcome || (addr == nil) != (c.addr == nil) || addr != nil && *addr != *c.addr {
			t.Errorf("%s: got %s %v, want %s %v", c.name, outcome, addr, c.outcome, c.addr)
		}
	}
}

func TestHashesOfSamples(t *testing.T) {
	all, fragments, ok := Hashes(t, "tagged/external")
	if !ok || !strings.HasPrefix(all, "eaa09a1a") || len(fragments) != 6 || fragments[3].Rows != 100 {
		t.Errorf("got %q %v %v", all, fragments, ok)
	}
}

func TestCopyIsPrivateAndKeepsTimes(t *testing.T) {
	src, dst := Dataset(t, "spliced/s_v0"), Copy(t, "spliced/s_v0")
	if src == dst {
		t.Fatal("not a copy")
	}
	list := func(root string) (s []string) {
		err := filepath.Walk(root, func(p string, st os.FileInfo, err error) error {
			if err != nil || st.IsDir() {
				return err
			}
			s = append(s, strings.TrimPrefix(p, root)+" "+st.ModTime().UTC().String())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if got, want := strings.Join(list(dst), "\n"), strings.Join(list(src), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCompleteNoticesMissingFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "", "b": "", countFile: "2"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !complete(dir) {
		t.Error("not complete with all files")
	}
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if complete(dir) {
		t.Error("complete with a file missing")
	}
}
