package store

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	"golang.org/x/sync/semaphore"

	"github.com/frifs/frifs/fault"
)

// Defaults of Config.
const (
	DefaultLayerMemory = 32 << 20
	defaultStall       = 5 * time.Second
	defaultParallel    = 32
	defaultTries       = 7
	defaultReadAhead   = 8 << 20
)

// Config says how a request layer works. The zero value is the default.
type Config struct {
	// Memory bounds the blocks that are kept, in bytes. 0: DefaultLayerMemory; negative: nothing is kept.
	Memory int64
	// Transfer bounds the blocks that are under way, in bytes, read-ahead included. 0: half of Memory.
	Transfer int64
	// Budget is what both count in, with the other caches of the process. nil: none.
	Budget *Budget
	// Disk is a second cache, which outlives the process. nil: none.
	Disk *DiskCache
	// CallTimeout bounds one call with all its tries. 0: DefaultCallTimeout.
	CallTimeout time.Duration
	// Stall ends a try that brought nothing for so long, so that another one may begin. 0: 5 s.
	Stall time.Duration
	// Tries is how often a request is made at most, hedges not counted. 0: 7.
	Tries int
	// Parallel is how many requests are under way at most. 0: 32.
	Parallel int
	// ReadAhead is the largest window that is read before a sequential reader asks, in bytes. 0: 8 MiB; negative: none.
	ReadAhead int64
	// Rand returns numbers in [0, 1) for jitter. nil: math/rand/v2.
	Rand func() float64
}

// Layer stands between remote stores and all who read them: it repeats what failed for a moment, asks twice where an
// answer is late, bounds how much is asked at once, joins equal reads, reads ahead, caches blocks, and counts. One layer
// serves all stores of a process. It is safe for concurrent use.
type Layer struct {
	cfg       Config
	slots     chan struct{}
	mem       *memory
	room      *semaphore.Weighted // bytes of blocks that may be under way
	transfer  *Share              // the same in the budget
	runBlocks int                 // how many blocks one request asks for at most
	late      lateness
	notes     notes
	openings  openings
	count     counters
	ahead     atomic.Int64  // bytes of read-ahead under way
	serial    atomic.Uint64 // names stores that have no identity of their own

	mu       sync.Mutex // guards contents
	contents map[string]*content
}

// NewLayer makes a request layer.
func NewLayer(cfg Config) *Layer {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&cfg.CallTimeout, DefaultCallTimeout)
	set(&cfg.Stall, defaultStall)
	if cfg.Memory == 0 {
		cfg.Memory = DefaultLayerMemory
	}
	if cfg.Tries <= 0 {
		cfg.Tries = defaultTries
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = defaultParallel
	}
	if cfg.ReadAhead == 0 {
		cfg.ReadAhead = defaultReadAhead
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	if cfg.Transfer <= 0 {
		cfg.Transfer = max(cfg.Memory, DefaultLayerMemory/4) / 2
	}
	cfg.Transfer = max(cfg.Transfer, BlockSize)
	// What is read ahead waits in the cache until it is asked for.
	cfg.ReadAhead = max(0, min(cfg.ReadAhead, cfg.Memory/4))
	return &Layer{
		cfg: cfg, slots: make(chan struct{}, cfg.Parallel), mem: newMemory(cfg.Memory, cfg.Budget), contents: map[string]*content{},
		room: semaphore.NewWeighted(cfg.Transfer), transfer: cfg.Budget.Share("requests_under_way", nil),
		runBlocks: int(max(1, min(maxRunBlocks, cfg.Transfer/2/BlockSize))),
	}
}

// layer is the layer to use, made on the spot if the options name none.
func (o Options) layer() *Layer {
	if o.Layer != nil {
		return o.Layer
	}
	return NewLayer(Config{CallTimeout: o.CallTimeout})
}

// Wrap puts the layer around a store that is not one of this package's, such as one that a test slows down.
func (l *Layer) Wrap(st Store) Store { return l.wrap(asRemote(st)) }

func (l *Layer) wrap(s remote) *layered {
	id := s.id()
	if id == "" {
		id = "process|" + strconv.FormatUint(l.serial.Add(1), 10)
	}
	return &layered{l: l, s: s, ident: id, lasting: s.id() != "", denials: &denials{}}
}

// layered is a store behind the layer.
type layered struct {
	l       *Layer
	s       remote
	ident   string // of the store, for caches
	lasting bool   // whether ident means the same store in another process
	denials *denials
}

func (d *layered) URI() string           { return d.s.URI() }
func (d *layered) Local() (string, bool) { return d.s.Local() }

func (d *layered) Sub(dir string) Store {
	if dir == "" {
		return d
	}
	return &layered{d.l, d.s.below(dir), d.ident + "|" + dir, d.lasting, &denials{}}
}

func (d *layered) List(ctx context.Context, dir string) ([]Object, error) {
	return listPages(ctx, pager{d}, dir)
}

// pager lists with one retried request for each page.
type pager struct{ *layered }

func (p pager) page(ctx context.Context, dir string, token []byte, size int) ([]Object, []byte, error) {
	type answer struct {
		out  []Object
		next []byte
	}
	a, err := retry(ctx, p.l, "store.List", Join(p.URI(), dir), func(ctx context.Context) (answer, error) {
		return single(ctx, p.l, &p.l.count.lists, func(ctx context.Context) (answer, error) {
			out, next, err := p.s.page(ctx, dir, token, size)
			return answer{out, next}, err
		})
	})
	return a.out, a.next, err
}

func (p pager) get(ctx context.Context, name string, off, n int64, want Object) (*body, error) {
	return p.s.get(ctx, name, off, n, want)
}
func (p pager) atTop(dir string) bool   { return p.s.atTop(dir) }
func (p pager) id() string              { return p.s.id() }
func (p pager) ordered() bool           { return p.s.ordered() }
func (p pager) opening() int64          { return p.s.opening() }
func (p pager) below(dir string) remote { return p.s.below(dir) }

// ListFirst returns the first n entries of dir in byte order with one request where the store lists in order; all of
// them elsewhere.
func (d *layered) ListFirst(ctx context.Context, dir string, n int) ([]Object, error) {
	if !d.s.ordered() || n > pageSize {
		return d.List(ctx, dir)
	}
	var out []Object
	for token := blob.FirstPageToken; len(token) > 0 && len(out) < n; {
		page, next, err := pager{d}.page(ctx, dir, token, n)
		if err != nil {
			return nil, err
		}
		out, token = append(out, page...), next
	}
	if len(out) == 0 && !d.s.atTop(dir) {
		return nil, fault.New("store.List", Join(d.URI(), dir), fault.NotFound, "nothing is stored below this name")
	}
	return out, nil
}

// ListsInOrder implements FirstLister.
func (d *layered) ListsInOrder() bool { return d.s.ordered() }

func (d *layered) Stat(ctx context.Context, name string) (Object, error) {
	obj, err := retry(ctx, d.l, "store.Stat", Join(d.URI(), name), func(ctx context.Context) (Object, error) {
		return single(ctx, d.l, &d.l.count.stats, func(ctx context.Context) (Object, error) { return d.s.Stat(ctx, name) })
	})
	return obj, d.hidden(ctx, name, err)
}

// ReadRange asks the store each time: without an identity nothing can be told from the cache.
func (d *layered) ReadRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	p, err := retry(ctx, d.l, "store.ReadRange", Join(d.URI(), name), func(ctx context.Context) ([]byte, error) {
		b, err := d.l.open(ctx, d.s, name, off, n, Object{})
		if err != nil {
			return nil, err
		}
		defer func() { _ = b.Close() }() // only read from
		p := make([]byte, b.length(n))
		if err := b.fill(ctx, d.s, p); err != nil {
			return nil, b.cause(err)
		}
		return p, nil
	})
	return p, d.hidden(ctx, name, err)
}

// OpenSized opens an object that the caller knows from a listing, without a request. The first read finds out whether
// it is still that object (fault.Stale if not).
func (d *layered) OpenSized(_ context.Context, obj Object) (Reader, error) {
	if err := CheckName(obj.Name); err != nil {
		return nil, fault.Wrap("store.Open", d.URI(), err)
	}
	return d.reader(obj), nil
}
