package spill

import (
	"io"
	"os"
	"sync"

	"github.com/frifs/frifs/fault"
)

// Buffer is an append-only run of bytes, in memory up to a bound and then in a file that has no name any more, so that
// nothing is left of it after Close or the end of the process.
type Buffer struct {
	dir   string
	above int

	mu      sync.RWMutex // protects the fields below; only Append and Close change them, and IO goes on without it
	buf     []byte       // what follows the flushed bytes
	flushed int64
	file    *os.File
}

// spillBuffer is how much is gathered in memory before each write to the file.
const spillBuffer = 256 << 10

// TempDir is the directory for files that need not outlive the process.
func TempDir() string { return os.TempDir() }

// New returns an empty Buffer. More than above bytes go to a file in dir; dir "" means that they are
// fault.TooLarge.
func New(dir string, above int64) *Buffer {
	return &Buffer{dir: dir, above: int(max(0, min(above, 1<<40)))}
}

// Size returns the number of bytes appended.
func (s *Buffer) Size() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.flushed + int64(len(s.buf))
}

// Append adds bytes at the end; calls must follow each other. Errors: fault.TooLarge without a folder,
// fault.Unavailable for what the folder's file system says, wrapped.
func (s *Buffer) Append(p []byte) error {
	bound := s.above
	if s.file != nil {
		bound = spillBuffer
	}
	if len(p) <= bound-len(s.buf) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.buf = append(s.buf, p...)
		return nil
	}
	file := s.file
	if file == nil {
		var err error
		if file, err = s.open(); err != nil {
			return err
		}
	}
	end, buf := s.flushed, s.buf[:0]
	parts := [][]byte{s.buf}
	if len(p) >= spillBuffer {
		parts, p = append(parts, p), nil
	}
	for _, b := range parts {
		n, err := file.WriteAt(b, end)
		if end += int64(n); err != nil {
			return fault.New("spill.Buffer", s.dir, fault.Unavailable,
				"a file that is translated as a whole waits here; after %d bytes: %w (make room, or name another folder with --cache-dir)", end, err)
		}
	}
	if cap(buf) > 2*spillBuffer {
		buf = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file, s.flushed, s.buf = file, end, append(buf, p...)
	return nil
}

// open makes the file.
func (s *Buffer) open() (*os.File, error) {
	if s.dir == "" {
		return nil, fault.New("spill.Buffer", "", fault.TooLarge, "more than %d bytes, and no folder to put them in is set", s.above)
	}
	f, err := os.CreateTemp(s.dir, ".frifs-spill-*")
	if err != nil {
		return nil, fault.New("spill.Buffer", s.dir, fault.Unavailable, "%w (name another folder with --cache-dir)", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fault.New("spill.Buffer", f.Name(), fault.Unavailable, "%w", err)
	}
	return f, nil
}

// ReadAt implements io.ReaderAt.
func (s *Buffer) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New("spill.Buffer", "", fault.Invalid, "offset %d", off)
	}
	s.mu.RLock()
	file, flushed, total := s.file, s.flushed, s.flushed+int64(len(s.buf))
	if from := max(off, flushed); from < total && from-off < int64(len(p)) {
		copy(p[from-off:], s.buf[from-flushed:])
	}
	s.mu.RUnlock()
	if off < flushed {
		n := int(min(int64(len(p)), flushed-off))
		if got, err := file.ReadAt(p[:n], off); got < n {
			return got, fault.New("spill.Buffer", s.dir, fault.Unavailable, "at byte %d: %w", off+int64(got), err)
		}
	}
	if n := max(0, total-off); n < int64(len(p)) {
		return int(n), io.EOF
	}
	return len(p), nil
}

// Close gives up memory and file. A closed Buffer must not be used.
func (s *Buffer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = nil
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
