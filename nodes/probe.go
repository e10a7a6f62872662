package nodes

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
)

// defaultPollInterval is how old what is known of the versions may get (docs/DESIGN.md, "Command line").
const defaultPollInterval = 10 * time.Second

const (
	// askPause is the least time between two looks that somebody asked for.
	askPause = time.Second
	// askShare is for how long the answer to one who asked is given to others: the kernel looks a name up twice in a row
	// where it had another answer before.
	askShare = 50 * time.Millisecond
)

// watched is the versions of one dataset as they were when somebody last looked. Between two looks they are served as
// known, without asking the store. At most one look runs at a time; all who want one share it, and it outlives any of
// them. While the store cannot be asked, what was known goes on to be served: an error would take the whole tree away.
type watched struct {
	t    *Tree
	dir  string // of the tree: it holds latest and versions/; "" is the root
	make func(*dataset.Listing) *view
	src  *dataset.Watch // used by the look that runs

	mu       sync.Mutex // protects what follows; never held while looking
	v        *view      // nil before the first look that succeeded
	frozen   bool       // v stays for ever
	err      error      // of the last look
	failures int        // looks that failed, since one succeeded
	began    time.Time  // the last look
	ended    time.Time
	seen     time.Time // when the last look that succeeded began
	changed  time.Time // when v came to be; zero: at the first look
	used     time.Time // when v was last asked for
	asked    time.Time // when the last look began that somebody asked for
	answered time.Time // when it ended
	running  *probe
	looks    uint64
	failed   uint64 // of them
	changes  uint64 // that they found
}

// probe is one look at the store that runs.
type probe struct {
	full bool
	done chan struct{} // closed when the fields below are final
	v    *view
	err  error
}

// watch makes the versions of the tree's dataset known as those of dir.
func (t *Tree) watch() *watched {
	return &watched{t: t, dir: strings.TrimSuffix(t.path, "/"), make: t.newView, src: t.ds.Watch(t.now)}
}

// watchings is what the trees of a mount watch. What was not used for long is left out until it is used again.
type watchings struct {
	mu     sync.Mutex // protects all
	all    map[*watched]bool
	polled bool // somebody looks for new versions time and again
}

// use notes that w is used, and reports whether it is looked after.
func (s *watchings) use(w *watched) (polled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[w] {
		return s.polled
	}
	if s.all == nil {
		s.all = map[*watched]bool{}
	}
	s.all[w] = true
	return false
}

func (s *watchings) leave(w *watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, w)
}

func (s *watchings) list() []*watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.all))
}

func (s *watchings) poll(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polled = on
}

// view returns the versions as they are known. It looks where nothing is known yet, and where what is known is older
// than it may be: in a tree that is not polled, or in a part of it that was not used for long.
func (w *watched) view(ctx context.Context) (*view, error) {
	polled := w.t.watching.use(w)
	now := w.t.now()
	w.mu.Lock()
	w.used = now
	age, limit := now.Sub(w.ended), w.t.cfg.PollInterval
	if w.failures > 0 {
		limit = min(limit, failureMemory)
	}
	v, err := w.v, w.err
	ok := false
	switch {
	case v == nil:
		ok = err != nil && age < failureMemory
	case w.frozen:
		ok = true
	default:
		ok = polled || age < limit
	}
	w.mu.Unlock()
	if ok {
		if v != nil {
			err = nil
		}
		return v, err
	}
	return w.look(ctx, false)
}

// freeze ends the watching: v stays.
func (w *watched) freeze(v *view) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.v, w.frozen = v, true
}

// look looks, or waits for the look that runs. A failure gives what was known before, if anything was.
func (w *watched) look(ctx context.Context, full bool) (*view, error) {
	l := w.start(ctx, full)
	select {
	case <-l.done:
		return l.v, l.err
	case <-ctx.Done():
		return nil, fault.Wrap("nodes.Look", w.dir, ctx.Err())
	}
}

// start begins a look, unless one runs.
func (w *watched) start(ctx context.Context, full bool) *probe {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == nil {
		w.running = &probe{full: full, done: make(chan struct{})}
		go w.run(context.WithoutCancel(ctx), w.running)
	}
	return w.running
}

// ask looks for what is there now: with a look that begins after the call, and askPause after the last one that was
// asked for. An answer of askShare ago is given again.
func (w *watched) ask(ctx context.Context) error {
	called := w.t.now()
	for {
		w.mu.Lock()
		now := w.t.now()
		if w.frozen || !w.asked.Before(called) || called.Sub(w.answered) < askShare {
			defer w.mu.Unlock()
			return w.err
		}
		var pause <-chan time.Time
		var wait <-chan struct{}
		if w.running != nil {
			wait = w.running.done
		} else if rest := askPause - now.Sub(w.asked); rest > 0 {
			timer := time.NewTimer(min(rest, askPause))
			defer timer.Stop()
			pause = timer.C
		}
		w.mu.Unlock()
		if wait == nil && pause == nil {
			wait = w.start(ctx, true).done
		}
		select {
		case <-wait:
		case <-pause:
		case <-ctx.Done():
			return fault.Wrap("nodes.Refresh", w.dir, ctx.Err())
		}
	}
}

func (w *watched) run(ctx context.Context, l *probe) {
	ctx, cancel := context.WithTimeout(ctx, w.t.cfg.OpTimeout/2)
	defer cancel()
	began := w.t.now()
	found, _, err := guarded(ctx, func(ctx context.Context) (*dataset.Listing, int64, error) {
		found, err := w.src.Look(ctx, l.full)
		return found, 0, err
	})
	w.mu.Lock()
	old := w.v
	v := old
	if err == nil && (old == nil || old.listing != found) && !w.frozen {
		v = w.make(found)
	}
	w.v, w.err, w.began, w.ended = v, err, began, w.t.now()
	w.looks++
	news := false // of a failure
	if err == nil {
		w.failures, w.seen = 0, began
	} else {
		w.failures++
		w.failed++
		news = w.failures == 1
	}
	if l.full {
		w.asked, w.answered = began, w.ended
	}
	if old != nil && v != old {
		w.changed = w.ended
		w.changes++
	}
	w.mu.Unlock()
	if old != nil && err != nil {
		if news {
			_ = w.t.failed("list", joinPath(w.dir, "versions"), err)
		}
		err = nil
	}
	if old != nil && v != old && w.t.cfg.OnChange != nil {
		w.t.cfg.OnChange(changeOf(w.dir, old, v))
	}
	w.mu.Lock()
	w.running = nil
	w.mu.Unlock()
	l.v, l.err = v, err
	close(l.done)
}

// ages is what is known of the looks, for display.
type ages struct {
	seen, began, changed   time.Time
	looks, failed, changes uint64
	failures               int
	frozen                 bool
}

func (w *watched) ages() ages {
	w.mu.Lock()
	defer w.mu.Unlock()
	return ages{w.seen, w.began, w.changed, w.looks, w.failed, w.changes, w.failures, w.frozen}
}

// known returns the view as it is known, without a look; nil if none is.
func (w *watched) known() *view {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.v
}

// looks adds how the looks for new versions are going.
func (e *enc) looks(a ages, every time.Duration, now time.Time) {
	age := func(key string, at time.Time) {
		e.K(key + "_at").Time(at)
		e.K(key + "_age_seconds")
		if at.IsZero() {
			e.Null()
		} else {
			e.Int(int64(now.Sub(at).Seconds()))
		}
	}
	age("last_probe", a.began)
	age("last_change", a.changed)
	e.K("poll_interval")
	if a.frozen {
		e.Null()
	} else {
		e.Str(every.String())
	}
	e.K("probes").Uint(a.looks)
	e.K("probes_failed").Uint(a.failed)
	e.K("probes_failed_in_a_row").Int(int64(a.failures))
}

func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
