package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

const (
	exportChunk = 1 << 20                // bytes made and written at a time
	jobPause    = 250 * time.Millisecond // between two looks at a file whose job goes on
	spaceCheck  = 64 << 20               // files from this size on are not begun where space is short
)

// fatalError ends the whole export: every other file would fail as well.
type fatalError struct{ err error }

func (f fatalError) Error() string { return f.err.Error() }
func (f fatalError) Unwrap() error { return f.err }

// copyAll makes what is planned. An error of one file is told and does not end it; the one returned does.
func (e *export) copyAll(ctx context.Context, plan *exportPlan) error {
	for _, d := range plan.dirs {
		if err := makeDir(e.place(d.rel)); err != nil {
			return fault.New("export", e.place(d.rel), fault.KindOf(err), "the directory cannot be made: %w", err)
		}
	}
	for _, l := range plan.links {
		if err := makeLink(l.target, e.place(l.rel)); err != nil {
			e.told.fail(joinPath(e.path, l.rel), err)
			continue
		}
		e.told.linked()
	}
	for _, it := range plan.files {
		e.told.expect(max(it.size, 0))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan exportItem)
	var workers sync.WaitGroup
	for range min(e.jobs, len(plan.files)) {
		workers.Go(func() {
			buf := make([]byte, exportChunk)
			for it := range work {
				e.one(ctx, it, buf, cancel)
			}
		})
	}
feed:
	for _, it := range plan.files {
		select {
		case work <- it:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	workers.Wait()
	return context.Cause(ctx)
}

// one makes one file and tells what came of it.
func (e *export) one(ctx context.Context, it exportItem, buf []byte, stop context.CancelCauseFunc) {
	if ctx.Err() != nil {
		return
	}
	if e.log.has(it) {
		fi, err := os.Lstat(e.place(it.rel))
		if err == nil {
			e.told.file(doneBefore, fi.Size())
			if it.size < 0 {
				e.told.expect(fi.Size())
			}
			e.told.progress(fi.Size(), false)
			return
		}
	}
	way, err := e.makeFile(ctx, &it, buf)
	var fatal fatalError
	switch {
	case err == nil:
		e.told.file(way, it.size)
	case errors.As(err, &fatal):
		stop(fatal.err)
	case ctx.Err() != nil: // whoever ended it says so
	default:
		e.told.fail(joinPath(e.path, it.rel), err)
	}
}

// makeFile makes the file of it.
func (e *export) makeFile(ctx context.Context, it *exportItem, buf []byte) (way int, err error) {
	f, ok := it.node.(nodes.File)
	if !ok {
		return 0, fault.New("export", it.rel, fault.Unknown, "not a file")
	}
	var a nodes.Attr
	err = e.patiently(ctx, f, func() error {
		a, err = f.Attr(ctx)
		return err
	})
	if err != nil {
		return 0, err
	}
	if it.size < 0 {
		e.told.expect(a.Size)
	}
	it.size = a.Size
	place := e.place(it.rel)
	if free, ok := freeSpace(filepath.Dir(place)); ok && !e.force && a.Size >= spaceCheck && a.Size > free && !e.link {
		return 0, fault.New("export", place, fault.TooLarge, "%s are needed, %s are free", sizeText(a.Size), sizeText(free))
	}
	var h nodes.Handle
	err = e.patiently(ctx, f, func() error {
		h, err = f.Open(ctx)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer h.Close()
	part := partName(place, f.Ino())
	local := openOriginal(ctx, f, h, a.Size)
	if local != nil {
		defer local.Close()
		if e.link {
			fi, err := hardLink(local, part, place)
			if err == nil {
				e.log.add(*it, fi)
				e.told.progress(a.Size, true)
				return doneLinked, nil
			}
			if fatal := fatalOf(err); fatal != nil {
				return 0, fatal
			}
			e.told.note("--link: " + whyNoLink(err) + "; such files are copied")
		}
	}
	way, err = e.fill(ctx, f, h, local, part, a, buf)
	if err == nil {
		err = settle(part, place, a)
	}
	if err != nil {
		if fatal := fatalOf(err); fatal != nil {
			return 0, fatal
		}
		return 0, err
	}
	fi, err := os.Lstat(place)
	if err != nil {
		return 0, err
	}
	e.log.add(*it, fi)
	return way, nil
}

// fill writes the bytes of the file into part.
func (e *export) fill(ctx context.Context, f nodes.File, h nodes.Handle, local *os.File, part string, a nodes.Attr, buf []byte) (way int, err error) {
	out, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := lockPart(out); err != nil {
		return 0, fault.New("export", part, fault.Denied, "another frifs export is writing it: %w", err)
	}
	fi, err := out.Stat()
	if err != nil {
		return 0, err
	}
	if local != nil {
		if shareBlocks(out, local, a.Size) == nil {
			e.told.progress(a.Size, true)
			return doneShared, nil
		}
	}
	// The name of the part is that of its content, and it was written from its beginning on.
	off := min(fi.Size(), a.Size) / exportChunk * exportChunk
	if err := out.Truncate(off); err != nil {
		return 0, err
	}
	e.told.progress(off, false)
	if local != nil {
		n, err := e.copyRange(ctx, out, local, off, a.Size)
		off += n
		if err != nil && ctx.Err() != nil {
			return 0, err
		}
	}
	for off < a.Size {
		p := buf[:min(int64(len(buf)), a.Size-off)]
		var n int
		err := e.patiently(ctx, f, func() error {
			n, err = h.ReadAt(ctx, p, off)
			return err
		})
		if err != nil {
			return 0, err
		}
		if n < len(p) {
			return 0, fault.New("export", "", fault.Corrupt, "the file ends at byte %d; its size is %d", off+int64(n), a.Size)
		}
		if _, err := out.WriteAt(p, off); err != nil {
			return 0, err
		}
		off += int64(n)
		e.told.progress(int64(n), true)
	}
	if e.log == nil {
		return doneCopied, out.Sync()
	}
	return doneCopied, nil
}

// copyRange has the kernel copy from off on, as far as it can.
func (e *export) copyRange(ctx context.Context, out, local *os.File, off, size int64) (int64, error) {
	if _, err := local.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	if _, err := out.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	var done int64
	for off+done < size {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		n, err := io.CopyN(out, local, min(16*exportChunk, size-off-done))
		done += n
		e.told.progress(n, true)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// settle gives a written part its mode, its time and its name.
func settle(part, place string, a nodes.Attr) error {
	if err := os.Chtimes(part, a.Mtime, a.Mtime); err != nil {
		return err
	}
	if err := os.Chmod(part, os.FileMode(a.Perm)); err != nil {
		return err
	}
	return os.Rename(part, place)
}

// patiently repeats op on a file that has to be scanned for first, for as long as there is a job that goes on.
func (e *export) patiently(ctx context.Context, f nodes.File, op func() error) error {
	for last := true; ; {
		err := op()
		if !fault.Is(err, fault.TimedOut) || f.Class() == nodes.C0 || f.Class() == nodes.C1 {
			return err
		}
		if !e.jobsGoOn(ctx) {
			// It may have ended just now: one more look.
			if !last {
				return err
			}
			last = false
		} else {
			last = true
		}
		t := time.NewTimer(jobPause)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

// jobsGoOn reports whether the tree has jobs that are not finished.
func (e *export) jobsGoOn(ctx context.Context) bool {
	var doc struct{ Jobs []struct{} }
	return readJSON(ctx, e.src.root, ".frifs/status.json", &doc) == nil && len(doc.Jobs) > 0
}

// partName is the name under which place is written: it changes with the content.
func partName(place string, ino uint64) string {
	const room = 255 - len(".0123456789abcdef.frifs-part")
	dir, name := filepath.Split(place)
	if len(name) > room {
		name = name[:room]
		for !utf8.ValidString(name) && len(name) > room-utf8.UTFMax {
			name = name[:len(name)-1]
		}
	}
	return dir + name + "." + hexIno(ino) + ".frifs-part"
}

func makeDir(dir string) error {
	fi, err := os.Lstat(dir)
	if err == nil && fi.Mode()&os.ModeSymlink != 0 {
		if err = os.Remove(dir); err == nil {
			err = os.ErrNotExist
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	return makeWritable(dir)
}

func makeLink(target, place string) error {
	if old, err := os.Readlink(place); err == nil && old == target {
		return nil
	}
	tmp := partName(place, 0)
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, place)
}

// fatalOf returns err as one that ends the export, nil if it is of one file.
func fatalOf(err error) error {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, e) {
			return fatalError{fault.New("export", "", fault.Unavailable, "%w", err)}
		}
	}
	return nil
}
