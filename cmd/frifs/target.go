package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/nodes"
	"github.com/frifs/frifs/translate"
)

// defaultMemory is the default budget for everything that is cached.
const defaultMemory = 128 << 20

// defaultOpTimeout is the default bound on one operation.
const defaultOpTimeout = time.Minute

// target is the dataset that a command works on: the flags that say which version, and how it is read.
type target struct {
	version   versionValue
	tag       string
	branch    string
	asof      timeValue
	base      []string
	rebase    []string
	allowBase []string
	follow    bool
	memory    sizeValue
	manifest  sizeValue // the largest that is read
	opTimeout time.Duration
	cacheDir  string
	forReader string
	omitIndex []string
	stores    storeFlags

	wholeBranch bool // a branch alone pins nothing: all its versions show

	poll     time.Duration           // of mount and serve; 0 = the default
	onChange func(nodes.Change)      // for those; may be nil
	settle   func(context.Context)   // waits until what onChange was told shows; may be nil
	onError  func(nodes.ErrorRecord) // for mount; may be nil
	gauges   func() []nodes.Gauge    // for mount; may be nil
}

// flags adds the flags to a command.
func (t *target) flags(cmd *cobra.Command) {
	t.memory = defaultMemory
	f := cmd.Flags()
	f.Var(&t.version, "version", "show version `N` only; latest points to it")
	f.StringVar(&t.tag, "tag", "", "show only the version that tag `NAME` names")
	f.StringVar(&t.branch, "branch", "", "show branch `NAME`: its newest version only, unless --version or --asof names another of its versions")
	f.Var(&t.asof, "asof", "show only the highest version whose `TIME` is not later")
	f.StringArrayVar(&t.base, "base", nil, "read the base path with number ID from URI, wherever that is: `ID=URI`; repeatable")
	f.StringArrayVar(&t.rebase, "rebase", nil, "read base paths that begin with OLD from NEW: `OLD=NEW` (a moved clone)")
	f.StringArrayVar(&t.allowBase, "allow-base", nil, "allow base paths below `PREFIX`, beside the dataset and its parent directory")
	f.BoolVar(&t.follow, "follow-symlinks", false, "follow symbolic links that lead out of the dataset")
	f.Var(&t.memory, "memory", "budget for cached data")
	t.manifest = dataset.DefaultMaxManifestBytes
	f.Var(&t.manifest, "max-manifest-bytes", "refuse versions with a larger manifest")
	t.stores.flags(cmd)
	f.DurationVar(&t.opTimeout, "op-timeout", defaultOpTimeout, "bound on opening, reading and sizing a file")
}

// treeFlags adds the flags of commands that show remapped index files.
func (t *target) treeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.cacheDir, "cache-dir", "", "put translated index files that are large, and what came from object stores, into `DIR` (default: the system's temporary directory, and nowhere)")
	t.stores.cacheFlags(cmd)
	f.StringVar(&t.forReader, "for-reader", "", "make remapped.lance for Lance `RELEASE` (such as 2.0.1): leave out index types that it fails on")
	f.StringArrayVar(&t.omitIndex, "omit-index", nil, "leave indices out of remapped.lance, by `TYPE` (such as FM) or name; repeatable")
}

// source is an opened dataset with its tree.
type source struct {
	uri  string           // without credentials
	dir  string           // of a dataset on this machine, else ""
	ds   *dataset.Dataset // nil for a database
	tree *nodes.Tree
	root nodes.Dir
}

// options turns the flags into the options of a dataset.
func (t *target) options() (dataset.Options, error) {
	opt := dataset.Options{AllowBase: t.allowBase, FollowOutside: t.follow, CacheBytes: int64(t.memory) / 4, MaxManifestBytes: int64(t.manifest)}
	for _, b := range t.base {
		number, uri, ok := strings.Cut(b, "=")
		id, err := strconv.ParseUint(number, 10, 32)
		if !ok || err != nil || uri == "" {
			return opt, usagef("--base: %q is not ID=URI, with the number of a base path", b)
		}
		if opt.Bases == nil {
			opt.Bases = map[uint32]string{}
		}
		opt.Bases[uint32(id)] = uri
	}
	for _, r := range t.rebase {
		from, to, ok := strings.Cut(r, "=")
		if !ok || from == "" || to == "" {
			return opt, usagef("--rebase: %q is not OLD=NEW", r)
		}
		opt.Rebase = append(opt.Rebase, dataset.Rebase{Old: from, New: to})
	}
	return opt, nil
}

// checkTreeFlags finds what would otherwise show much later, in one file of the tree.
func (t *target) checkTreeFlags() error {
	for _, w := range t.omitIndex {
		if w == "" {
			return usagef("--omit-index: the name is empty")
		}
	}
	if strings.Trim(t.forReader, "0123456789.") != "" || strings.HasPrefix(t.forReader, ".") {
		return usagef("--for-reader: %q is no release of Lance, such as 2.0.1", t.forReader)
	}
	if t.cacheDir == "" {
		return nil
	}
	if err := checkWritableDir(t.cacheDir); err != nil {
		return fault.New("cache", t.cacheDir, fault.KindOf(err), "--cache-dir cannot be used: %w", err)
	}
	return nil
}

// checkWritableDir makes dir if it is not there, and finds out whether files can be made in it.
func checkWritableDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".frifs-check-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// checkSelectors finds selectors that name more than one version.
func (t *target) checkSelectors(cmd *cobra.Command) error {
	for _, name := range []string{"tag", "branch"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return usagef("--%s: the name is empty", name)
		}
	}
	var given []string
	for name, is := range map[string]bool{"--version": t.version.n != nil, "--tag": t.tag != "", "--asof": !t.asof.t.IsZero()} {
		if is {
			given = append(given, name)
		}
	}
	if slices.Sort(given); len(given) > 1 {
		return usagef("%s exclude each other", strings.Join(given, " and "))
	}
	return nil
}

// pinned reports whether a selector is given.
func (t *target) pinned() bool {
	return t.version.n != nil || t.tag != "" || t.branch != "" || !t.asof.t.IsZero()
}

// source opens the dataset at uri and builds its tree.
func (t *target) source(cmd *cobra.Command, uri string) (*source, error) {
	ctx := cmd.Context()
	if err := t.checkSelectors(cmd); err != nil {
		return nil, err
	}
	if t.opTimeout <= 0 {
		return nil, usagef("--op-timeout: %v is not positive", t.opTimeout)
	}
	if cmd.Flags().Changed("poll-interval") && t.poll < leastPoll {
		return nil, usagef("--poll-interval: %v is too short; at least %v", t.poll, leastPoll)
	}
	if err := t.checkTreeFlags(); err != nil {
		return nil, err
	}
	dopt, err := t.options()
	if err != nil {
		return nil, err
	}
	sopt, err := t.stores.options(cmd, uri, t.cacheDir, int64(t.memory), t.follow)
	if err != nil {
		return nil, err
	}
	dopt.OpenStore, dopt.Budget = opener(uri, sopt), t.stores.budget
	st, err := store.OpenURI(ctx, uri, sopt)
	if err != nil {
		return nil, explainURI(ctx, uri, err)
	}
	cfg := nodes.Config{
		Branch: t.branch, Tag: t.tag, Version: t.version.n, AsOf: t.asof.t,
		OpTimeout: t.opTimeout, Memory: int64(t.memory), Budget: t.stores.budget, Release: release(), OnError: t.onError, Gauges: t.stores.gauges(uri, t.gauges),
		PollInterval: t.poll, OnChange: t.onChange, Settle: t.settle,
		CacheDir: t.cacheDir, ForReader: t.forReader, OmitIndex: t.omitIndex,
	}
	if cfg.Dataset, err = dataset.Open(ctx, st, dopt); fault.Is(err, fault.NotFound) {
		// Not a dataset: perhaps a directory of them.
		if db, derr := dataset.OpenDatabase(ctx, st, dopt); derr == nil {
			cfg.Dataset, cfg.Database, err = nil, db, nil
		}
	}
	if err != nil {
		return nil, explainURI(ctx, uri, err)
	}
	tree, err := nodes.New(ctx, cfg)
	if err == nil && t.wholeBranch && t.branch != "" && t.tag == "" && t.version.n == nil && t.asof.t.IsZero() {
		tree.Close()
		cfg.Branch, cfg.Dataset = "", tree.Dataset()
		tree, err = nodes.New(ctx, cfg)
	}
	if err != nil {
		return nil, err
	}
	s := &source{uri: st.URI(), tree: tree, root: tree.Root()}
	s.dir, _ = st.Local()
	if s.ds = tree.Dataset(); s.ds != nil {
		s.uri = s.ds.URI()
		s.dir, _ = s.ds.Store().Local()
	}
	return s, nil
}

func (s *source) close() { s.tree.Close() }

// table is source for commands about one table: a database, which is a directory of tables, is refused.
func (t *target) table(cmd *cobra.Command, uri string) (*source, error) {
	s, err := t.source(cmd, uri)
	if err != nil || s.ds != nil {
		return s, err
	}
	defer s.close()
	return nil, s.tree.NeedTable(cmd.Context())
}

// translator makes the translator of the version that latest points to.
func (s *source) translator(ctx context.Context) (*translate.Translator, error) {
	tr, _, err := s.tree.Translator(ctx, nil)
	return tr, err
}
