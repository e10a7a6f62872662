package integration

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// placeholder is the fragment of addresses in remapped files whose row is gone.
const placeholder = 0xFFFFFFFE

// truth is what official Lance said of each version when it had made it: its rows, and where each of them was.
type truth struct {
	mu       sync.Mutex // protects what follows
	rows     map[uint64]uint64
	versions map[uint64]*versionTruth
	branches map[string]map[uint64][]madeVersion // a branch that was made anew has the same numbers again
}

// versionTruth is the truth of one version.
type versionTruth struct {
	rows, sum uint64
	where     map[uint64]uint64 // address by key
}

func newTruth() *truth {
	return &truth{rows: map[uint64]uint64{}, versions: map[uint64]*versionTruth{}, branches: map[string]map[uint64][]madeVersion{}}
}

func (tr *truth) learn(d did) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for v, m := range d.Made {
		vt := &versionTruth{m.Rows, m.Sum, make(map[uint64]uint64, len(m.Keys))}
		for i, key := range m.Keys {
			vt.where[key] = m.Addresses[i]
			tr.rows[m.Addresses[i]] = key // for ever: no fragment changes its rows
		}
		tr.versions[v] = vt
	}
	for name, made := range d.Branches {
		if tr.branches[name] == nil {
			tr.branches[name] = map[uint64][]madeVersion{}
		}
		for v, m := range made {
			tr.branches[name][v] = append(tr.branches[name][v], m)
		}
	}
}

func (tr *truth) of(v uint64) *versionTruth {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.versions[v]
}

// ofBranch is every truth that a version of a branch has ever had.
func (tr *truth) ofBranch(name string, v uint64) []madeVersion {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.branches[name][v]
}

// key is the row that is, or was, at an address.
func (tr *truth) key(addr uint64) (uint64, bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	key, ok := tr.rows[addr]
	return key, ok
}

// goneError is what a file says that could not be made as a whole, since a part of its version was cleaned up already.
type goneError struct{ text string }

func (e goneError) Error() string      { return e.text }
func (goneError) Is(target error) bool { return target == fs.ErrNotExist }

// moved judges one line that says where an address leads to in a version: same, moved or deleted_now with an address, or
// an outcome without one. outcome "" is a line of a mapping, which knows nothing of later rewrites.
func (tr *truth) moved(vt *versionTruth, old uint64, outcome, now string) error {
	key, ok := tr.key(old)
	if !ok {
		return errors.New("no version ever had a row at this address")
	}
	at, live := vt.where[key]
	switch outcome {
	case "unresolved":
		return goneError{"unresolved: the deletion file is gone"}
	case "same", "moved":
		if !live || now != strconv.FormatUint(at, 10) {
			return fmt.Errorf("the row is at %d (live: %v)", at, live)
		}
	case "deleted_now", "dropped", "dangling":
		if live {
			return fmt.Errorf("the row lives, at %d", at)
		}
	case "":
		if now == "" {
			if live {
				return fmt.Errorf("the row lives, at %d", at)
			}
			return nil
		}
		addr, err := strconv.ParseUint(now, 10, 64)
		if err != nil {
			return err
		}
		if other, ok := tr.key(addr); !ok || other != key {
			return fmt.Errorf("another row is there: %d, not %d", other, key)
		}
	default:
		return fmt.Errorf("outcome %s", outcome)
	}
	return nil
}

// translated judges every line of a CSV file that says where addresses lead to.
func (s *soak) translated(path string, vt *versionTruth) error {
	rows, err := readTable(path)
	if err != nil {
		return err
	}
	for i, row := range rows {
		old, err := strconv.ParseUint(row["old_row_addr"], 10, 64)
		if err == nil {
			err = s.truth.moved(vt, old, row["outcome"], row["new_row_addr"])
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %v: %w", path, i+2, row, err)
		}
	}
	s.rows.Add(int64(len(rows)))
	return nil
}

// addresses compares all that a version says of addresses with the truth: mappings, composed.csv, what indices hold, and
// the pages of a remapped BTREE. fragments are those of the version.
func (s *soak) addresses(w *writer, dir string, vt *versionTruth, fragments map[uint64]bool) error {
	for _, pattern := range []string{"fri/transitions/*/mapping.csv", "fri/scan/composed.csv", "indices/*/*/scan/addresses.csv"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range files {
			if filepath.Base(path) == "addresses.csv" && filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(path)))) == "__lance_frag_reuse" {
				continue
			}
			if err := s.translated(path, vt); err != nil {
				return err
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "indices/id_idx/*/remapped/page_data.lance"))
	if err != nil {
		return err
	}
	for _, path := range files {
		d, err := w.try("pages " + path)
		if err == nil && d.Error != "" {
			err = errors.New(d.Error)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for i, addr := range d.Pages[1] {
			if addr>>32 == placeholder {
				continue
			}
			// A row that was deleted keeps its place: its deletion file says so.
			key, ok := s.truth.key(addr)
			if at, live := vt.where[key]; !ok || live && at != addr || key>>16 != d.Pages[0][i] || !fragments[addr>>32] {
				return fmt.Errorf("%s: row %d: value %d is said to be at %d; row %d was there (%v), it is at %d now (%v)", path, i, d.Pages[0][i], addr, key>>16, ok, at, live)
			}
		}
		s.pages.Add(int64(len(d.Pages[1])))
	}
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

// hold opens files of the version that is cleaned up next, waits until that has happened, and reads them then, without
// what the kernel has of them.
func (s *soak) hold() {
	for time.Now().Before(s.end) && !s.t.Failed() {
		names, err := os.ReadDir(s.m.path("versions"))
		if err != nil || len(names) == 0 {
			s.t.Errorf("%d versions, %v", len(names), err)
			return
		}
		oldest := slices.MinFunc(names, func(a, b fs.DirEntry) int {
			return cmp.Or(cmp.Compare(len(a.Name()), len(b.Name())), cmp.Compare(a.Name(), b.Name()))
		}).Name()
		if err := s.holdVersion("versions/" + oldest); err != nil {
			s.t.Errorf("held files of version %s: %v", oldest, err)
		}
	}
}

func (s *soak) holdVersion(version string) error {
	open := map[*os.File][]byte{}
	defer func() {
		for f := range open {
			_ = f.Close()
		}
	}()
	_ = filepath.WalkDir(s.m.path(version), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // it is being cleaned up: what opens is held
		}
		f, err := os.Open(path)
		if err != nil {
			return nil //nolint:nilerr // the same
		}
		want, err := io.ReadAll(f)
		if err != nil {
			_ = f.Close()
			return nil //nolint:nilerr // the same
		}
		open[f] = want
		return nil
	})
	for {
		if _, err := os.Stat(s.m.path(version)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if time.Now().After(s.end) || s.t.Failed() {
			return nil // it was tagged
		}
		time.Sleep(20 * time.Millisecond)
	}
	for f, want := range open {
		if err := dropPages(f); err != nil {
			return err
		}
		got := make([]byte, len(want))
		_, err := f.ReadAt(got, 0)
		switch {
		case errors.Is(err, syscall.ESTALE):
			if !s.reasonInTime(version) {
				return fmt.Errorf("%s is stale, and errors.jsonl does not say why", f.Name())
			}
			s.stale.Add(1)
		case err != nil && len(want) > 0:
			return fmt.Errorf("%s: %w", f.Name(), err)
		case !bytes.Equal(got, want):
			return fmt.Errorf("%s gives other bytes than it had", f.Name())
		default:
			s.held.Add(1)
		}
	}
	return nil
}
