package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// slow mounts a table through integration/slowmount and returns a function that gives the calls of the store ("Method
// name" → count) since it was asked last.
func slow(t testing.TB, table string, flags ...string) (*mounted, func() map[string]int) {
	t.Helper()
	needFUSE(t)
	dir := filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	m := start(t, dir, slowmount, append(append([]string{"-report", report}, flags...), table, dir)...)
	m.ready()
	return m, func() map[string]int {
		t.Helper()
		_ = os.Remove(report)
		m.signal(syscall.SIGUSR1)
		calls := map[string]int{}
		eventually(t, 5*time.Second, func() error {
			b, err := os.ReadFile(report)
			if err != nil {
				return err
			}
			return json.Unmarshal(b, &calls)
		})
		return calls
	}
}

// manyVersions makes a table of the newest n versions of legacy/many_versions, without any data file: whoever needs one
// fails.
func manyVersions(t testing.TB, n uint64) string {
	t.Helper()
	src, dst := testdata.Dataset(t, "legacy/many_versions"), filepath.Join(t.TempDir(), "many.lance")
	for _, dir := range []string{"_versions", "data"} {
		if err := os.MkdirAll(filepath.Join(dst, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, src, `cp -a _indices _transactions _deletions "$1"`, dst)
	latest := latestVersion(t, src)
	for v := latest - n + 1; v <= latest; v++ {
		p := manifest(t, src, v)
		sh(t, src, `cp -a "$1" "$2"`, p, filepath.Join(dst, "_versions", filepath.Base(p)))
	}
	return dst
}

// What people and their shells do without thinking, on a store with 50 ms latency: no cost class above C1, and few
// requests (docs/DESIGN.md, "Cost classes").
func TestCrawlers(t *testing.T) {
	const versions = 100
	table := manyVersions(t, versions)
	m, calls := slow(t, table, "-delay", "50ms")
	calls()
	check := func(name string, perManifest, perHistory, others int, script string) {
		t.Helper()
		begin := time.Now()
		sh(t, m.dir, script)
		took := time.Since(begin)
		manifests, histories, rest, tails := map[string]int{}, map[string]int{}, 0, 0
		for call, n := range calls() {
			method, object, _ := strings.Cut(call, " ")
			switch {
			case strings.HasPrefix(object, "data/"):
				t.Errorf("%s: %s reads data", name, call)
			case strings.HasPrefix(object, "_versions/") && method != "List":
				manifests[object] += n
			case strings.HasSuffix(object, "details.binpb"):
				histories[object] += n
			case strings.HasPrefix(object, "_indices/") && (method == "ReadAt" || method == "ReadRange"):
				// segment.json tells the rows and columns of the files: their tails are read, once for all versions.
				if tails += n; n > 6 {
					t.Errorf("%s: %s %d times: more than the tail of an index file", name, call, n)
				}
			default:
				rest += n
			}
		}
		for object, n := range manifests {
			if n > perManifest {
				t.Errorf("%s: %d requests for %s, at most %d are allowed", name, n, object, perManifest)
			}
		}
		for object, n := range histories {
			if n > perHistory {
				t.Errorf("%s: %d requests for %s, at most %d are allowed", name, n, object, perHistory)
			}
		}
		if rest > others {
			t.Errorf("%s: %d other requests, at most %d are allowed", name, rest, others)
		}
		t.Logf("%s: %v, %d manifests, %d other requests, %d for tails of index files", name, took.Round(time.Millisecond), len(manifests), rest, tails)
	}
	check("ls of versions", 0, 0, 20, `ls versions | wc -l | grep -qx 100`)
	check("ls -l of versions", 0, 0, 20, `ls -l versions > /dev/null`)
	check("tab completion", 0, 0, 20, `compgen -f versions/14 > /dev/null`)
	check("ls of a version", 2, 2, 20, `ls latest/ > /dev/null`)
	check("ls --color", 2, 2, 40, `ls --color=always . versions latest/ latest/fri > /dev/null`)
	check("completion inside", 2, 2, 40, `compgen -G 'versions/149*/fri/hist*' > /dev/null`)
	check("find -name", 2, 2, 4*versions, `find . -name 'mapping.csv' | wc -l | grep -vqx 0`)
	check("ls -lR without scan", 2, 2, 8*versions, `find . -name scan -prune -o -name .frifs -prune -o -name "remapped*" -prune -o -exec ls -ld {} + > /dev/null`)
	check("du", 2, 2, 8*versions, `du -s --exclude=scan --exclude="remapped*" . > /dev/null`)
}

// With a store that takes longer than the bound, every request ends in time with an errno, and a reader that is killed
// is gone at once.
func TestSlowStore(t *testing.T) {
	m, calls := slow(t, testdata.Dataset(t, "legacy/basic"), "-delay", "5s", "-op-timeout", "2s", "-slow-after-mount")
	calls() // answered once the store is slow: the mount can be seen a moment before
	begin := time.Now()
	_, err := os.ReadFile(m.path("versions/3/manifest.json"))
	took := time.Since(begin)
	if !isErrno(err, syscall.ETIMEDOUT) {
		t.Errorf("got %v, want ETIMEDOUT", err)
	}
	if took > 4*time.Second {
		t.Errorf("took %v with a bound of 2 s", took)
	}
	cat := start(t, t.TempDir(), "cat", m.path("versions/2/manifest.json"))
	eventually(t, 5*time.Second, func() error { // until it waits for the answer
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", cat.cmd.Process.Pid))
		if err == nil && strings.HasPrefix(string(b), "running") {
			return fmt.Errorf("not waiting yet")
		}
		return nil
	})
	cat.signal(syscall.SIGKILL)
	if !cat.ended(3 * time.Second) {
		t.Error("a killed reader is still there after 3 s")
	}
	if got := read(t, m.path("README.txt")); got == "" {
		t.Error("the mount no longer serves")
	}
}
