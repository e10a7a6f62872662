package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/nodes"
)

// defaultCacheSize is the default bound of the disk cache, if there is a directory for it.
const defaultCacheSize = 1 << 30

// storeFlags say how stores are read that are not on this machine.
type storeFlags struct {
	anonymous bool
	cacheSize sizeValue

	layer  *store.Layer  // of the whole process; made by options
	budget *store.Budget // for what all caches keep in memory; the same
}

// flags adds the flags of all commands that read a dataset.
func (s *storeFlags) flags(cmd *cobra.Command) {
	s.cacheSize = defaultCacheSize
	cmd.Flags().BoolVar(&s.anonymous, "anonymous", false, "use no credentials: public buckets")
}

// cacheFlags adds the flags of commands that read much.
func (s *storeFlags) cacheFlags(cmd *cobra.Command) {
	cmd.Flags().Var(&s.cacheSize, "cache-size", "keep at most so much of what came from object stores in --cache-dir; 0: nothing")
}

// options makes the options of stores and the one layer that they share. dir is where blocks may be kept ("" nowhere),
// memory what all caches of the process may take, in bytes.
func (s *storeFlags) options(cmd *cobra.Command, uri, dir string, memory int64, follow bool) (store.Options, error) {
	opt := store.Options{FollowOutside: follow, Anonymous: s.anonymous, Warn: func(message string) {
		fmt.Fprintln(cmd.ErrOrStderr(), "frifs: warning:", message)
	}}
	s.budget = store.NewBudget(memory)
	cfg := store.Config{Memory: memory / 4, Transfer: memory / 8, Budget: s.budget}
	if dir == "" && cmd.Flags().Changed("cache-size") && s.cacheSize > 0 {
		return opt, usagef("--cache-size: there is no directory for it; add --cache-dir DIR")
	}
	if dir != "" && s.cacheSize > 0 && store.IsURI(uri) {
		if s.cacheSize < store.MinDiskCache {
			return opt, usagef("--cache-size: %s is too small; the least is %d MiB, and 0 is none", s.cacheSize.String(), store.MinDiskCache>>20)
		}
		var err error
		if cfg.Disk, err = store.OpenDiskCache(dir, int64(s.cacheSize)); err != nil {
			return opt, err
		}
	}
	s.layer = store.NewLayer(cfg)
	opt.Layer = s.layer
	return opt, nil
}

// opener opens the bases of the dataset at root: they are reached like the root itself.
func opener(root string, opt store.Options) func(context.Context, string) (store.Store, error) {
	return func(ctx context.Context, uri string) (store.Store, error) {
		return store.OpenURI(ctx, store.WithOptionsOf(root, uri), opt)
	}
}

// gauges adds the figures of the layer to those of next, which may be nil.
func (s *storeFlags) gauges(uri string, next func() []nodes.Gauge) func() []nodes.Gauge {
	if !store.IsURI(uri) {
		return next
	}
	return func() []nodes.Gauge {
		var out []nodes.Gauge
		if next != nil {
			out = next()
		}
		for _, m := range s.layer.Stats().Metrics() {
			out = append(out, nodes.Gauge{Name: m.Name, Help: m.Help, Value: m.Value})
		}
		return out
	}
}
