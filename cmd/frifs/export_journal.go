package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/frifs/frifs/fault"
)

// journalName is the file in DEST that says what is done already. It is there while an export is not complete.
const journalName = ".frifs-export.jsonl"

const journalVersion = 1

// journalPause is how often finished files are written down. What is lost between is copied again.
const journalPause = 3 * time.Second

// journalHeader is the first line of a journal.
type journalHeader struct {
	Version int    `json:"frifs_export"`
	URI     string `json:"uri"`
	Path    string `json:"path"`
	Content string `json:"content"` // inode of what PATH names, in hexadecimal: it follows the content
}

// journalLine says that a file is done: what it was made from (the inode, which follows the content), and what it was
// then. Mtime is in nanoseconds, as the filesystem of DEST keeps it.
type journalLine struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Size    int64  `json:"size"`
	Mtime   int64  `json:"mtime"`
}

// exportJournal is the journal of one export into a directory. A line is written after the file that it names has
// reached the disk. A nil journal is that of a single file: it knows and keeps nothing.
type exportJournal struct {
	dir  string
	file *os.File

	mu      sync.Mutex // protects what follows
	done    map[string]journalLine
	waiting []journalLine
	err     error // the first failure to write

	stop     chan struct{}
	stopped  chan struct{}
	closing  sync.Once
	complete bool // nothing needs to be written down any more; set before stop is closed
}

// openJournal opens or begins the journal in dir, and locks it against another export. force accepts a directory that
// holds something else.
func openJournal(dir string, head journalHeader, force bool) (*exportJournal, error) {
	name := filepath.Join(dir, journalName)
	old, lines, err := readJournal(name)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, fault.New("export", name, fault.KindOf(err), "the journal of an earlier export cannot be read: %w", err)
	case force:
	case err != nil:
		if err := checkEmpty(dir); err != nil {
			return nil, err
		}
	case old.URI != head.URI || old.Path != head.Path:
		return nil, fault.New("export", dir, fault.Denied,
			"DEST holds an unfinished export of %s %s; choose another DEST, or go over it with --force", old.URI, orRoot(old.Path))
	case old != head:
		return nil, fault.New("export", dir, fault.Denied,
			"DEST holds an unfinished export of what %s was then; it has changed. Choose another DEST, or bring it up to date with --force", orRoot(head.Path))
	}
	if err := makeWritable(dir); err != nil {
		return nil, fault.New("export", dir, fault.KindOf(err), "%w", err)
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fault.New("export", dir, fault.KindOf(err), "DEST cannot be written to: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		return nil, fault.New("export", dir, fault.Denied, "another frifs export is writing here: %w", err)
	}
	j := &exportJournal{dir: dir, file: f, done: lines, stop: make(chan struct{}), stopped: make(chan struct{})}
	if err := j.write(head); err != nil {
		_ = f.Close() // the journal is of no use
		return nil, fault.New("export", dir, fault.KindOf(err), "DEST cannot be written to: %w", err)
	}
	go j.run()
	return j, nil
}

// checkEmpty refuses a directory that holds something.
func checkEmpty(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fault.Wrap("export", dir, err)
	}
	defer f.Close()
	if names, _ := f.Readdirnames(1); len(names) > 0 {
		return fault.New("export", dir, fault.Denied, "DEST is not empty (it holds %q); choose another, or export into it with --force", names[0])
	}
	return nil
}

// readJournal reads what an earlier run wrote. A last line that is not whole is none: the run was killed.
func readJournal(name string) (journalHeader, map[string]journalLine, error) {
	var head journalHeader
	lines := map[string]journalLine{}
	f, err := os.Open(name)
	if err != nil {
		return head, lines, err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var line struct {
			Version int    `json:"frifs_export"`
			URI     string `json:"uri"`
			journalLine
		}
		if json.Unmarshal(sc.Bytes(), &line) != nil {
			continue
		}
		if line.Version != 0 {
			head = journalHeader{line.Version, line.URI, line.Path, line.Content}
			continue
		}
		lines[line.Path] = journalLine{line.Path, line.Content, line.Size, line.Mtime}
	}
	if head.Version > journalVersion {
		return head, nil, fault.New("export", name, fault.Unsupported, "it is of a later release of frifs")
	}
	return head, lines, sc.Err()
}

func (j *exportJournal) write(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		// A line cut off by a kill ends here at the latest.
		_, err = j.file.Write(append(append([]byte{'\n'}, b...), '\n'))
	}
	return err
}

// has reports whether the file that item would become was made by an earlier run and is as it was.
func (j *exportJournal) has(it exportItem) bool {
	if j == nil {
		return false
	}
	j.mu.Lock()
	line, ok := j.done[it.rel]
	j.mu.Unlock()
	if !ok || line.Content != hexIno(it.node.Ino()) {
		return false
	}
	fi, err := os.Lstat(filepath.Join(j.dir, filepath.FromSlash(it.rel)))
	return err == nil && fi.Mode().IsRegular() && fi.Size() == line.Size && fi.ModTime().UnixNano() == line.Mtime
}

// add notes that the file is done.
func (j *exportJournal) add(it exportItem, fi os.FileInfo) {
	if j == nil {
		return
	}
	line := journalLine{it.rel, hexIno(it.node.Ino()), fi.Size(), fi.ModTime().UnixNano()}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = append(j.waiting, line)
}

func (j *exportJournal) run() {
	defer close(j.stopped)
	tick := time.NewTicker(journalPause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			j.flush()
		case <-j.stop:
			if !j.complete {
				j.flush()
			}
			return
		}
	}
}

// flush writes down what is finished, once the disk has it.
func (j *exportJournal) flush() {
	j.mu.Lock()
	lines := j.waiting
	j.waiting = nil
	j.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	err := syncAll(j.file)
	for _, l := range lines {
		if err == nil {
			err = j.write(l)
		}
	}
	if err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.err = errors.Join(j.err, err)
	}
}

// close writes down the rest. The journal stays for a later run.
func (j *exportJournal) close() {
	if j == nil {
		return
	}
	j.closing.Do(func() {
		close(j.stop)
		<-j.stopped
		_ = j.file.Close() // what is not in it is copied again
	})
}

// partPattern is the end of the name of a file being written.
var partPattern = regexp.MustCompile(`\.[0-9a-f]{16}\.frifs-part$`)

// finish removes half-written files of earlier runs, and the journal: the export is complete. names are the files that
// belong to it.
func (j *exportJournal) finish(names map[string]bool) error {
	j.complete = true
	j.close()
	if j.err != nil {
		return fault.New("export", j.dir, fault.KindOf(j.err), "%w", j.err)
	}
	err := filepath.WalkDir(j.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !partPattern.MatchString(d.Name()) {
			return nil //nolint:nilerr // what cannot be listed holds nothing of ours
		}
		if rel, err := filepath.Rel(j.dir, p); err == nil && !names[filepath.ToSlash(rel)] {
			_ = os.Remove(p) // a leftover that cannot be removed does no harm
		}
		return nil
	})
	if err == nil {
		err = os.Remove(filepath.Join(j.dir, journalName))
	}
	if err != nil {
		return fault.New("export", j.dir, fault.KindOf(err), "%w", err)
	}
	return nil
}

// makeWritable lets the owner write into a directory: an earlier export may have given it its final mode.
func makeWritable(dir string) error {
	fi, err := os.Stat(dir)
	if err != nil || fi.Mode().Perm()&0o700 == 0o700 {
		return err
	}
	if !fi.IsDir() {
		return syscall.ENOTDIR
	}
	return os.Chmod(dir, fi.Mode().Perm()|0o700)
}
