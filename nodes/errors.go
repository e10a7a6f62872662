package nodes

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
)

// errorRingSize is how many failures .frifs/errors.jsonl shows at most.
const errorRingSize = 1000

// doubtTime is how long a failure waits for a look at the versions, to tell whether its version is gone.
const doubtTime = 2 * time.Second

// ErrorRecord is one failure of a file that was listed.
type ErrorRecord struct {
	Time    time.Time
	Op      string // "render", "open", "read", "stat"
	Path    string // in the tree
	Kind    fault.Kind
	Message string
}

// errorRing keeps the last failures. The same failure of the same file within failureMemory is kept once.
type errorRing struct {
	mu    sync.Mutex // protects what follows
	recs  []ErrorRecord
	next  int
	total uint64
	seen  map[string]time.Time
}

func (r *errorRing) add(rec ErrorRecord) (fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := rec.Path + "\x00" + rec.Message
	if at, ok := r.seen[key]; ok && rec.Time.Sub(at) < failureMemory {
		return false
	}
	if r.seen == nil || len(r.seen) >= errorRingSize {
		r.seen = map[string]time.Time{}
	}
	r.seen[key] = rec.Time
	r.total++
	if len(r.recs) < errorRingSize {
		r.recs = append(r.recs, rec)
		return true
	}
	r.recs[r.next] = rec
	r.next = (r.next + 1) % errorRingSize
	return true
}

// all returns the records, oldest first, and how many there ever were.
func (r *errorRing) all() ([]ErrorRecord, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]ErrorRecord, 0, len(r.recs))
	out = append(out, r.recs[r.next:]...)
	return append(out, r.recs[:r.next]...), r.total
}

// failed notes a failure of the file at path, from the root of this tree, for .frifs/errors.jsonl and returns it with
// the path from the root of the mount. Cancellations are no failures of the file.
func (t *Tree) failed(op, path string, err error) error {
	return t.note(op, t.path+path, t.cleanedUp(op, path, err))
}

// cleanedUp adds to a failure of a file that is gone that its version is, if so.
func (t *Tree) cleanedUp(op, path string, err error) error {
	kind := fault.KindOf(err)
	rest, ok := strings.CutPrefix(path, "versions/")
	if kind != fault.NotFound && kind != fault.Stale || !ok {
		return err
	}
	wait, cancel := context.WithTimeout(context.Background(), doubtTime)
	defer cancel()
	t.versions.doubt(wait) // it may be news that the version is gone
	number, _, _ := strings.Cut(rest, "/")
	n, perr := strconv.ParseUint(number, 10, 64)
	v := t.versions.known()
	if perr != nil || v == nil {
		return err
	}
	if _, ok := v.find(n); ok {
		return err
	}
	return fault.New(op, t.path+path, kind, "version %d is not retained any more (cleaned up): %w", n, err)
}

// resized is the failure of a file at path whose content, made anew, has another size in bytes than was told of it.
func resized(op, path string, now, told int64) error {
	return fault.New(op, path, fault.Stale,
		"what this file is made from has changed: it has %d bytes now, and had %d when its size was told", now, told)
}

// note is failed with a path from the root of the mount.
func (t *Tree) note(op, path string, err error) error {
	var fe *fault.Error
	if !errors.As(err, &fe) || fe.Path != path {
		err = fault.Wrap(op, path, err)
	}
	if fault.Is(err, fault.Cancelled) {
		return err
	}
	rec := ErrorRecord{Time: t.now(), Op: op, Path: path, Kind: fault.KindOf(err), Message: err.Error()}
	if t.ring.add(rec) && t.cfg.OnError != nil {
		t.cfg.OnError(rec)
	}
	return err
}

// Report notes a failure that only the layer above can see, such as a request that took too long, for
// .frifs/errors.jsonl. path is the file's in the tree.
func (t *Tree) Report(op, path string, err error) { _ = t.note(op, path, err) }

// appendErrorLine renders a record as one line of JSON.
func appendErrorLine(b []byte, r ErrorRecord) []byte {
	b = append(b, `{"time":`...)
	b = appendJSONString(b, r.Time.UTC().Format(timeLayout))
	for _, kv := range [...][2]string{{"op", r.Op}, {"path", r.Path}, {"kind", r.Kind.String()}, {"message", r.Message}} {
		b = append(appendJSONString(append(b, ','), kv[0]), ':')
		b = appendJSONString(b, kv[1])
	}
	return append(b, '}', '\n')
}
