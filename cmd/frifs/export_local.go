package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/frifs/frifs/nodes"
)

// openOriginal opens the dataset's own file that holds the bytes of f, if there is one on this machine and it is what
// h, opened just before, has verified; else nil.
func openOriginal(ctx context.Context, f nodes.File, h nodes.Handle, size int64) *os.File {
	lf, ok := f.(nodes.LocalFile)
	if !ok {
		if lf, ok = h.(nodes.LocalFile); !ok {
			return nil
		}
	}
	path, off, ok := lf.LocalPath(ctx)
	if !ok || off != 0 {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if fi, err := file.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() != size || !stillVerified(ctx, f) {
		_ = file.Close() // only read from
		return nil
	}
	return file
}

// stillVerified opens f once more: the tree compares the file with what it stands for.
func stillVerified(ctx context.Context, f nodes.File) bool {
	h, err := f.Open(ctx)
	return err == nil && h.Close() == nil
}

// hardLink makes place a hard link of file, by way of part.
func hardLink(file *os.File, part, place string) (os.FileInfo, error) {
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := linkOpen(file, part); err != nil {
		return nil, err
	}
	if err := os.Rename(part, place); err != nil {
		return nil, err
	}
	// Two names of one file: rename leaves both.
	_ = os.Remove(part) // it is not there but in that case
	return os.Lstat(place)
}

// whyNoLink explains why a hard link could not be made.
func whyNoLink(err error) string {
	switch {
	case errors.Is(err, syscall.EXDEV):
		return "DEST is on another filesystem than the dataset"
	case errors.Is(err, syscall.EPERM):
		return "hard links to files of this owner or filesystem are not permitted"
	case errors.Is(err, syscall.EMLINK):
		return "the file has too many links"
	}
	return "no hard link: " + err.Error()
}

// linkByPath links what file was opened as.
func linkByPath(file *os.File, name string) error {
	real, err := filepath.EvalSymlinks(file.Name())
	if err != nil {
		return err
	}
	if err := os.Link(real, name); err != nil {
		return err
	}
	a, err := file.Stat()
	if err != nil {
		return err
	}
	if b, err := os.Lstat(name); err != nil || !os.SameFile(a, b) {
		return errors.Join(err, os.Remove(name), errors.New("the file was replaced"))
	}
	return nil
}

// fdPath names an open file of this process.
func fdPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// lockPart keeps two exports from writing one file. A filesystem that knows no locks does without.
func lockPart(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	return nil
}

// freeSpace is what is free for us where dir lies.
func freeSpace(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Blocks == 0 {
		return 0, false
	}
	free := st.Bavail * uint64(st.Bsize)
	return int64(min(free, 1<<62)), true
}
