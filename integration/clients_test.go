package integration

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// The mounts that the read-only tests of this file look at: both generations, and names of every kind.
var looked = []string{"legacy/multi", "tagged/fanout", "tagged/clone", "legacy/weird_names", "legacy/no_record"}

// walk calls f for every file below dir, links not followed.
func walk(t testing.TB, dir string, f func(path string, d fs.DirEntry)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			f(p, d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestListings(t *testing.T) {
	for _, name := range looked {
		t.Run(name, func(t *testing.T) {
			m := mountDataset(t, name)
			long := sh(t, m.dir, "LC_ALL=C ls -lR .")
			if strings.Contains(long, "?????") {
				t.Error("ls -lR shows entries without attributes")
			}
			found := strings.Split(sh(t, m.dir, "find . -print0 | tr '\\n\\0' '?\\n'"), "\n")
			if len(found) < 30 {
				t.Errorf("find gives only %d names", len(found))
			}
			walk(t, m.dir, func(p string, d fs.DirEntry) {
				if !d.IsDir() {
					return
				}
				f, err := os.Open(p)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				names, err := f.Readdirnames(-1) // as the file system gives them
				if err != nil {
					t.Fatal(err)
				}
				if !slices.IsSorted(names) {
					t.Errorf("%s is not in byte order: %q", p, names)
				}
				if slices.Sort(names); len(slices.Compact(slices.Clone(names))) != len(names) {
					t.Errorf("%s has a name twice: %q", p, names)
				}
			})
		})
	}
}

func TestSizesAreExact(t *testing.T) {
	for _, name := range looked {
		t.Run(name, func(t *testing.T) {
			m := mountDataset(t, name)
			files := 0
			walk(t, m.dir, func(p string, d fs.DirEntry) {
				if !d.Type().IsRegular() {
					return
				}
				f, err := os.Open(p)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				st, err := f.Stat()
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, f)
				if err != nil || n != st.Size() {
					t.Errorf("%s: stat says %d, read gives %d: %v", p, st.Size(), n, err)
				}
				sys := st.Sys().(*syscall.Stat_t)
				perm := os.FileMode(0o444)
				if strings.Contains(p, "/remapped.lance/") {
					perm = 0o644 // a copy is to be written to
				}
				if sys.Nlink != 1 || sys.Blocks != (st.Size()+511)/512 || st.Mode().Perm() != perm || st.ModTime().Unix() == 0 {
					t.Errorf("%s: nlink %d, blocks %d for %d bytes, mode %v, time %v", p, sys.Nlink, sys.Blocks, st.Size(), st.Mode(), st.ModTime())
				}
				files++
			})
			if files < 20 {
				t.Errorf("only %d files", files)
			}
		})
	}
}

func TestInodes(t *testing.T) {
	inodes := func() map[string]uint64 {
		m := mountDataset(t, "tagged/fanout")
		defer m.stop()
		all, paths := map[string]uint64{}, map[uint64]string{}
		walk(t, m.dir, func(p string, d fs.DirEntry) {
			st, err := d.Info()
			if err != nil {
				t.Fatal(err)
			}
			rel := strings.TrimPrefix(p, m.dir)
			if strings.HasPrefix(rel, "/.frifs") || rel == "/dataset.json" {
				return // live: another inode whenever the content is another
			}
			ino := st.Sys().(*syscall.Stat_t).Ino
			if other, ok := paths[ino]; ok || ino == 0 {
				t.Errorf("%s has inode %d, like %q", rel, ino, other)
			}
			all[rel], paths[ino] = ino, rel
		})
		return all
	}
	first, second := inodes(), inodes()
	if len(first) < 50 || len(first) != len(second) {
		t.Errorf("%d files, then %d", len(first), len(second))
	}
	for p, ino := range first {
		if p != "" && second[p] != ino {
			t.Errorf("%s: inode %d, after a remount %d", p, ino, second[p])
		}
	}
}

func TestEveryJSONFileIsValid(t *testing.T) {
	needTool(t, "jq")
	for _, name := range looked {
		t.Run(name, func(t *testing.T) {
			m := mountDataset(t, name)
			n := sh(t, m.dir, `find . -name '*.json' -print0 | xargs -0 jq -e 'type == "object"' | sort | uniq -c`)
			if f := strings.Fields(n); len(f) != 2 || f[1] != "true" {
				t.Errorf("jq says %q", n)
			}
			sh(t, m.dir, `! find . -name '*.json' -print0 | xargs -0 -n1 tail -c1 | grep -q .`) // each ends with a newline
			if keys := sh(t, m.dir, `jq -r 'keys_unsorted | join(",")' latest/fri/history.json`); !strings.HasPrefix(keys, "dataset_version,present,index_version,tagged,uuid,created_at,fragment_bitmap,storage,flags_ok,warnings,errors,transitions") {
				t.Errorf("history.json has keys %s", keys)
			}
		})
	}
}

// The questions that people ask a mapping with awk, sort, cut and join, answered from two files that must agree.
func TestTextTools(t *testing.T) {
	m := mountDataset(t, "tagged/chain")
	for i := 1; i <= 5; i++ {
		dir := fmt.Sprintf("latest/fri/transitions/%04d", i)
		rows := sh(t, m.dir, `awk -F, 'NR==1{next} $4==""{d++} END{print NR-1, d+0}' `+dir+`/mapping.csv`)
		counts := sh(t, m.dir, `jq -r '.rows | "\(.in) \(.dropped)"' `+dir+`/transition.json`)
		if rows != counts {
			t.Errorf("%s: awk counts %q rows and drops, transition.json says %q", dir, rows, counts)
		}
		forward := sh(t, m.dir, `tail -n +2 `+dir+`/mapping.csv | awk -F, '$4!=""' | cut -d, -f1,4 | sort`)
		inverse := sh(t, m.dir, `tail -n +2 `+dir+`/scan/inverse.csv | cut -d, -f4,1 | awk -F, '{print $2","$1}' | sort`)
		if forward != inverse {
			t.Errorf("%s: mapping.csv and inverse.csv disagree", dir)
		}
		wrong := sh(t, m.dir, `awk -F, 'NR>1 && ($1 != $2*4294967296+$3 || $4!="" && $4 != $5*4294967296+$6) {n++} END{print n+0}' `+dir+`/mapping.csv`)
		if wrong != "0" {
			t.Errorf("%s: %s lines whose address is not fragment and offset", dir, wrong)
		}
	}
	outcomes := sh(t, m.dir, `tail -n +2 latest/fri/scan/composed.csv | cut -d, -f7 | sort | uniq -c | awk '{print $2"="$1}' | paste -sd' '`)
	want := map[string]int{}
	kept := map[string]bool{}
	for _, f := range strings.Fields(sh(t, m.dir, `jq -r '.transitions[].sources[].fragment' latest/fri/history.json`)) {
		kept[f] = true
	}
	for r := range testdata.Expected(t, "tagged/chain") {
		if kept[fmt.Sprint(r.Old>>32)] {
			o, _ := testdata.Want(r)
			want[o]++
		}
	}
	for _, o := range strings.Fields(outcomes) {
		k, n, _ := strings.Cut(o, "=")
		if fmt.Sprint(want[k]) != n {
			t.Errorf("composed.csv has %s %s, want %d", n, k, want[k])
		}
		delete(want, k)
	}
	if len(want) > 0 {
		t.Errorf("composed.csv lacks %v", want)
	}
}

func TestCopyEqualsCat(t *testing.T) {
	name := "tagged/clone"
	m := mountDataset(t, name)
	dst := t.TempDir()
	sh(t, m.dir, `cp -r versions/14 versions/12 latest "$1"`, dst)
	sh(t, m.dir, `diff -r versions/14 "$1/14"; diff -r versions/12 "$1/12"`, dst)
	if link, err := os.Readlink(m.path("latest")); err != nil || link != "versions/14" {
		t.Errorf("latest -> %q: %v", link, err)
	}
	var paths []string
	walk(t, filepath.Join(dst, "14"), func(p string, d fs.DirEntry) {
		if d.Type().IsRegular() {
			paths = append(paths, strings.TrimPrefix(p, dst+"/14/"))
		}
	})
	if len(paths) < 40 {
		t.Fatalf("only %d files copied", len(paths))
	}
	for _, p := range paths {
		got := frifs(t, append([]string{"cat", testdata.Dataset(t, name), "latest/" + p}, rebase(t, name)...)...)
		if want := read(t, filepath.Join(dst, "14", p)); got != want {
			t.Errorf("%s: frifs cat gives %d bytes, the copy has %d", p, len(got), len(want))
		}
	}
}

func TestTailOfFile(t *testing.T) {
	m := mountDataset(t, "legacy/external")
	mapping := "latest/fri/transitions/0001/mapping.csv"
	whole := sh(t, m.dir, "cat "+mapping+" | tail -c 1000")
	if got := sh(t, m.dir, "tail -c 1000 "+mapping); got != whole {
		t.Errorf("tail -c gives\n%s\nwant\n%s", got, whole)
	}
	if got, want := sh(t, m.dir, "tail -n 3 "+mapping), sh(t, m.dir, "cat "+mapping+" | tail -n 3"); got != want {
		t.Errorf("tail -n gives\n%s\nwant\n%s", got, want)
	}
	if n := sh(t, m.dir, "wc -l < "+mapping); n == "0" {
		t.Error("no lines")
	}
}

// dd reads single ranges, with each of its own block sizes and offsets, from a fresh mount each time.
func TestDD(t *testing.T) {
	m := mountDataset(t, "legacy/external")
	file := m.path("latest/fri/transitions/0001/mapping.csv")
	whole := []byte(read(t, file))
	fresh := mountDataset(t, "legacy/external") // nothing of it is in the page cache
	file = fresh.path("latest/fri/transitions/0001/mapping.csv")
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		off, n := rng.IntN(len(whole)), 1+rng.IntN(70_000)
		if rng.IntN(5) == 0 {
			off = len(whole) - rng.IntN(10)
		}
		got := command(t, "", "dd", "if="+file, "iflag=skip_bytes,count_bytes,fullblock", fmt.Sprintf("skip=%d", off), fmt.Sprintf("count=%d", n), "bs=4093", "status=none")
		if want := whole[off:min(off+n, len(whole))]; got.code != 0 || got.stdout != string(want) {
			t.Fatalf("dd skip=%d count=%d: exit %d, %d bytes, want %d: %s", off, n, got.code, len(got.stdout), len(want), got.stderr)
		}
	}
}

func TestRandomRanges(t *testing.T) {
	for _, name := range []string{"tagged/fanout", "tagged/labels23", "legacy/chain"} {
		t.Run(name, func(t *testing.T) {
			m, fresh := mountDataset(t, name), mountDataset(t, name)
			rng := rand.New(rand.NewPCG(3, 4))
			walk(t, m.path("latest/fri"), func(p string, d fs.DirEntry) {
				if !d.Type().IsRegular() {
					return
				}
				whole := []byte(read(t, p))
				f, err := os.Open(fresh.path(strings.TrimPrefix(p, m.dir)))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				for range 20 {
					off, n := rng.IntN(len(whole)+2), []int{1, 7, 4096, 100_000}[rng.IntN(4)]
					buf := make([]byte, n)
					got, err := f.ReadAt(buf, int64(off))
					want := whole[min(off, len(whole)):min(off+n, len(whole))]
					if !bytes.Equal(buf[:got], want) || (got < n) != (err == io.EOF) {
						t.Fatalf("%s at %d, %d bytes: got %d bytes %v, want %d", p, off, n, got, err, len(want))
					}
				}
			})
		})
	}
}

func TestParallelReaders(t *testing.T) {
	m := mountDataset(t, "tagged/chain")
	var paths []string
	walk(t, m.path("versions/29/fri"), func(p string, d fs.DirEntry) {
		if d.Type().IsRegular() {
			paths = append(paths, p)
		}
	})
	want := map[string]string{}
	for _, p := range paths {
		want[p] = read(t, p)
	}
	fresh := mountDataset(t, "tagged/chain")
	var wg sync.WaitGroup
	for reader := range 50 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(reader), 5))
			for range 40 {
				p := paths[rng.IntN(len(paths))]
				b, err := os.ReadFile(fresh.path(strings.TrimPrefix(p, m.dir)))
				if err != nil || string(b) != want[p] {
					t.Errorf("%s: %d bytes, want %d: %v", p, len(b), len(want[p]), err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestReadOnly(t *testing.T) {
	m := mountDataset(t, "legacy/basic")
	file, dir := m.path("latest/version.json"), m.path("versions/5")
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"create", func() error { _, err := os.Create(filepath.Join(dir, "x")); return err }},
		{"write", func() error { _, err := os.OpenFile(file, os.O_WRONLY, 0); return err }},
		{"append", func() error { _, err := os.OpenFile(file, os.O_RDWR|os.O_APPEND, 0); return err }},
		{"truncate", func() error { return os.Truncate(file, 0) }},
		{"remove", func() error { return os.Remove(file) }},
		{"rmdir", func() error { return syscall.Rmdir(dir) }},
		{"mkdir", func() error { return os.Mkdir(filepath.Join(dir, "x"), 0o755) }},
		{"rename", func() error { return os.Rename(file, filepath.Join(dir, "x")) }},
		{"symlink", func() error { return os.Symlink("a", filepath.Join(dir, "x")) }},
		{"link", func() error { return os.Link(file, filepath.Join(dir, "x")) }},
		{"chmod", func() error { return os.Chmod(file, 0o777) }},
		{"chtimes", func() error { return os.Chtimes(file, time.Now(), time.Now()) }},
	} {
		if err := c.do(); !isErrno(err, syscall.EROFS) {
			t.Errorf("%s: got %v, want EROFS", c.name, err)
		}
	}
}
