package store

import "sync/atomic"

// counters are the layer's own; Stats is their copy.
type counters struct {
	lists, stats, reads, bytes                   atomic.Uint64
	retries, throttled, stalled, failed          atomic.Uint64
	hedges, hedgesWon, joined, merged, readAhead atomic.Uint64
	memoryHits, memoryMisses                     atomic.Uint64
	waiting                                      atomic.Int64
}

// Stats is what a layer did since it was made. All but the last group only grow.
type Stats struct {
	Lists, Stats, Reads uint64 // requests made, repeated and second ones included
	Bytes               uint64 // of content that came

	Retries   uint64 // tries after a failure
	Throttled uint64 // answers 429 and 503
	Stalled   uint64 // tries given up because nothing came
	Failed    uint64 // calls that failed in spite of all tries

	Hedges    uint64 // second requests because the first was late
	HedgesWon uint64 // of these, answered first
	Joined    uint64 // blocks that a reader got from a read already under way
	Merged    uint64 // requests saved since an adjacent one waited as well
	ReadAhead uint64 // blocks read before they were asked for

	MemoryHits, MemoryMisses                       uint64 // blocks
	DiskHits, DiskMisses, DiskCorrupt, DiskEvicted uint64 // blocks

	InFlight    int   // requests under way
	Waiting     int64 // callers that wait for the right to make one
	MemoryBytes int64
	DiskBytes   int64
}

// Stats returns the counters.
func (l *Layer) Stats() Stats {
	c := &l.count
	s := Stats{
		Lists: c.lists.Load(), Stats: c.stats.Load(), Reads: c.reads.Load(), Bytes: c.bytes.Load(),
		Retries: c.retries.Load(), Throttled: c.throttled.Load(), Stalled: c.stalled.Load(), Failed: c.failed.Load(),
		Hedges: c.hedges.Load(), HedgesWon: c.hedgesWon.Load(), Joined: c.joined.Load(), Merged: c.merged.Load(), ReadAhead: c.readAhead.Load(),
		MemoryHits: c.memoryHits.Load(), MemoryMisses: c.memoryMisses.Load(),
		InFlight: len(l.slots), Waiting: c.waiting.Load(), MemoryBytes: l.mem.bytes(),
	}
	if d := l.cfg.Disk; d != nil {
		s.DiskHits, s.DiskMisses, s.DiskCorrupt, s.DiskEvicted = d.hits.Load(), d.misses.Load(), d.corrupt.Load(), d.evicted.Load()
		s.DiskBytes = d.used.Load()
	}
	return s
}

// Requests is the number of requests made.
func (s Stats) Requests() uint64 { return s.Lists + s.Stats + s.Reads }

// Metric is one number for a monitoring system, named as Prometheus wants it.
type Metric struct {
	Name, Help string
	Value      float64
	Counter    bool // only grows
}

// Metrics lists the counters with their names.
func (s Stats) Metrics() []Metric {
	c := func(name, help string, v uint64) Metric {
		return Metric{"frifs_store_" + name + "_total", help, float64(v), true}
	}
	g := func(name, help string, v int64) Metric {
		return Metric{"frifs_store_" + name, help, float64(v), false}
	}
	return []Metric{
		c("list_requests", "Listing requests made to stores.", s.Lists),
		c("stat_requests", "Requests for the attributes of an object.", s.Stats),
		c("read_requests", "Requests for bytes of an object.", s.Reads),
		c("read_bytes", "Bytes that came from stores.", s.Bytes),
		c("retries", "Requests repeated after a failure.", s.Retries),
		c("throttled", "Answers 429 and 503.", s.Throttled),
		c("stalled", "Requests given up because nothing came.", s.Stalled),
		c("failed", "Calls that failed in spite of all tries.", s.Failed),
		c("hedges", "Second requests made because the first was late.", s.Hedges),
		c("hedges_won", "Second requests that were answered first.", s.HedgesWon),
		c("joined_blocks", "Blocks got from a read that was under way already.", s.Joined),
		c("merged_requests", "Requests saved by merging adjacent reads.", s.Merged),
		c("read_ahead_blocks", "Blocks read before they were asked for.", s.ReadAhead),
		c("memory_hits", "Blocks found in memory.", s.MemoryHits),
		c("memory_misses", "Blocks not found in memory.", s.MemoryMisses),
		c("disk_hits", "Blocks found in the disk cache.", s.DiskHits),
		c("disk_misses", "Blocks not found in the disk cache.", s.DiskMisses),
		c("disk_corrupt", "Blocks of the disk cache that did not have their checksum.", s.DiskCorrupt),
		c("disk_evicted", "Blocks removed from the disk cache to keep its size.", s.DiskEvicted),
		g("requests_in_flight", "Requests under way.", int64(s.InFlight)),
		g("requests_waiting", "Callers that wait for the right to make a request.", s.Waiting),
		g("memory_bytes", "Bytes of blocks in memory.", s.MemoryBytes),
		g("disk_bytes", "Bytes in the disk cache, as far as this process knows.", s.DiskBytes),
	}
}
