package integration

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
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

	mu     sync.Mutex           // protects truth
	truth  map[uint64][2]uint64 // of each version: rows, sum of ids
	files  atomic.Int64         // that were read and found right
	rows   atomic.Int64         // of mappings that were compared
	opened atomic.Int64         // remapped datasets that answered as a scan does
	gone   atomic.Int64         // versions that were cleaned up under a reader
}

// TestSoak has official Lance append, delete, update, compact, index, tag, branch and clean up in a loop, while eight
// readers walk, read and compare: every file that opens is right for its version.
func TestSoak(t *testing.T) {
	table := filepath.Join(t.TempDir(), "t.lance")
	w := startWriter(t, table)
	s := &soak{t: t, table: table, truth: map[uint64][2]uint64{}}
	for _, what := range []string{"append", "append", "index", "append", "compact"} {
		s.learn(w.do(what))
	}
	s.m = mount(t, table, "--poll-interval", "500ms", "--memory", "64MiB")
	s.end = time.Now().Add(soakTime(t))
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() { s.read(i) })
	}
	for i := 0; time.Now().Before(s.end); i++ {
		s.write(w, i)
	}
	readers.Wait()
	if t.Failed() {
		return
	}
	// When all is quiet the mount shows what is there.
	last := w.do("append")
	s.learn(last)
	if r := command(t, "", exe, "refresh", s.m.dir); r.code != 0 {
		t.Errorf("refresh: %+v", r)
	}
	s.m.leads(5*time.Second, last.Version)
	if err := s.version(w, rand.New(rand.NewPCG(0, 0)), last.Version); err != nil {
		t.Errorf("the newest version: %v", err)
	}
	status := read(t, s.m.path(".frifs/status.json"))
	for _, line := range strings.Split(strings.TrimSpace(read(t, s.m.path(".frifs/errors.jsonl"))), "\n") {
		var rec struct{ Kind, Path, Message string }
		if line != "" && (json.Unmarshal([]byte(line), &rec) != nil || rec.Kind != "not_found") {
			t.Errorf("errors.jsonl: %s", line)
		}
	}
	t.Logf("%d versions, %d files, %d rows of mappings, %d remapped datasets, %d versions went away under a reader",
		len(s.truth), s.files.Load(), s.rows.Load(), s.opened.Load(), s.gone.Load())
	if s.files.Load() < 500 || s.rows.Load() < 100 || s.opened.Load() < 3 {
		t.Errorf("too little was looked at: %s", status)
	}
}

func (s *soak) learn(d did) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v, rows := range d.Made {
		s.truth[v] = rows
	}
}

func (s *soak) known(v uint64) (rows [2]uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, ok = s.truth[v]
	return rows, ok
}

// write does the i-th thing to the table.
func (s *soak) write(w *writer, i int) {
	steps := []string{"append", "delete", "compact", "tag kept", "append", "update", "optimize", "compact", "branch side", "cleanup 4",
		"append", "index", "delete", "compact", "tag moving", "append", "compact", "cleanup 2", "unbranch side", "untag kept"}
	what := steps[i%len(steps)]
	d, err := w.try(what)
	if err == nil && d.Error != "" {
		err = errors.New(d.Error)
	}
	if err != nil {
		s.t.Fatalf("the writer could not %s: %v", what, err)
	}
	s.learn(d)
}

// read is one reader: it goes from version to version until the end.
func (s *soak) read(i int) {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	w := startWriter(s.t, s.table) // reads only
	for time.Now().Before(s.end) && !s.t.Failed() {
		v, ok := s.choose(r)
		if !ok {
			continue
		}
		if err := s.version(w, r, v); err != nil && !s.vanished(v, err) {
			s.t.Errorf("reader %d, version %d: %v", i, v, err)
			return
		}
	}
}

// choose takes a version from a fresh listing, or what latest, a tag or a branch leads to.
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
		names, err := os.ReadDir(s.m.path("versions"))
		if err != nil || len(names) == 0 {
			s.t.Errorf("%d versions, %v", len(names), err)
			return 0, false
		}
		name = names[r.IntN(len(names))].Name()
	}
	v, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		s.t.Errorf("a version called %s: %v", name, err)
	}
	return v, err == nil
}

// vanished reports whether err came because the version was cleaned up: then it leaves the listing within the poll
// interval and a second, and err says that something is not there.
func (s *soak) vanished(v uint64, err error) bool {
	text := err.Error()
	if !errors.Is(err, fs.ErrNotExist) && !isErrno(err, syscall.ESTALE) && !strings.Contains(strings.ToLower(text), "not found") &&
		!strings.Contains(text, "stale") && !strings.Contains(text, "Stale") && !strings.Contains(text, "No such file") {
		return false
	}
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if _, err := os.Stat(s.m.path(fmt.Sprintf("versions/%d", v))); errors.Is(err, fs.ErrNotExist) {
			s.gone.Add(1)
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// version looks at one version as a whole.
func (s *soak) version(w *writer, r *rand.Rand, v uint64) error {
	dir := s.m.path(fmt.Sprintf("versions/%d", v))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return s.file(path, v)
	})
	if err != nil {
		return err
	}
	truth, ok := s.known(v)
	if !ok {
		return nil // made a moment ago
	}
	if err := s.fragments(dir, truth); err != nil {
		return err
	}
	if err := s.mapping(r, dir, v); err != nil {
		return err
	}
	d, err := w.try(fmt.Sprintf("check %s/remapped.lance %d %d %d", dir, truth[0], truth[1], r.IntN(1<<30)))
	if err == nil && d.Error != "" {
		err = errors.New(d.Error)
	}
	if err == nil {
		s.opened.Add(1)
	}
	return err
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

func readTable(path string) ([]map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		out = append(out, row)
	}
	return out, nil
}

func (s *soak) fragments(dir string, truth [2]uint64) error {
	rows, err := readTable(filepath.Join(dir, "fragments.csv"))
	if err != nil {
		return err
	}
	var live uint64
	for _, row := range rows {
		n, err := strconv.ParseUint(row["live_rows"], 10, 64)
		if err != nil {
			return err
		}
		live += n
	}
	if live != truth[0] {
		return fmt.Errorf("%s: %d live rows, the version has %d", dir, live, truth[0])
	}
	return nil
}

// mapping compares rows of the last transition, after which nothing moves them, with what the library translates their
// addresses to without the mount.
func (s *soak) mapping(r *rand.Rand, dir string, v uint64) error {
	all, err := filepath.Glob(filepath.Join(dir, "fri/transitions/*/mapping.csv"))
	if err != nil || len(all) == 0 {
		return err
	}
	rows, err := readTable(all[len(all)-1])
	if err != nil {
		return err
	}
	args := []string{"translate", "--version", strconv.FormatUint(v, 10), s.table}
	var asked []map[string]string
	for range min(50, len(rows)) {
		row := rows[r.IntN(len(rows))]
		asked = append(asked, row)
		args = append(args, row["old_row_addr"])
	}
	res := command(s.t, "", exe, args...)
	if res.code != 0 {
		return errors.New(res.stderr)
	}
	lines, err := csv.NewReader(strings.NewReader(res.stdout)).ReadAll()
	if err != nil || len(lines) != len(asked)+1 {
		return fmt.Errorf("frifs translate: %d lines, %w", len(lines), err)
	}
	for i, row := range asked {
		addr, outcome, now := lines[i+1][0], lines[i+1][1], lines[i+1][2]
		if addr != row["old_row_addr"] || now != row["new_row_addr"] || (now == "") != (outcome == "dropped") {
			return fmt.Errorf("%s: row %s goes to %q, frifs translate says %s %q", all[len(all)-1], addr, row["new_row_addr"], outcome, now)
		}
	}
	s.rows.Add(int64(len(asked)))
	return nil
}
