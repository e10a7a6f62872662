package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// A tree in memory, for what no dataset shows.
type (
	memDir  map[string]nodes.Node
	memFile string
	memLink string
)

func memIno(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

var memTime = time.Unix(1_700_000_000, 5000)

func (d memDir) Type() nodes.Type { return nodes.TypeDir }
func (d memDir) Ino() uint64      { return memIno(fmt.Sprintf("%p", d)) }
func (d memDir) Volatile() bool   { return false }
func (d memDir) Attr(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Type: nodes.TypeDir, Perm: 0o555, Mtime: memTime, Ino: d.Ino()}, nil
}

func (d memDir) Entries(context.Context) ([]nodes.Entry, error) {
	var out []nodes.Entry
	for name, n := range d {
		if n != nil {
			out = append(out, nodes.Entry{Name: name, Type: n.Type(), Ino: n.Ino()})
		}
	}
	slices.SortFunc(out, func(a, b nodes.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (d memDir) Lookup(_ context.Context, name string) (nodes.Node, error) {
	if n, ok := d[name]; ok {
		return n, nil
	}
	return nil, fault.New("mem", name, fault.NotFound, "no such entry")
}

func (f memFile) Type() nodes.Type   { return nodes.TypeFile }
func (f memFile) Ino() uint64        { return memIno("f" + string(f)) }
func (f memFile) Class() nodes.Class { return nodes.C0 }
func (f memFile) Attr(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Type: nodes.TypeFile, Size: int64(len(f)), Perm: 0o444, Mtime: memTime, Ino: f.Ino()}, nil
}
func (f memFile) Open(context.Context) (nodes.Handle, error) { return f, nil }
func (f memFile) Close() error                               { return nil }
func (f memFile) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return copy(p, f[min(off, int64(len(f))):]), nil
}

func (l memLink) Type() nodes.Type { return nodes.TypeLink }
func (l memLink) Ino() uint64      { return memIno("l" + string(l)) }
func (l memLink) Attr(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Type: nodes.TypeLink, Size: int64(len(l)), Perm: 0o777, Mtime: memTime, Ino: l.Ino()}, nil
}
func (l memLink) Target(context.Context) (string, error) { return string(l), nil }

// String lists a plan by name.
func (plan *exportPlan) String() string {
	var all []string
	for _, g := range []struct {
		kind  string
		items []exportItem
	}{{"d:", plan.dirs}, {"f:", plan.files}, {"l:", plan.links}} {
		for _, it := range g.items {
			all = append(all, g.kind+it.rel)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// slowFile is a C2 file whose size is known only after some looks; its job shows in .frifs/status.json.
type slowFile struct {
	memFile
	left *atomic.Int64
}

func (f slowFile) Class() nodes.Class { return nodes.C2 }
func (f slowFile) Attr(ctx context.Context) (nodes.Attr, error) {
	if f.left.Add(-1) > 0 {
		return nodes.Attr{}, fault.New("mem", "slow", fault.TimedOut, "the job goes on")
	}
	return f.memFile.Attr(ctx)
}

// badFile fails when it is read.
type badFile struct {
	memFile
	err error
}

func (f badFile) Open(context.Context) (nodes.Handle, error) { return f, nil }
func (f badFile) ReadAt(context.Context, []byte, int64) (int, error) {
	return 0, f.err
}

// exportMem exports a tree in memory.
func exportMem(ctx context.Context, t *testing.T, root memDir, dest string, set func(*export)) (string, error) {
	t.Helper()
	var errs bytes.Buffer
	e := export{src: &source{root: root, uri: "mem"}, stderr: &errs, jobs: 3}
	if set != nil {
		set(&e)
	}
	err := e.run(ctx, "", dest)
	return errs.String(), err
}

func TestExportWaitsForJobs(t *testing.T) {
	var left atomic.Int64
	left.Store(4)
	jobs := `{"jobs": [{}]}`
	root := memDir{"slow": slowFile{memFile("found at last"), &left}, ".frifs": memDir{"status.json": memFile(jobs)}}
	dest := filepath.Join(t.TempDir(), "d")
	if text, err := exportMem(t.Context(), t, root, dest, nil); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if b, err := os.ReadFile(filepath.Join(dest, "slow")); err != nil || string(b) != "found at last" {
		t.Errorf("got %q, %v", b, err)
	}
	// Where no job goes on there is nothing to wait for.
	left.Store(1 << 30)
	root[".frifs"] = memDir{"status.json": memFile(`{"jobs": []}`)}
	dest = filepath.Join(t.TempDir(), "d")
	text, err := exportMem(t.Context(), t, root, dest, nil)
	if fault.KindOf(err).ExitCode() != 1 || !strings.Contains(text, "slow: ") || !strings.Contains(text, "1 failed") {
		t.Errorf("without a job: %v: %s", err, text)
	}
}

func TestExportNamesWhatFailsAndGoesOn(t *testing.T) {
	bad := badFile{memFile("0123456789"), fault.New("mem", "bad", fault.Corrupt, "page 3 is broken")}
	short := badFile{memFile("abcdef"), nil}
	root := memDir{"bad": bad, "dir": memDir{"good": memFile("good"), "none": nil, "short": short}, "z": memFile("z")}
	dest := filepath.Join(t.TempDir(), "d")
	text, err := exportMem(t.Context(), t, root, dest, nil)
	if err == nil || fault.KindOf(err).ExitCode() != 1 {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"frifs: bad: corrupt: page 3 is broken\n", "dir/short: ", "2 failed", "exported 2 files"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said: %s", want, text)
		}
	}
	for name, want := range map[string]string{"dir/good": "good", "z": "z"} {
		if b, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"bad", "dir/short"} {
		if _, err := os.Lstat(filepath.Join(dest, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	// Once it can be read, the same command completes the copy.
	root["bad"], root["dir"].(memDir)["short"] = bad.memFile, short.memFile
	if text, err := exportMem(t.Context(), t, root, dest, nil); err != nil || !strings.Contains(text, "2 there before") {
		t.Errorf("again: %v: %s", err, text)
	}
	if fi, err := os.Stat(dest); err != nil || fi.Mode().Perm() != 0o555 || !fi.ModTime().Equal(memTime) {
		t.Errorf("the directory: %v, %v", fi, err)
	}
	if names, err := os.ReadDir(dest); err != nil || len(names) != 3 {
		t.Errorf("left: %v, %v", names, err)
	}
}

func TestExportOfMoreThanFits(t *testing.T) {
	huge := hugeFile{memFile("")}
	dest := filepath.Join(t.TempDir(), "d")
	text, err := exportMem(t.Context(), t, memDir{"huge": huge}, dest, nil)
	if err == nil || !strings.Contains(text+err.Error(), "are free") {
		t.Errorf("%v: %s", err, text)
	}
	if left, _ := filepath.Glob(dest + "/huge*"); len(left) > 0 {
		t.Errorf("begun all the same: %v", left)
	}
}

type hugeFile struct{ memFile }

func (f hugeFile) Attr(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Type: nodes.TypeFile, Size: 1 << 60, Perm: 0o444, Mtime: memTime, Ino: f.Ino()}, nil
}

func TestExportStopsAtAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := badFile{memFile("x"), nil}
	root := memDir{"a": memFile("a"), "b": cancelFile{stop, cancel}, "c": memFile("c")}
	dest := filepath.Join(t.TempDir(), "d")
	text, err := exportMem(ctx, t, root, dest, func(e *export) { e.jobs = 1 })
	if fault.KindOf(err) != fault.Cancelled || !strings.Contains(err.Error(), "again") {
		t.Errorf("got %v: %s", err, text)
	}
	root["b"] = stop.memFile
	if text, err := exportMem(t.Context(), t, root, dest, nil); err != nil || !strings.Contains(text, "1 there before") {
		t.Errorf("again: %v: %s", err, text)
	}
}

type cancelFile struct {
	badFile
	cancel context.CancelFunc
}

func (f cancelFile) Open(context.Context) (nodes.Handle, error) { return f, nil }
func (f cancelFile) ReadAt(ctx context.Context, _ []byte, _ int64) (int, error) {
	f.cancel()
	return 0, fault.Wrap("mem", "", ctx.Err())
}

func TestFatalErrorsEndAnExport(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if err := fatalOf(&os.PathError{Op: "write", Path: "p", Err: errno}); err == nil {
			t.Errorf("%v ends nothing", errno)
		}
	}
	if err := fatalOf(syscall.EIO); err != nil {
		t.Errorf("EIO ends all: %v", err)
	}
}

func TestPartNamesFit(t *testing.T) {
	for _, name := range []string{"a", strings.Repeat("n", 240), strings.Repeat("ü", 120), strings.Repeat("日", 80)} {
		p := filepath.Base(partName("/x/"+name, 7))
		if len(p) > 255 || !strings.HasSuffix(p, ".0000000000000007.frifs-part") || !partPattern.MatchString(p) || !strings.HasPrefix(name, p[:1]) {
			t.Errorf("%q", p)
		}
	}
}
