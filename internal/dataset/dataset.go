package dataset

import (
	"context"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

const (
	versionsDir     = "_versions"
	transactionsDir = "_transactions"
	deletionsDir    = "_deletions"
	indicesDir      = "_indices"
	dataDir         = "data"
	latestName      = "_latest.manifest"

	// DefaultMaxManifestBytes is the largest manifest message or index section that is decoded.
	DefaultMaxManifestBytes = 256 << 20
	// DefaultCacheBytes is the budget for decoded manifests and deletion vectors.
	DefaultCacheBytes = 64 << 20
)

// Rebase replaces a prefix of base paths: a table that was moved after it was cloned or branched (--rebase OLD=NEW).
type Rebase struct {
	Old, New string
}

// Options says how a dataset is read. The zero value is the default.
type Options struct {
	// AllowBase admits base paths below these absolute paths or URIs, beside the dataset's own tree and its parent.
	AllowBase []string
	// Rebase is applied to each base path before anything else; the first entry whose Old is a prefix by whole path
	// elements counts.
	Rebase []Rebase
	// Bases names where the bases with these ids are, in place of what manifests record (--base ID=URI). Such a place may
	// lie anywhere: it is the user's word.
	Bases map[uint32]string
	// FollowOutside lets symbolic links leave the roots of local bases.
	FollowOutside bool
	// OpenStore opens the store of a base that is not below the dataset's own root. nil means store.OpenURI.
	OpenStore func(ctx context.Context, uri string) (store.Store, error)
	// MaxManifestBytes bounds a manifest message and an index section; 0 means DefaultMaxManifestBytes.
	MaxManifestBytes int64
	// CacheBytes bounds what is kept decoded; 0 means DefaultCacheBytes, negative means nothing is kept.
	CacheBytes int64
	// Budget is what that counts in, with the other caches of the process. nil: none.
	Budget *store.Budget
}

// Dataset is one table, or one branch of it, in a store. It is safe for concurrent use.
type Dataset struct {
	st           store.Store
	opt          Options
	cache        *cache
	legacyLatest bool // _latest.manifest beside _versions when the dataset was opened

	main   *Dataset // that this is a branch of; nil where it was not opened as one
	branch string   // its name then

	datasets sync.Map               // URI → true: where a _versions directory was seen
	mu       sync.Mutex             // protects stores
	stores   map[string]store.Store // of bases outside the dataset's own tree, by URI
}

// Open looks whether st holds a dataset. It fails only if there is no _versions directory (fault.NotFound) or the store
// cannot be asked; damaged manifests show later, each at its own version.
func Open(ctx context.Context, st store.Store, opt Options) (*Dataset, error) {
	opt = opt.withDefaults()
	return open(ctx, st, opt, newCache(opt.CacheBytes, opt.Budget))
}

func (opt Options) withDefaults() Options {
	if opt.MaxManifestBytes <= 0 {
		opt.MaxManifestBytes = DefaultMaxManifestBytes
	}
	if opt.CacheBytes == 0 {
		opt.CacheBytes = DefaultCacheBytes
	}
	return opt
}

// open is Open with a cache that may be shared: its keys name the dataset.
func open(ctx context.Context, st store.Store, opt Options, c *cache) (*Dataset, error) {
	const op = "dataset.Open"
	if legacy, ok := rootShows(ctx, st); ok {
		return &Dataset{st: st, opt: opt, cache: c, legacyLatest: legacy}, nil
	}
	_, lerr := st.Stat(ctx, latestName)
	if lerr != nil && !tolerable(lerr) {
		return nil, fault.Wrap(op, st.URI(), lerr)
	}
	legacy := lerr == nil
	if err := hasVersions(ctx, st); err != nil {
		switch {
		case !fault.Is(err, fault.NotFound), store.NoBucket(err):
			return nil, fault.Wrap(op, st.URI(), err)
		case legacy:
			return nil, fault.New(op, st.URI(), fault.NotFound,
				"there is no _versions directory, only %s: a table from before Lance kept versions there, which frifs cannot list", latestName)
		}
		return nil, fault.New(op, st.URI(), fault.NotFound, "not a Lance dataset: there is no _versions directory here")
	}
	return &Dataset{st: st, opt: opt, cache: c, legacyLatest: legacy}, nil
}

// rootNames is up to how many names of the root are looked at.
const rootNames = 1000

// rootShows looks into the root of an object store for the _versions directory and _latest.manifest, with one request.
// ok is false where the directory is not among the first names, or the root cannot be listed.
func rootShows(ctx context.Context, st store.Store) (legacy, ok bool) {
	if _, local := st.Local(); local {
		return false, false
	}
	objects, err := store.ListFirst(ctx, st, "", rootNames)
	if err != nil {
		return false, false
	}
	for _, o := range objects {
		legacy = legacy || o.Name == latestName && !o.Dir
		ok = ok || o.Name == versionsDir && o.Dir
	}
	return legacy, ok
}

// hasVersions looks for the _versions directory: an object store shows its first name. A local directory can be stat-ed;
// to list it would cost as much as the first listing of the versions.
func hasVersions(ctx context.Context, st store.Store) error {
	if _, ok := st.Local(); !ok {
		_, err := store.ListFirst(ctx, st, versionsDir, 1)
		return err
	}
	obj, err := st.Stat(ctx, versionsDir)
	if err == nil && !obj.Dir {
		err = fault.New("dataset.Open", store.Join(st.URI(), versionsDir), fault.NotFound, "not a directory")
	}
	return err
}

// tolerable reports whether a failed look for an optional file means no more than "not there": read-only credentials
// answer 403 for a missing key.
func tolerable(err error) bool { return fault.Is(err, fault.NotFound) || fault.Is(err, fault.Denied) }

// Store returns the store of the dataset's root.
func (d *Dataset) Store() store.Store { return d.st }

// URI names the dataset, without credentials.
func (d *Dataset) URI() string { return d.st.URI() }
