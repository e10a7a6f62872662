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
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/rowmap"
)

// Config says which tree to build. Dataset is needed; the zero value of every other field is usable.
type Config struct {
	Dataset   *dataset.Dataset
	Database  *dataset.Database // in place of Dataset: the tree shows all its tables
	URI       string            // shown to users, without credentials; "" = the dataset's own
	Branch    string            // pin: a branch, and its newest version unless Version or AsOf names another; "main" = the main line
	Tag       string            // pin: the version that the tag names
	Version   *uint64           // pin: only this version is in the tree
	AsOf      time.Time         // pin: the highest version whose manifest time is not later; zero = none
	OpTimeout time.Duration     // bound on one operation; 0 = 60 s. Half of it is used inside
	Memory    int64             // budget in bytes for documents, manifests, histories and decoded blocks; 0 = 128 MiB
	Budget    *store.Budget     // what all of that counts in, with the other caches of the process; nil: nothing more
	Blocks    *rowmap.Cache     // decoded blocks of mappings; nil = a part of Memory
	Jobs      int               // background jobs that run at a time; 0 = 2
	Release   string            // frifs release, shown in .frifs/status.json
	Now       func() time.Time  // nil = time.Now
	OnError   func(ErrorRecord) // told about each failure that .frifs/errors.jsonl gets; may be nil
	OnChange  func(Change)      // told of each look that found something new, those of one Dir in order; must return at once; may be nil
	Gauges    func() []Gauge    // more figures for .frifs/status.json and .frifs/metrics; may be nil
	CacheDir  string            // where large re-serialised index files spill to; "" = the system's temporary directory

	// Settle returns when all that OnChange was told shows to clients, or the context ends; may be nil.
	Settle func(context.Context)

	// PollInterval is how old what is known of the versions may get; 0 = 10 s. See Tree.Watch.
	PollInterval time.Duration

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

// shared is what the trees of one mount have in common: the caches with one budget of memory, the background jobs, the
// failures. Keys of caches name the dataset, or the content alone where it means the same in every dataset.
type shared struct {
	start time.Time
	now   func() time.Time
	stop  context.CancelFunc

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
	watching watchings              // what is looked at for new versions
	trees    *flight[string, *Tree] // of branches and tables that were looked into, by URI

	measuring chan struct{} // holds a token for each table that is being measured for metrics
}

// maxTrees is how many branches and tables stay open at a time. One that was let go of opens again when it is asked for;
// what was read of it is in the caches, not in the tree.
const maxTrees = 256

// Tree is the virtual tree of one dataset, with its branches. It is safe for concurrent use. Close ends its background
// jobs.
type Tree struct {
	*shared
	cfg   Config
	ds    *dataset.Dataset
	path  string    // of this tree's root in the whole tree, with a slash at the end; "" for the root of the mount
	scope string    // sets the keys of this dataset apart in the caches
	jobs  *treeJobs // of the mount

	pin                    *uint64 // the only version shown; nil = all
	versions               *watched[*view]
	tagsSeen, branchesSeen *watched[*refList]
	live                   *live

	db     *dataset.Database // of the root of a database, which has none of ds, tagsSeen and branchesSeen; else nil
	tables *watched[*tableNames]
	inUse  tablesInUse

	figures tableFigures // of the newest version, for metrics

	orphans orphanKeeper
}

// New builds the tree of cfg.Dataset. It lists the versions once, and reads refs and manifests only to find the version
// of a pin. Errors: fault.NotFound where a pinned version, tag or branch does not exist, fault.Invalid for selectors that
// exclude each other and for a ForReader or OmitIndex that means nothing, and those of the store.
func New(ctx context.Context, cfg Config) (*Tree, error) {
	cfg = cfg.withDefaults()
	switch {
	case cfg.Database != nil:
		return newDatabase(ctx, cfg)
	case cfg.Dataset == nil:
		return nil, fault.New("nodes.New", "", fault.Invalid, "no dataset given")
	}
	if err := cfg.selectBranch(ctx); err != nil {
		return nil, err
	}
	if cfg.URI == "" {
		cfg.URI = cfg.Dataset.URI()
	}
	s, jobs, err := newShared(ctx, cfg)
	if err != nil {
		return nil, err
	}
	t := s.tree(cfg, jobs, "")
	if err := t.resolvePin(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return t, nil
}

func (cfg Config) withDefaults() Config {
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
	if cfg.PollInterval <= 0 {
		cfg.PollInterval = defaultPollInterval
	}
	return cfg
}

// newShared makes the caches of a mount.
func newShared(ctx context.Context, cfg Config) (*shared, *jobs, error) {
	parts, err := newLanceParts(cfg)
	if err != nil {
		return nil, nil, err
	}
	jobCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &shared{now: cfg.Now, start: cfg.Now(), stop: stop, blocks: cfg.Blocks, lance: parts}
	wait := cfg.OpTimeout / 2
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
	t.measuring = make(chan struct{}, figuresAtOnce)
	t.trees = newFlight[string, *Tree](maxTrees*treeCost, wait, t.now)
	t.records = fri.NewCache(cfg.Memory / 8)
	if t.blocks == nil {
		t.blocks = rowmap.NewCache(cfg.Memory / 4)
	}
	t.join(cfg.Budget)
	return t, newJobs(jobCtx, cfg.Jobs, wait, t.now), nil
}

// treeCost is what one open tree counts for among the trees.
const treeCost = 1024

// tree makes the tree of cfg.Dataset at path, which ends in a slash or is empty.
func (s *shared) tree(cfg Config, js *jobs, path string) *Tree {
	t := &Tree{shared: s, cfg: cfg, ds: cfg.Dataset, path: path, scope: cfg.URI + "\x00", jobs: &treeJobs{js, path}}
	t.versions = t.watchVersions()
	t.tagsSeen, t.branchesSeen = t.watchTags(), t.watchRefs("branches", t.refsOf().WatchBranches().Look)
	t.live = newLive(t)
	return t
}

// below makes the tree of another dataset of the mount, without a pin.
func (t *Tree) below(ds *dataset.Dataset, path string) *Tree {
	cfg := t.cfg
	cfg.Database, cfg.Dataset, cfg.URI = nil, ds, ds.URI()
	cfg.Version, cfg.AsOf, cfg.Branch, cfg.Tag = nil, time.Time{}, "", ""
	return t.tree(cfg, t.jobs.jobs, t.path+path)
}

// Close ends the background jobs of the tree, and closes remapped files that nobody has open. Nodes that need no job
// stay readable.
func (t *Tree) Close() {
	t.stop()
	t.forgetRemapped()
}

// Dataset returns the dataset that the tree shows: that of the branch which a selector names, else Config.Dataset. It is nil for
// a database.
func (t *Tree) Dataset() *dataset.Dataset { return t.ds }

// inode gives the inode of path with a content key.
func (t *Tree) inode(path, key string) uint64 { return inode(t.cfg.URI, path, key) }
