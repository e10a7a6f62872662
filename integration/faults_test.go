package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// manifest is the path of a version's manifest, in either naming scheme.
func manifest(t testing.TB, table string, version uint64) string {
	t.Helper()
	for _, name := range manifestNames(version) {
		if p := filepath.Join(table, "_versions", name); fileExists(p) {
			return p
		}
	}
	t.Fatalf("%s has no version %d", table, version)
	return ""
}

// manifestNames are the names that a version's manifest has in the two schemes.
func manifestNames(version uint64) []string {
	return []string{fmt.Sprintf("%020d.manifest", math.MaxUint64-version), fmt.Sprintf("%d.manifest", version)}
}

func fileExists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// write replaces a file at once, as an object store does.
func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// lastErrors returns the lines of .frifs/errors.jsonl once one of them names what is looked for.
func lastErrors(t testing.TB, m *mounted, names string) {
	t.Helper()
	eventually(t, 10*time.Second, func() error {
		text := read(t, m.path(".frifs/errors.jsonl"))
		for line := range strings.Lines(text) {
			if strings.Contains(line, names) {
				var e map[string]any
				return json.Unmarshal([]byte(line), &e)
			}
		}
		return fmt.Errorf("errors.jsonl does not name %s: %q", names, text)
	})
}

func TestDamagedManifest(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(b []byte) []byte
	}{
		{"cut", func(b []byte) []byte { return b[:len(b)/2] }},
		{"empty", func([]byte) []byte { return nil }},
		{"position beyond the end", func(b []byte) []byte { b[len(b)-9] = 0x7f; return b }},
		{"text", func(b []byte) []byte { return bytes.Repeat([]byte("no manifest "), 10) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := testdata.Copy(t, "legacy/basic")
			for _, v := range []uint64{3, 5} { // one in the middle, and the latest
				write(t, manifest(t, table, v), c.damage([]byte(read(t, manifest(t, table, v)))))
			}
			m := mount(t, table)
			if got := sh(t, m.dir, "ls versions | paste -sd' '"); got != "1 2 3 4 5" {
				t.Errorf("versions: %s", got)
			}
			for _, dir := range []string{"versions/3", "latest"} {
				var e struct {
					Errors []struct{ File, Kind, Message, Path string }
				}
				if err := json.Unmarshal([]byte(read(t, m.path(dir+"/ERROR.json"))), &e); err != nil {
					t.Fatal(err)
				}
				if len(e.Errors) == 0 || e.Errors[0].Kind != "corrupt" || !strings.Contains(e.Errors[0].Path+e.Errors[0].Message, ".manifest") {
					t.Errorf("%s: %+v", dir, e)
				}
				if _, err := os.Stat(m.path(dir + "/version.json")); !isErrno(err, syscall.EIO) {
					t.Errorf("%s/version.json: %v, want EIO", dir, err)
				}
			}
			for _, v := range []string{"1", "2", "4"} {
				if got := sh(t, m.dir, "jq .dataset_version versions/"+v+"/version.json"); got != v {
					t.Errorf("version %s says %s", v, got)
				}
				if fileExists(m.path("versions/" + v + "/ERROR.json")) {
					t.Errorf("version %s has an ERROR.json", v)
				}
			}
		})
	}
}

func TestNewVersionAppears(t *testing.T) {
	table := testdata.Copy(t, "legacy/basic")
	newest := manifest(t, table, 5)
	content := []byte(read(t, newest))
	remove(t, newest)
	m := mount(t, table, "--poll-interval", "1s")
	if link, err := os.Readlink(m.path("latest")); err != nil || link != "versions/4" {
		t.Fatalf("latest -> %q: %v", link, err)
	}
	if fileExists(m.path("versions/5")) {
		t.Fatal("version 5 is there already")
	}
	before := read(t, m.path("dataset.json"))
	write(t, newest, content)
	eventually(t, 10*time.Second, func() error {
		link, err := os.Readlink(m.path("latest"))
		if err != nil || link != "versions/5" {
			return fmt.Errorf("latest -> %q: %w", link, err)
		}
		_, err = os.Stat(m.path("versions/5/fri/transitions/0001/mapping.csv"))
		return err
	})
	eventually(t, 10*time.Second, func() error {
		if after := read(t, m.path("dataset.json")); after == before {
			return fmt.Errorf("dataset.json is still the old one: %s", after)
		}
		return nil
	})
	if got := sh(t, m.dir, "ls versions | wc -l"); got != "5" {
		t.Errorf("%s versions", got)
	}
}

// A version number is written anew with other content (as after a drop and create).
func TestReplacedManifest(t *testing.T) {
	table := testdata.Copy(t, "legacy/basic")
	m := mount(t, table, "--poll-interval", "1s")
	path := m.path("versions/3/manifest.json")
	old := read(t, path)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, manifest(t, table, 3), []byte(read(t, manifest(t, table, 2))))
	eventually(t, 10*time.Second, func() error {
		b, err := os.ReadFile(path)
		if err == nil && string(b) == old {
			return fmt.Errorf("a new open still sees the old manifest")
		}
		return err
	})
	got, err := io.ReadAll(f)
	if err != nil && !isErrno(err, syscall.ESTALE) || err == nil && string(got) != old {
		t.Errorf("the old descriptor gives %d other bytes, or %v", len(got), err)
	}
}

// storedFile returns the path in the mount of one stored index file, and the file's path in the table.
func storedFile(t testing.TB, m *mounted, table, index string) (inMount, inTable string) {
	t.Helper()
	p := sh(t, m.dir, "ls -d latest/indices/"+index+"/*/stored/* | head -1")
	parts := strings.Split(p, "/")
	return m.path(p), filepath.Join(table, "_indices", parts[3], parts[5])
}

func TestReplacedFile(t *testing.T) {
	table := testdata.Copy(t, "legacy/basic")
	m := mount(t, table)
	path, real := storedFile(t, m, table, "*")
	old := read(t, path)
	if want := read(t, real); old != want {
		t.Fatalf("stored file: %d bytes, the table's has %d", len(old), len(want))
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	replacement := bytes.Repeat([]byte("replaced"), len(old)/8+100)
	write(t, real, replacement)
	eventually(t, 10*time.Second, func() error {
		b, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(b, replacement) {
			return fmt.Errorf("a new open sees %d bytes, want the %d new ones", len(b), len(replacement))
		}
		return err
	})
	got, err := io.ReadAll(f)
	if err != nil && !isErrno(err, syscall.ESTALE) || err == nil && string(got) != old {
		t.Errorf("the old descriptor gives %d other bytes, or %v", len(got), err)
	}
}

func TestR52_FilesThatVanish(t *testing.T) {
	table := testdata.Copy(t, "legacy/basic")
	m := mount(t, table)
	path, real := storedFile(t, m, table, "*")
	old := read(t, real)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	remove(t, real)
	eventually(t, 5*time.Second, func() error {
		_, err := os.ReadFile(path)
		if !isErrno(err, syscall.ENOENT) && !isErrno(err, syscall.ESTALE) {
			return fmt.Errorf("open of a file that vanished: %w", err)
		}
		return nil
	})
	got, err := io.ReadAll(f)
	if err != nil && !isErrno(err, syscall.ESTALE) || err == nil && string(got) != old {
		t.Errorf("the old descriptor gives %d bytes, %v", len(got), err)
	}
	lastErrors(t, m, filepath.Base(real))
	sh(t, m.dir, "cat latest/fri/transitions/0001/mapping.csv latest/manifest.json > /dev/null")
	if present := sh(t, m.dir, `jq -r --arg f "$1" '[.. | objects | select(.path? // "" | endswith($f)) | .present] | first' latest/scan/files.json`, filepath.Base(real)); present != "false" {
		t.Errorf("scan/files.json says present: %s", present)
	}
}

func TestOneBrokenFile(t *testing.T) {
	table := testdata.Copy(t, "tagged/chain")
	maps, err := filepath.Glob(filepath.Join(table, "_fri", "*", "stable_partition.lance"))
	if err != nil || len(maps) != 1 {
		t.Fatal(maps, err)
	}
	write(t, maps[0], bytes.Repeat([]byte{0xA5}, len(read(t, maps[0]))))
	m := mount(t, table)
	if _, err := os.ReadFile(m.path("latest/fri/transitions/0004/mapping.csv")); !isErrno(err, syscall.EIO) {
		t.Errorf("mapping.csv of the broken row map: %v, want EIO", err)
	}
	lastErrors(t, m, "stable_partition.lance")
	for _, tr := range []string{"0001", "0002", "0003", "0005"} {
		sh(t, m.dir, "cat latest/fri/transitions/"+tr+"/mapping.csv latest/fri/transitions/"+tr+"/transition.json > /dev/null")
	}
	unresolved := sh(t, m.dir, `awk -F, '$7=="unresolved"{print $2}' latest/fri/scan/composed.csv | sort -nu | paste -sd' '`)
	if unresolved != "0 1 2 3 6 7 8" {
		t.Errorf("unresolved addresses in the fragments %s, want those that lead to the broken partition", unresolved)
	}
	if got := sh(t, m.dir, `awk -F, '$2==4 && $7=="moved"' latest/fri/scan/composed.csv | wc -l`); got == "0" {
		t.Error("fragment 4 does not need the broken partition, and yet nothing of it moved")
	}
}
