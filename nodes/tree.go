package nodes

import (
	"context"
	"runtime"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/mapcsv"
	"github.com/frifs/frifs/rowmap"
)

// Config says which tree to build. Dataset is needed; the zero value of every other field is usable.
type Config struct {
	Dataset   *dataset.Dataset
	URI       string            // shown to users, without credentials; "" = the dataset's own
	Version   *uint64           // pin: only this version is in the tree
	AsOf      time.Time         // pin: the highest version whose manifest time is not later; zero = none
	OpTimeout time.Duration     // bound on one operation; 0 = 60 s. Half of it is used inside
	Memory    int64             // budget in bytes for documents, manifests, histories and decoded blocks; 0 = 128 MiB
	Blocks    *rowmap.Cache     // decoded blocks of mappings; nil = a part of Memory
	Jobs      int               // background jobs that run at a time; 0 = 2
	Release   string            // frifs release, shown in .frifs/status.json
	Now       func() time.Time  // nil = time.Now
	OnError   func(ErrorRecord) // told about each failure that .frifs/errors.jsonl gets; may be nil
	Gauges    func() []Gauge    // more figures for .frifs/status.json and .frifs/metrics; may be nil
	CacheDir  string            // where large re-serialised index files spill to; "" = the system's temporary directory

	// ForReader names the Lance release that remapped.lance is made for ("2.0.1"): index types that make it fail are
	// left out. "" = none in particular.
	ForReader string
	// OmitIndex leaves indices out of remapped.lance: each names an index type ("FM") or an index.
	OmitIndex []string
}

// Gauge is one figure of .frifs/metrics. Name is a Prometheus metric name, Help one line.
type Gauge struct {
	Name, Help string
	Value      float64
}

// Tree is the virtual tree of one dataset. It is safe for concurrent use. Close ends its background jobs.
type Tree struct {
	cfg   Config
	ds    *dataset.Dataset
	start time.Time
	now   func() time.Time
	stop  context.CancelFunc

	pin      *uint64 // the only version shown; nil = all
	views    *flight[int64, *view]
	loads    *flight[string, *loaded]                    // by identity of the manifest
	hists    *flight[string, *history]                   // by content of the FRI entry
	maps     *flight[string, rowmap.Mapping]             // by record and place
	files    *flight[uint64, mapcsv.File]                // by inode
	txns     *flight[string, *transaction]               // by identity of the manifest
	dirs     *flight[string, []storedFile]               // files of an index directory, by its URI
	docs     *flight[uint64, *rendered]                  // by inode
	sizes    *flight[uint64, int64]                      // of mapping files, by inode
	opened   *flight[uint64, openedObject]               // stored files as they were when last opened, by first inode
	remaps   *flight[uint64, *held]                      // open remapped files of known size, by content
	made     *flight[uint64, *held]                      // re-serialised files, by content
	facts    *flight[string, *fileFacts]                 // what the tails of index files say, by content
	found    *flight[string, *foundFragments]            // where the addresses of a segment lie, by content
	lance    *lanceParts                                 // of remapped.lance
	resolve  func(indexfile.Resolver) indexfile.Resolver // set by tests: takes the place of translation
	records  *fri.Cache
	blocks   *rowmap.Cache
	ring     errorRing
	jobs     *jobs
	live     *live
	lastView lastView
}

// New builds the tree of cfg.Dataset. It lists the versions once, and reads manifests only to find the version of a
// pin. Errors: fault.NotFound where a pinned version does not exist, fault.Invalid for a ForReader or OmitIndex that means
// nothing, and those of the store.
func New(ctx context.Context, cfg Config) (*Tree, error) {
	if cfg.Dataset == nil {
		return nil, fault.New("nodes.New", "", fault.Invalid, "no dataset given")
	}
	if cfg.URI == "" {
		cfg.URI = cfg.Dataset.Store().URI()
	}
	if cfg.OpTimeout <= 0 {
		cfg.OpTimeout = time.Minute
	}
	if cfg.Memory <= 0 {
		cfg.Memory = 128 << 20
	}
	if cfg.Jobs <= 0 {
		cfg.Jobs = min(2, runtime.GOMAXPROCS(0))
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	parts, err := newLanceParts(cfg)
	if err != nil {
		return nil, err
	}
	jobCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &Tree{cfg: cfg, ds: cfg.Dataset, now: cfg.Now, start: cfg.Now(), stop: stop, blocks: cfg.Blocks, lance: parts}
	wait := cfg.OpTimeout / 2
	t.views = newFlight[int64, *view](1024, wait, t.now)
	t.loads = newFlight[string, *loaded](cfg.Memory/4, wait, t.now)
	t.hists = newFlight[string, *history](cfg.Memory/8, wait, t.now)
	t.maps = newFlight[string, rowmap.Mapping](cfg.Memory/16, wait, t.now)
	t.files = newFlight[uint64, mapcsv.File](cfg.Memory/16, wait, t.now)
	t.txns = newFlight[string, *transaction](cfg.Memory/16, wait, t.now)
	t.dirs = newFlight[string, []storedFile](4<<20, wait, t.now)
	t.docs = newFlight[uint64, *rendered](cfg.Memory/8, wait, t.now)
	t.sizes = newFlight[uint64, int64](4<<20, wait, t.now)
	t.opened = newFlight[uint64, openedObject](4<<20, wait, t.now)
	t.facts = newFlight[string, *fileFacts](4<<20, wait, t.now)
	t.found = newFlight[string, *foundFragments](cfg.Memory/16, wait, t.now)
	t.remaps = newFlight[uint64, *held](cfg.Memory/8, wait, t.now)
	t.made = newFlight[uint64, *held](cfg.Memory/8, wait, t.now)
	t.remaps.drop, t.made.drop = (*held).release, (*held).release
	t.records = fri.NewCache(cfg.Memory / 8)
	if t.blocks == nil {
		t.blocks = rowmap.NewCache(cfg.Memory / 4)
	}
	t.jobs = newJobs(jobCtx, cfg.Jobs, wait, t.now)
	t.live = newLive(t)
	if err := t.resolvePin(ctx); err != nil {
		stop()
		return nil, err
	}
	return t, nil
}

// Close ends the background jobs of the tree, and closes remapped files that nobody has open. Nodes that need no job
// stay readable.
func (t *Tree) Close() {
	t.stop()
	t.forgetRemapped()
}

// Dataset returns the dataset that the tree shows.
func (t *Tree) Dataset() *dataset.Dataset { return t.ds }

// inode gives the inode of path with a content key.
func (t *Tree) inode(path, key string) uint64 { return inode(t.cfg.URI, path, key) }
