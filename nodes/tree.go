package nodes

import (
	"context"
	"time"
)

// Config says which tree to build. The zero value of every optional field is usable.
type Config struct {
	URI       string            // shown to users; without credentials
	Version   *uint64           // pin: only this version is in the tree
	AsOf      time.Time         // pin: the highest version whose manifest time is not later; zero = none
	OpTimeout time.Duration     // bound on one operation; 0 = 60 s. Half of it is used inside
	Memory    int64             // budget in bytes for rendered documents, manifests and histories; 0 = 128 MiB
	Jobs      int               // background jobs that run at a time; 0 = 2
	Release   string            // frifs release, shown in .frifs/status.json
	Now       func() time.Time  // nil = time.Now
	OnError   func(ErrorRecord) // told about each failure that .frifs/errors.jsonl gets; may be nil
	Gauges    func() []Gauge    // more figures for .frifs/status.json and .frifs/metrics; may be nil
}

// Gauge is one figure of .frifs/metrics. Name is a Prometheus metric name, Help one line.
type Gauge struct {
	Name, Help string
	Value      float64
}

// Tree is the virtual tree of one dataset. It is safe for concurrent use. Close ends its background jobs.
type Tree struct {
	cfg   Config
	start time.Time
	now   func() time.Time
	stop  context.CancelFunc

	docs *flight[uint64, *rendered]
	ring errorRing
	jobs *jobs
	live *live
}

// Close ends the background jobs of the tree. Nodes that need none stay readable.
func (t *Tree) Close() { t.stop() }

// inode gives the inode of path with a content key.
func (t *Tree) inode(path, key string) uint64 { return inode(t.cfg.URI, path, key) }
