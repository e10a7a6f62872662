package nodes

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
)

// defaultPollInterval is how old what is known of the versions may get (docs/DESIGN.md, "Command line").
const defaultPollInterval = 10 * time.Second

// askPause is the least time between two looks that somebody asked for.
const askPause = time.Second

// watched is something of a dataset that changes, its versions or its refs, as it was when somebody last looked. Between
// two looks it is served as known, without asking the store. At most one look runs at a time; all who want one share it,
// and it outlives any of them. While the store cannot be asked, what was known goes on to be served: an error would take
// that part of the tree away. The zero V is nothing.
type watched[V comparable] struct {
	t    *Tree
	name string // what failures are noted of, from the root of t
	// find looks at the store, with a full listing if full. It returns old where nothing has changed.
	find func(ctx context.Context, old V, full bool) (V, error)
	// change says what is new.
	change func(old, now V) Change
	news   func() // told of each change; may be nil
	once   bool   // the first look is the last one

	mu       sync.Mutex // protects what follows; never held while looking
	v        V          // zero before the first look that succeeded
	frozen   bool       // v stays for ever
	err      error      // of the last look
	failures int        // looks that failed, since one succeeded
	began    time.Time  // the last look
	ended    time.Time
	seen     time.Time // when the last look that succeeded began
	changed  time.Time // when v came to be; zero: at the first look
	used     time.Time // when v was last asked for
	asked    time.Time // when the last full look began
	begun    uint64    // full looks
	told     uint64    // full looks that ended, and whose findings were told
	running  *probe
	looks    uint64
	failed   uint64 // of them
	changes  uint64 // that they found
}

// probe is one look at the store that runs.
type probe struct {
	full bool
	done chan struct{} // closed when err, and the result in watched, are final
	err  error         // where nothing is known
}

// watchVersions makes the versions of the tree's dataset known.
func (t *Tree) watchVersions() *watched[*view] {
	src := t.ds.Watch(t.now)
	return &watched[*view]{
		t: t, name: "versions",
		find: func(ctx context.Context, old *view, full bool) (*view, error) {
			l, err := src.Look(ctx, full)
			switch {
			case err != nil:
				return nil, err
			case old != nil && old.listing == l:
				return old, nil
			}
			return t.newView(l), nil
		},
		change: func(old, now *view) Change { return changeOf(t.dir(), old, now) },
		news:   t.forgetGone,
	}
}

// dir is where the tree's root is in the whole tree, without a slash at the end.
func (t *Tree) dir() string { return strings.TrimSuffix(t.path, "/") }

// looker is what a watched shows to those who look time and again.
type looker interface {
	due(now time.Time) (due, cold bool)
	start(ctx context.Context, full bool) *probe
	ask(ctx context.Context) error
}

// watchings is what the trees of a mount watch. What was not used for long is left out until it is used again.
type watchings struct {
	mu     sync.Mutex // protects all
	all    map[looker]bool
	polled bool       // somebody looks for new versions time and again
	answer *askedFile // to who asked last
}

// use notes that w is used, and reports whether it is looked after.
func (s *watchings) use(w looker) (polled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[w] {
		return s.polled
	}
	if s.all == nil {
		s.all = map[looker]bool{}
	}
	s.all[w] = true
	return false
}

func (s *watchings) leave(w looker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, w)
}

func (s *watchings) list() []looker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.all))
}

func (s *watchings) poll(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polled = on
}

// get returns what is known. It looks where nothing is known yet, and where what is known is older
// than it may be: in a tree that is not polled, or in a part of it that was not used for long.
func (w *watched[V]) get(ctx context.Context) (V, error) {
	polled := w.t.watching.use(w)
	now := w.t.now()
	w.mu.Lock()
	w.used = now
	age, limit := now.Sub(w.ended), w.t.cfg.PollInterval
	if w.failures > 0 {
		limit = min(limit, failureMemory)
	}
	v, err := w.v, w.err
	var none V
	var ok bool
	switch {
	case v == none:
		ok = err != nil && age >= 0 && age < failureMemory
	case w.frozen:
		ok = true
	default:
		ok = polled || age >= 0 && age < limit
	}
	w.mu.Unlock()
	if ok {
		if v != none {
			err = nil
		}
		return v, err
	}
	return w.look(ctx, false)
}

// keep has what is known looked after as if it were used, without a look by itself. Where nothing is known it does nothing.
func (w *watched[V]) keep() {
	var none V
	if w.known() == none {
		return
	}
	w.t.watching.use(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = w.t.now()
}

// freeze ends the watching: v stays.
func (w *watched[V]) freeze(v V) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.v, w.frozen = v, true
}

// look looks, or waits for the look that runs. A failure gives what was known before, if anything was.
func (w *watched[V]) look(ctx context.Context, full bool) (V, error) {
	l := w.start(ctx, full)
	select {
	case <-l.done:
		return w.known(), l.err
	case <-ctx.Done():
		var none V
		return none, fault.Wrap("nodes.Look", w.name, ctx.Err())
	}
}

// start begins a look, unless one runs.
func (w *watched[V]) start(ctx context.Context, full bool) *probe {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == nil {
		w.running = &probe{full: full, done: make(chan struct{})}
		if full {
			w.begun++
		}
		go w.run(context.WithoutCancel(ctx), w.running)
	}
	return w.running
}

// ask looks for what is there now: with a look that begins after the call, and askPause after the last one that was
// asked for.
func (w *watched[V]) ask(ctx context.Context) error {
	w.mu.Lock()
	after := w.begun + 1
	w.mu.Unlock()
	for {
		w.mu.Lock()
		if w.frozen || w.told >= after {
			defer w.mu.Unlock()
			return w.err
		}
		var pause <-chan time.Time
		var wait <-chan struct{}
		if w.running != nil {
			wait = w.running.done
		} else if rest := w.rest(); rest > 0 {
			timer := time.NewTimer(rest)
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
			return fault.Wrap("nodes.Refresh", w.name, ctx.Err())
		}
	}
}

// rest is how long the next full look that is asked for has to wait. The caller holds w.mu.
func (w *watched[V]) rest() time.Duration {
	since := w.t.now().Sub(w.asked)
	if since < 0 { // the clock was set back
		return 0
	}
	return max(0, askPause-since)
}

// doubt has the tree look again since something that it shows turned out to be gone, and waits for that look until ctx
// ends. Nothing is done where there was such a look a moment ago.
func (w *watched[V]) doubt(ctx context.Context) {
	w.mu.Lock()
	var none V
	idle := w.frozen || w.v == none || w.running == nil && w.rest() > 0
	w.mu.Unlock()
	if !idle {
		_, _ = w.look(ctx, true) // what comes of it shows, and is noted, by itself
	}
}

func (w *watched[V]) run(ctx context.Context, l *probe) {
	ctx, cancel := context.WithTimeout(ctx, w.t.cfg.OpTimeout/2)
	defer cancel()
	began := w.t.now()
	old := w.known()
	v, _, err := guarded(ctx, func(ctx context.Context) (V, int64, error) {
		v, err := w.find(ctx, old, l.full)
		return v, 0, err
	})
	var none V
	w.mu.Lock()
	if err != nil || w.frozen {
		v = w.v
	}
	w.frozen = w.frozen || w.once && err == nil
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
		w.asked = began
	}
	if old != none && v != old {
		w.changed = w.ended
		w.changes++
	}
	w.mu.Unlock()
	if old != none && err != nil {
		if news {
			_ = w.t.failed("list", w.name, err)
		}
		err = nil
	}
	if old != none && v != old && w.news != nil {
		w.news()
	}
	if old != none && v != old && w.t.cfg.OnChange != nil {
		w.t.cfg.OnChange(w.change(old, v))
	}
	w.mu.Lock()
	w.running = nil
	if l.full {
		w.told++
	}
	w.mu.Unlock()
	l.err = err
	close(l.done)
}

// ages is what is known of the looks, for display.
type ages struct {
	seen, began, changed   time.Time
	looks, failed, changes uint64
	failures               int
	frozen                 bool
	err                    error // of the last look
}

// stale is since when what is shown could not be compared with the store; zero = it could the last time.
func (a *ages) stale() time.Time {
	if a.failures == 0 || a.frozen {
		return time.Time{}
	}
	return a.seen
}

func (w *watched[V]) ages() ages {
	w.mu.Lock()
	defer w.mu.Unlock()
	return ages{w.seen, w.began, w.changed, w.looks, w.failed, w.changes, w.failures, w.frozen, w.err}
}

// known returns what is known, without a look; the zero V where nothing is.
func (w *watched[V]) known() V {
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
	e.K("stale_since").Time(a.stale())
	e.K("probe_error").Err(a.err)
}

func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
