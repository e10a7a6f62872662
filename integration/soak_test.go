package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// soakTime is how long TestSoak goes on: FRIFS_SOAK, or thirty seconds.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	d := 30 * time.Second
	if text := os.Getenv("FRIFS_SOAK"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatalf("FRIFS_SOAK: %v", err)
		}
	}
	return d
}

// soak is a table that is written to while many read what a mount shows of it.
type soak struct {
	t     *testing.T
	m     *mounted
	table string
	end   time.Time
	keep  time.Duration // how old a version gets before it is cleaned up
	truth *truth

	files    atomic.Int64 // that were read and found right
	rows     atomic.Int64 // lines that say where an address leads to, and were found right
	pages    atomic.Int64 // rows of remapped index pages that were found right
	opened   atomic.Int64 // remapped datasets that answered as a scan does
	branches atomic.Int64 // versions of branches that were looked at
	gone     atomic.Int64 // failures since a version was cleaned up under a reader
	stale    atomic.Int64 // of these, files that were open
	held     atomic.Int64 // files that were open when their version was cleaned up, and kept their bytes
}

// TestSoak has official Lance append, delete, update, compact, index, tag, branch and clean up in a loop, while eight
// readers walk, read and compare: every file that opens is right for its version, and an open file stays what it was or is
// stale.
func TestSoak(t *testing.T) {
	table := filepath.Join(t.TempDir(), "t.lance")
	w := startWriter(t, table)
	s := &soak{t: t, table: table, truth: newTruth()}
	for _, what := range []string{"append", "append", "index", "append", "compact", "branch side"} {
		s.truth.learn(w.do(what))
	}
	s.m = mount(t, table, "--poll-interval", "500ms", "--memory", "64MiB")
	long := soakTime(t)
	s.end, s.keep = time.Now().Add(long), min(max(long/5, 4*time.Second), 20*time.Second)
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() { s.read(i) })
	}
	readers.Go(s.hold)
	for i := 0; time.Now().Before(s.end) && !t.Failed(); i++ {
		s.write(w, i)
	}
	readers.Wait()
	if t.Failed() {
		return
	}
	// When all is quiet the mount shows what is there.
	last := w.do("append")
	s.truth.learn(last)
	if r := command(t, "", exe, "refresh", s.m.dir); r.code != 0 {
		t.Errorf("refresh: %+v", r)
	}
	s.m.leads(0, last.Version)
	if err := s.version(w, rand.New(rand.NewPCG(0, 0)), last.Version); err != nil {
		t.Errorf("the newest version: %v", err)
	}
	status := read(t, s.m.path(".frifs/status.json"))
	for _, rec := range s.errors() {
		// That an index claims more than its files prove is a fact about what was written.
		if rec.Kind != "not_found" && rec.Kind != "stale" && !strings.Contains(rec.Message, "that its files do not prove") {
			t.Errorf("errors.jsonl: %+v", rec)
		}
	}
	t.Logf("%d versions, %d files, %d addresses, %d rows of pages, %d remapped datasets, %d versions of branches; %d failures since a version was cleaned up, %d of them of open files; %d open files kept their bytes",
		len(s.truth.versions), s.files.Load(), s.rows.Load(), s.pages.Load(), s.opened.Load(), s.branches.Load(), s.gone.Load(), s.stale.Load(), s.held.Load())
	if s.files.Load() < 200 || s.rows.Load() < 1000 || s.pages.Load() < 100 || s.opened.Load() < 3 || s.branches.Load() < 1 {
		t.Errorf("too little was looked at: %s", status)
	}
}

// write does the i-th thing to the table.
func (s *soak) write(w *writer, i int) {
	clean := fmt.Sprintf("cleanup %.1f", s.keep.Seconds())
	steps := []string{"append", "delete", "compact", "tag kept", "append", "grow side", "update", "optimize", "compact", "branch side", clean,
		"append", "index", "delete", "compact", "tag moving", "update", "append", "grow side", "compact", clean, "unbranch side", "untag kept", "branch side"}
	what := steps[i%len(steps)]
	d, err := w.try(what)
	if err == nil && d.Error != "" {
		err = errors.New(d.Error)
	}
	if err != nil {
		s.t.Errorf("the writer could not %s: %v", what, err)
		return
	}
	s.truth.learn(d)
}

// read is one reader: it goes from version to version until the end.
func (s *soak) read(i int) {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	w := startWriter(s.t, s.table) // reads only
	for time.Now().Before(s.end) && !s.t.Failed() {
		if r.IntN(6) == 0 {
			if err := s.branch(w, r, "side"); err != nil {
				s.t.Errorf("reader %d, branch: %v", i, err)
				return
			}
			continue
		}
		v, ok := s.choose(r)
		if !ok {
			continue
		}
		if err := s.version(w, r, v); err != nil && !s.vanished("versions", v, err) {
			s.t.Errorf("reader %d, version %d: %v", i, v, err)
			return
		}
	}
}

// choose takes a version from a fresh listing, or what latest or a tag leads to.
func (s *soak) choose(r *rand.Rand) (uint64, bool) {
	var name string
	switch r.IntN(4) {
	case 0:
		target, err := os.Readlink(s.m.path("latest"))
		if err != nil {
			s.t.Errorf("latest: %v", err)
			return 0, false
		}
		name = filepath.Base(target)
	case 1:
		tag := []string{"kept", "moving"}[r.IntN(2)]
		target, err := os.Readlink(s.m.path("tags/" + tag))
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) && !isErrno(err, syscall.ESTALE) {
				s.t.Errorf("tag %s: %v", tag, err)
			}
			return 0, false
		}
		name = filepath.Base(target)
	default:
		var ok bool
		if name, ok = s.anyOf(r, "versions"); !ok {
			return 0, false
		}
	}
	v, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		s.t.Errorf("a version called %s: %v", name, err)
	}
	return v, err == nil
}

// anyOf takes a name from a fresh listing.
func (s *soak) anyOf(r *rand.Rand, dir string) (string, bool) {
	names, err := os.ReadDir(s.m.path(dir))
	if err != nil || len(names) == 0 {
		if dir == "versions" || err != nil && !errors.Is(err, fs.ErrNotExist) && !isErrno(err, syscall.ESTALE) {
			s.t.Errorf("%s: %d versions, %v", dir, len(names), err)
		}
		return "", false
	}
	return names[r.IntN(len(names))].Name(), true
}

// vanished reports whether err came because the version was cleaned up: then it leaves the listing, and err says that
// something is not there. That an open file is stale has its reason in errors.jsonl.
func (s *soak) vanished(dir string, v uint64, err error) bool {
	text := strings.ToLower(err.Error())
	stale := isErrno(err, syscall.ESTALE) || strings.Contains(text, "stale")
	if !stale && !errors.Is(err, fs.ErrNotExist) && !strings.Contains(text, "not found") && !strings.Contains(text, "no such file") {
		return false
	}
	version := fmt.Sprintf("%s/%d", dir, v)
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		_, serr := os.Stat(s.m.path(version))
		if errors.Is(serr, fs.ErrNotExist) && (!stale || s.reason(version)) {
			s.gone.Add(1)
			if stale {
				s.stale.Add(1)
			}
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// errorLine is a line of errors.jsonl.
type errorLine struct{ Kind, Path, Message string }

func (s *soak) errors() (out []errorLine) {
	b, err := os.ReadFile(s.m.path(".frifs/errors.jsonl"))
	if err != nil {
		s.t.Errorf("errors.jsonl: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		var rec errorLine
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			s.t.Errorf("errors.jsonl: %q: %v", line, err)
		}
		out = append(out, rec)
	}
	return out
}

// reasonInTime waits for reason: errors.jsonl is a live file, and what the kernel has of it may be two seconds old.
func (s *soak) reasonInTime(version string) bool {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if s.reason(version) {
			return true
		}
	}
	return false
}

// reason reports whether errors.jsonl says of a version that something of it is gone. That the version is, too, a failure
// does not know where the last look at the versions was less than a second ago.
func (s *soak) reason(version string) bool {
	return slices.ContainsFunc(s.errors(), func(rec errorLine) bool {
		return strings.HasPrefix(rec.Path, version+"/") && slices.Contains([]string{"stale", "not_found"}, rec.Kind)
	})
}

// version looks at one version as a whole: first at what official Lance has told of it, then at everything.
func (s *soak) version(w *writer, r *rand.Rand, v uint64) error {
	dir := s.m.path(fmt.Sprintf("versions/%d", v))
	if vt := s.truth.of(v); vt != nil { // else it was made a moment ago
		fragments, err := s.fragments(dir, vt.rows)
		if err != nil {
			return err
		}
		if err := s.addresses(w, dir, vt, fragments); err != nil {
			return err
		}
		if err := s.remapped(w, r, dir, vt.rows, vt.sum); err != nil {
			return err
		}
	}
	return s.walk(dir, v)
}

// branch looks at one version of a branch, which may be made anew meanwhile: what is compared is of one of them.
func (s *soak) branch(w *writer, r *rand.Rand, name string) error {
	dir := "branches/" + name + "/versions"
	number, ok := s.anyOf(r, dir)
	if !ok {
		return nil
	}
	v, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return err
	}
	path := s.m.path(dir + "/" + number)
	before, err := os.Stat(path)
	for _, m := range s.truth.ofBranch(name, v) {
		if err != nil {
			break
		}
		if _, err = s.fragments(path, m.Rows); err == nil {
			err = s.remapped(w, r, path, m.Rows, m.Sum)
		}
		if err == nil {
			break
		}
	}
	if err == nil {
		err = s.walk(path, v)
	}
	if err != nil {
		now, serr := os.Stat(path)
		if serr == nil && before != nil && os.SameFile(before, now) && !s.vanished(dir, v, err) {
			return err
		}
		return nil
	}
	s.branches.Add(1)
	return nil
}

// remapped has official Lance open the remapped dataset and answer queries as a scan does.
func (s *soak) remapped(w *writer, r *rand.Rand, dir string, rows, sum uint64) error {
	d, err := w.try(fmt.Sprintf("check %s/remapped.lance %d %d %d", dir, rows, sum, r.IntN(1<<30)))
	if err == nil && d.Error != "" {
		err = errors.New(d.Error)
	}
	if err == nil {
		s.opened.Add(1)
	}
	return err
}

// walk reads every file of a version.
func (s *soak) walk(dir string, v uint64) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return s.file(path, v)
	})
}

// file reads a file: what stat says is what read gives, and JSON is JSON of this version.
func (s *soak) file(path string, v uint64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	n, err := b.ReadFrom(f)
	if err != nil {
		return err
	}
	if n != st.Size() {
		return fmt.Errorf("%s: stat says %d bytes, read gives %d", path, st.Size(), n)
	}
	if strings.HasSuffix(path, ".json") {
		var doc map[string]any
		if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if got, ok := doc["dataset_version"].(float64); ok && uint64(got) != v {
			return fmt.Errorf("%s is of version %v", path, got)
		}
	}
	s.files.Add(1)
	return nil
}

// fragments returns the fragments of a version, whose live rows must be as many as official Lance has counted.
func (s *soak) fragments(dir string, rows uint64) (map[uint64]bool, error) {
	table, err := readTable(filepath.Join(dir, "fragments.csv"))
	if err != nil {
		return nil, err
	}
	var live uint64
	fragments := map[uint64]bool{}
	for _, row := range table {
		n, err := strconv.ParseUint(row["live_rows"], 10, 64)
		if err != nil {
			return nil, err
		}
		id, err := strconv.ParseUint(row["fragment"], 10, 64)
		if err != nil {
			return nil, err
		}
		live += n
		fragments[id] = true
	}
	if live != rows {
		return nil, fmt.Errorf("%s: %d live rows, the version has %d", dir, live, rows)
	}
	return fragments, nil
}
