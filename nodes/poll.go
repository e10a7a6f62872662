package nodes

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/frifs/frifs/fault"
)

const (
	// maxBackoff is how many times the interval becomes twice as long while the store cannot be asked, and longestPause
	// how long it may get that way: a store that is back shows soon.
	maxBackoff   = 4
	longestPause = time.Minute
	// settleTime is how long the answer of .frifs/refresh waits for the kernel to be told.
	settleTime = 2 * time.Second
	// coldAfter is how many intervals a part of the tree is looked after without being used.
	coldAfter = 10
	// askShare is for how long an answer of .frifs/refresh is given again: the kernel looks a name up twice in a row where
	// it had another answer before. The answer says when the look began.
	askShare = 20 * time.Millisecond
)

// Watch looks for new versions every Config.PollInterval, and longer and longer after failures, until ctx ends. What it
// finds goes to Config.OnChange. While it runs, no access to the tree waits for a look at versions that are known. A
// tree with a pinned version has nothing to look for: it returns at once.
func (t *Tree) Watch(ctx context.Context) {
	tick := time.NewTicker(t.cfg.PollInterval)
	defer tick.Stop()
	t.poll(ctx, tick.C)
}

func (t *Tree) poll(ctx context.Context, ticks <-chan time.Time) {
	if t.cfg.pinned() {
		return
	}
	t.watching.poll(true)
	defer t.watching.poll(false)
	for {
		select {
		case <-ticks:
			t.pollOnce(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// pollOnce begins a look at each part of the tree whose time has come.
func (t *Tree) pollOnce(ctx context.Context) []*probe {
	var out []*probe
	for _, w := range t.watching.list() {
		switch due, cold := w.due(t.now()); {
		case cold:
			t.watching.leave(w)
		case due:
			out = append(out, w.start(ctx, false))
		}
	}
	return out
}

// due reports whether it is time to look, or that nobody has used this part of the tree for long. A look takes a part of
// the interval, and ticks may come late, so half an interval counts as a whole one.
func (w *watched[V]) due(now time.Time) (due, cold bool) {
	every := w.t.cfg.PollInterval
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frozen || w.t.path != "" && now.Sub(w.used) > coldAfter*every {
		return false, true
	}
	wait := max(every, min(every<<min(w.failures, maxBackoff), longestPause))
	return w.running == nil && (now.Before(w.began) || now.Sub(w.began) >= wait-every/2), false
}

// Refresh looks for new versions at once, with a full listing, and returns when they are shown. Looks that are asked for
// are a second apart: a call may wait for so long. In a tree with a pinned version it does nothing. Errors are the
// store's; what was known before goes on to be shown then.
func (t *Tree) Refresh(ctx context.Context) error {
	all := t.watching.list()
	errs := make(chan error, len(all))
	for _, w := range all {
		go func() { errs <- w.ask(ctx) }()
	}
	var first error
	for range all {
		if err := <-errs; first == nil && err != nil {
			first = err
		}
	}
	return first
}

// refreshFile is .frifs/refresh: looking it up has the tree look for new versions, and its content says what came of it.
// It is not listed, so that nobody who walks the tree sets that off.
func (t *Tree) refreshFile(ctx context.Context) (Node, error) {
	const path = ".frifs/refresh"
	if f := t.watching.answered(nil); f != nil && !f.taken.Load() && !t.now().Before(f.mtime) && t.now().Sub(f.mtime) < askShare {
		return f, nil
	}
	before := t.versions.known()
	err := t.Refresh(ctx)
	if fault.Is(err, fault.Cancelled) {
		return nil, t.failed("refresh", path, err)
	}
	if t.cfg.Settle != nil {
		// Who has the answer sees what it tells of, whatever the kernel had kept.
		wait, cancel := context.WithTimeout(ctx, settleTime)
		t.cfg.Settle(wait)
		cancel()
	}
	now := t.versions.known()
	a := t.looks()
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("latest_version")
		if now == nil {
			e.Null()
		} else {
			e.OptUint(now.latest())
		}
		e.K("before")
		if before == nil {
			e.Null()
		} else {
			e.OptUint(before.latest())
		}
		e.K("changed").Bool(before != now)
		e.K("pinned_version").OptUint(t.pin)
		e.K("looked_at").Time(a.began)
		e.K("error").Err(err)
	})
	data, err := jsonBytes(ctx, j.Done())
	if err != nil {
		return nil, t.failed("render", path, err)
	}
	f := &askedFile{bytesFile: bytesFile{base: base{ino: t.inode(path, string(data)), path: path, mtime: t.now()}, data: data}}
	return t.watching.answered(f), nil
}

// answered keeps the answer to who asked last, unless it is nil, and returns the last one.
func (s *watchings) answered(f *askedFile) *askedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f != nil {
		s.answer = f
	}
	return s.answer
}

// askedFile is a file whose looking up does something: no answer may be kept.
type askedFile struct {
	bytesFile
	taken atomic.Bool // somebody has opened it: whoever asks now is another one
}

// Open implements File.
func (f *askedFile) Open(ctx context.Context) (Handle, error) {
	f.taken.Store(true)
	return f.bytesFile.Open(ctx)
}

// Transient implements Transient.
func (*askedFile) Transient() bool { return true }
