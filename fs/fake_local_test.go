package fs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// localEnv names a directory whose files the fake tree shows under local/, each by name: as files of this machine
// ("file-…"), or as bytes that come from nowhere ("bytes-…").
const localEnv = "FRIFS_FS_TEST_LOCAL"

// localFile is a file of this machine; opening it checks that it is as it was when the tree was made.
type localFile struct {
	fakeFile
	disk  string
	was   os.FileInfo
	reads *atomic.Int64
}

// openFile is one whose open handle says that it is a file of this machine.
type openFile struct{ *localFile }

type openHandle struct{ localHandle }

func (h openHandle) Fd() (int, bool) { return int(h.file.Fd()), true }

func (f openFile) Open(ctx context.Context) (nodes.Handle, error) {
	h, err := f.localFile.Open(ctx)
	if err != nil {
		return nil, err
	}
	return openHandle{h.(localHandle)}, nil
}

type localHandle struct {
	f    *localFile
	file *os.File
}

func (f *localFile) Open(context.Context) (nodes.Handle, error) {
	file, err := os.Open(f.disk)
	if err != nil {
		return nil, fault.Wrap("fake.Open", f.path, err)
	}
	now, err := file.Stat()
	if err != nil || !os.SameFile(now, f.was) || now.Size() != f.was.Size() || !now.ModTime().Equal(f.was.ModTime()) {
		_ = file.Close()
		return nil, fault.New("fake.Open", f.path, fault.Stale, "the file was replaced")
	}
	return localHandle{f, file}, nil
}

func (h localHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	h.f.reads.Add(1)
	n, err := h.file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (h localHandle) Close() error { return h.file.Close() }

func addLocalFiles(d *fakeDir, dir string, reads *atomic.Int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		disk := filepath.Join(dir, e.Name())
		info, err := os.Stat(disk)
		if err != nil {
			panic(err)
		}
		f := &localFile{fakeFile{path: "local/" + e.Name(), class: nodes.C1, size: info.Size()}, disk, info, reads}
		if strings.HasPrefix(e.Name(), "bytes-") {
			d.add(f, e.Name())
		} else {
			d.add(openFile{f}, e.Name())
		}
	}
}
