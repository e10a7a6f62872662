package nodes

import (
	"context"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/translate"
)

// addressCounts is what a scan counts in a file, or in all files of a segment.
type addressCounts struct {
	entries  uint64
	outcomes [translate.NumOutcomes]uint64
	masked   uint64                // entries with an address that readers ignore
	kept     uint64                // entries that keep an address in the remapped file
	leftOut  uint64                // entries that leave a set
	whole    map[fri.FragID]uint64 // sets that name the fragment as a whole, its rows not being known
}

func (c *addressCounts) add(d *addressCounts) {
	c.entries += d.entries
	c.masked += d.masked
	c.kept += d.kept
	c.leftOut += d.leftOut
	for o, n := range d.outcomes {
		c.outcomes[o] += n
	}
	for f, n := range d.whole {
		c.passedOver(f, n)
	}
}

func (c *addressCounts) passedOver(f fri.FragID, sets uint64) {
	if c.whole == nil {
		c.whole = map[fri.FragID]uint64{}
	}
	c.whole[f] += sets
}

// fragmentCounts is how many stored addresses lie in each fragment. It says nothing of any version.
type fragmentCounts map[fri.FragID]uint64

// maxFragments bounds how many fragments are counted apart: a hostile file may name a new one in each row.
const maxFragments = 1 << 20

func (m fragmentCounts) count(addrs []fri.RowAddr) error {
	for i := 0; i < len(addrs); {
		f, from := addrs[i].Frag(), i
		for i++; i < len(addrs) && addrs[i].Frag() == f; i++ {
		}
		m[f] += uint64(i - from)
	}
	if len(m) > maxFragments {
		return fault.New("nodes.Scan", "", fault.TooLarge, "the addresses lie in more than %d fragments", maxFragments)
	}
	return nil
}

// fileSummary is what a scan finds in one file.
type fileSummary struct {
	scannedFile
	addressCounts
	fragments fragmentCounts
	err       error
}

// summarise scans one file. A failure that lies in the file is part of the result.
func (sc *segmentScan) summarise(ctx context.Context, f scannedFile) (*fileSummary, error) {
	out := &fileSummary{scannedFile: f, fragments: fragmentCounts{}, err: f.err}
	if !f.addresses() {
		return out, nil
	}
	out.err = sc.walk(ctx, f.path, func(c *addressCursor) error {
		out.entries += uint64(len(c.b.Addrs))
		for i, o := range c.a.Outcome {
			out.outcomes[o]++
			if c.a.Keep(i) {
				out.kept++
				continue
			}
			if o.HasAddress() {
				out.masked++
			}
			if f.how == indexfile.Reserialised || c.b.Rows[i] == indexfile.NoRow {
				out.leftOut++
			}
		}
		return out.fragments.count(c.b.Addrs)
	}, func(frags []fri.FragID) {
		for _, frag := range frags {
			out.passedOver(frag, 1)
		}
	})
	if passing(out.err) {
		return nil, out.err
	}
	return out, nil
}

// passing reports whether a failure says nothing about the file and may pass: what is made with it must not be kept.
func passing(err error) bool {
	switch fault.KindOf(err) {
	case fault.Cancelled, fault.TimedOut, fault.Unavailable, fault.Stale:
		return true
	}
	return err != nil && fault.KindOf(err) == fault.Unknown
}

// walk goes over the addresses of one file, and then tells the fragments that sets name as a whole.
func (sc *segmentScan) walk(ctx context.Context, path string, batch func(*addressCursor) error, whole func([]fri.FragID)) error {
	c, err := sc.open(ctx, path, indexfile.Position{})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it was only read
	for {
		if err := ctx.Err(); err != nil {
			return fault.Wrap("nodes.Scan", path, err)
		}
		n, err := c.next(ctx, scanBatch)
		if err != nil {
			return err
		}
		if n == 0 {
			whole(c.unknown())
			return nil
		}
		if err := batch(c); err != nil {
			return err
		}
	}
}

// sources is the fragments whose addresses need the history: its sources. In a tagged history the walk ends at a live
// fragment; a legacy one is applied there all the same.
func (h *history) sources(l *loaded) *roaring.Bitmap {
	out := roaring.New()
	for _, t := range h.h.Transitions {
		for _, d := range t.Sources {
			if d.ID > 0xFFFFFFFF {
				continue
			}
			if _, live := l.m.Live()[d.Frag()]; !live || !h.h.Tagged {
				out.Add(uint32(d.ID))
			}
		}
	}
	return out
}

// summaryJSON is scan/summary.json: what is really in the files of a segment, and what became of it.
func (at segmentAt) summaryJSON(ctx context.Context, key string) (*document, error) {
	sc, err := at.scan(ctx, key)
	if err != nil {
		return nil, err
	}
	var files []*fileSummary
	var total addressCounts
	found, complete := fragmentCounts{}, true
	for _, f := range sc.files {
		s, err := sc.summarise(ctx, f)
		if err != nil {
			return nil, err
		}
		files = append(files, s)
		total.add(&s.addressCounts)
		for frag, n := range s.fragments {
			found[frag] += n
		}
		complete = complete && s.err == nil
	}
	ix := sc.s.ix
	cover := sc.l.remapCoverage(sc.h.h)[ix.Ordinal]
	needs, sure := sc.needsFRI(found, complete && len(total.whole) == 0)
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(at.n.number())
		e.K("index").Str(ix.Name)
		e.K("uuid").OptStr(ix.UUID)
		e.K("type").OptStr(sc.seg.Type)
		e.K("domain").Str(sc.seg.Domain)
		e.K("complete").Bool(complete)
		e.K("needs_fri")
		if sure {
			e.Bool(needs)
		} else {
			e.Null()
		}
		e.counts(&total, files)
		e.wholeFragments(sc.l, &total)
	})
	j.bitmapCheck(ix.Bitmap, found)
	frags := slices.Sorted(maps.Keys(found))
	sources := sc.h.sources(sc.l)
	j.ArrayOf("fragments", len(frags), func(e *enc, i int) {
		f := frags[i]
		_, live := sc.l.m.Live()[f]
		e.Obj(func() {
			e.K("fragment").Uint(uint64(f))
			e.K("entries").Uint(found[f])
			e.K("live").Bool(live)
			e.K("needs_fri").Bool(sources.Contains(uint32(f)))
			e.K("in_stored_bitmap")
			if ix.Bitmap == nil {
				e.Null()
			} else {
				e.Bool(ix.Bitmap.Contains(uint32(f)))
			}
			e.K("in_derived_coverage")
			if !cover.Known {
				e.Null()
			} else {
				e.Bool(cover.Live.Contains(uint32(f)))
			}
		})
	})
	j.ArrayOf("files", len(files), func(e *enc, i int) {
		f := files[i]
		e.Obj(func() {
			e.K("path").Str(f.path)
			e.K("how").Str(f.how.String())
			e.counts(&f.addressCounts, files[i:i+1])
			e.K("fragments").Int(int64(len(f.fragments)))
			e.K("error").Err(f.err)
		})
	})
	return j.Done(), nil
}

// needsFRI reports whether some address lies in a fragment that only the history can follow, and whether that is sure.
func (sc *segmentScan) needsFRI(found fragmentCounts, complete bool) (needs, sure bool) {
	sources := sc.h.sources(sc.l)
	for f := range found {
		if sources.Contains(uint32(f)) {
			return true, true
		}
	}
	return false, complete && sc.h.h.Broken == nil
}

// counts writes what became of the entries of some files. An entry that is not kept has a placeholder in its place, or is
// left out of its set. Of a zone only the first row was looked at, which says what became of it, but not of the zone.
func (e *enc) counts(c *addressCounts, files []*fileSummary) {
	e.K("entries").Uint(c.entries)
	e.K("outcomes").outcomes(&c.outcomes)
	zones := slices.ContainsFunc(files, func(f *fileSummary) bool { return f.how == indexfile.Zones })
	for _, m := range [...]struct {
		key string
		n   uint64
	}{{"kept", c.kept}, {"masked", c.masked}, {"placeholders", c.entries - c.kept - c.leftOut}, {"left_out", c.leftOut}} {
		if e.K(m.key); zones {
			e.Null()
		} else {
			e.Uint(m.n)
		}
	}
}

// wholeFragments writes the fragments that sets name as a whole, without their rows being known: unresolved.
func (e *enc) wholeFragments(l *loaded, c *addressCounts) {
	e.K("whole_fragments_unresolved").Arr(func() {
		for _, f := range slices.Sorted(maps.Keys(c.whole)) {
			e.Item().Obj(func() {
				_, live := l.m.Live()[f]
				e.K("fragment").Uint(uint64(f))
				e.K("live").Bool(live)
				e.K("sets").Uint(c.whole[f])
			})
		}
	})
}

// bitmapCheck adds what the stored bitmap and the files do not agree on: null where there is no bitmap. A fragment that
// only the bitmap names may just have no row that the index holds.
func (j *jsonDoc) bitmapCheck(stored *roaring.Bitmap, found fragmentCounts) {
	if stored == nil {
		j.K("bitmap_check", (*enc).Null)
		return
	}
	in := roaring.New()
	for f := range found {
		in.Add(uint32(f))
	}
	j.Object("bitmap_check")
	j.K("agree", func(e *enc) { e.Bool(in.Equals(stored)) })
	j.ids("only_in_files", roaring.AndNot(in, stored).ToArray(), false)
	j.ids("only_in_stored_bitmap", roaring.AndNot(stored, in).ToArray(), false)
	j.End()
}
