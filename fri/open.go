package fri

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/frifs/frifs/fault"
)

// Options says how a content is to be read. The zero value reads it as a legacy content without a cache.
type Options struct {
	IndexVersion int32 // of the entry; 0 (or absent) = legacy, 1 = tagged

	// FlagReader and FlagWriter report that feature flag 1024 is set in the manifest's reader and writer words. They
	// give warnings only: the index version alone chooses the generation.
	FlagReader, FlagWriter bool

	// External is set where the Reader is the whole details file, and says which part of it is the content.
	External *External

	Cache    *Cache // parsed records to share; nil = none
	Identity string // names the bytes of the Reader for ever (an e-tag); "" = large records are not shared

	// Window is the size of a read in bytes where reading goes on, 64 KiB if 0. A Reader on a distant store wants
	// megabytes: with Window set, payloads shorter than it are read over rather than jumped.
	Window int
}

const (
	defaultWindow = 64 << 10
	defaultGap    = 16 << 10 // jump over payloads that are longer than this many bytes
)

// Open reads the content of an FRI entry: the bytes of an InlineContent message, of which r gives any range. Whatever
// the bytes get wrong is in the History; an error means that r failed, and keeps its kind. The History reads from r
// later on (Survivors.Load, Transition.ID), so r must stay open as long as it is used.
func Open(ctx context.Context, r Reader, opt Options) (*History, error) {
	if err := CheckIndexVersion(opt.IndexVersion); err != nil {
		return Broken(opt.IndexVersion, 0, err), nil
	}
	place := int64(0) // of the content in r
	if e := opt.External; e != nil {
		size := uint64(r.Size())
		if e.Offset > size || e.Size > size-e.Offset {
			return Broken(opt.IndexVersion, 5, fault.New("fri.Open", e.Path, fault.Corrupt,
				"the content is at offset %d and %d bytes long, but the file has %d bytes", e.Offset, e.Size, size)), nil
		}
		place = int64(e.Offset)
		r = Section(r, place, int64(e.Size))
	}
	size := r.Size()
	w := &window{ctx: ctx, r: r, size: size, ahead: opt.Window, gap: int64(opt.Window)}
	switch {
	case size <= smallRecord:
		w.ahead, w.gap = int(size), 0
	case opt.Window <= 0:
		w.ahead, w.gap = defaultWindow, defaultGap
	}
	o := &opener{w: w, opt: opt, place: place}
	o.h = &History{IndexVersion: opt.IndexVersion, Tagged: opt.IndexVersion == 1, Size: size, content: r}
	if err := o.content(); err != nil {
		v, failure := split(err)
		switch {
		case failure != nil && fault.KindOf(failure) != fault.Corrupt:
			return nil, failure
		case failure != nil:
			o.rule, err = 5, failure // the reader ends early
		case o.limit:
			o.rule = 0
			err = fault.New("fri.Open", fmt.Sprintf("@%d", v.off), fault.TooLarge, "%s", v.msg)
		default:
			err = fault.New("fri.Open", fmt.Sprintf("@%d", v.off), fault.Corrupt, "%s", v.msg)
		}
		h := Broken(opt.IndexVersion, o.rule, err)
		h.Size, h.content = size, r
		return h, nil
	}
	o.finish()
	return o.h, nil
}

// opener is one run of Open.
type opener struct {
	w     *window
	opt   Options
	h     *History
	place int64 // of the content in the file that Options.Identity names

	drafts  []*draft
	digests int
	hashed  int64
	rule    int      // of the violation that content returned
	limit   bool     // that violation is a limit of frifs
	strange []uint32 // numbers of unknown fields of the content
	unnamed int      // violations beyond maxErrors
}

// draft is a record while its history is made.
type draft struct {
	t        *Transition
	problems []problem
	more     map[int]int // per rule, violations beyond those in problems
	tagged   bool        // the history is tagged: the strict rules apply
	inactive bool        // a transition under index_version 0: well-formed or not, it is never applied
}

// content walks the InlineContent message.
func (o *opener) content() error {
	c := &cursor{w: o.w, end: o.w.size}
	for {
		o.rule = 3
		f, ok, err := c.next()
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		switch {
		case f.num == 1 && f.typ == wireBytes:
			err = o.version(c.sub(f))
		case f.num == 2 && (f.typ == wireBytes || !o.h.Tagged):
			// Under index_version 0 field 2 is looked at before its wire type (rule 7).
			err = o.transition(f)
		case f.num == 1 || f.num == 2:
			o.rule = 6
			err = violationf(f.key, "content field %d has wire type %d, want 2", f.num, f.typ)
		default:
			o.h.UnknownRecords++
			o.h.Opaque = true
			if len(o.strange) < maxUnknown {
				o.strange = append(o.strange, f.num)
			}
			o.h.Unknown = appendUnknown(o.h.Unknown, o.w, f, "content", 0)
		}
		if err != nil {
			return err
		}
	}
}

// version reads one legacy Version. A Version that does not parse spoils the whole history (rule 6).
func (o *opener) version(c *cursor) error {
	o.rule = 6
	start := c.pos
	stamp := uint64(0)
	first := len(o.drafts)
	number := len(o.h.Steps) + 1
	if number > maxSteps {
		o.limit = true
		return violationf(start, "more than %d legacy versions; the limit protects memory", maxSteps)
	}
	for {
		f, ok, err := c.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch f.num {
		case 1:
			if f.typ != wireVarint {
				return violationf(f.key, "dataset_version has wire type %d, want 0", f.typ)
			}
			stamp = f.val
		case 3:
			if f.typ != wireBytes {
				return violationf(f.key, "groups has wire type %d, want 2", f.typ)
			}
			t := &Transition{Form: Legacy, Legacy: &LegacyRef{Version: number, Group: len(o.drafts) - first + 1}}
			if err := o.record(t, f); err != nil {
				return err
			}
			if v := t.rec.wire; v != nil {
				return violationf(t.Offset+v.off, "version %d, group %d: %s", number, t.Legacy.Group, v.msg)
			}
		default:
			o.h.Unknown = appendUnknown(o.h.Unknown, o.w, f, "version", start)
		}
	}
	var step []int
	for i := first; i < len(o.drafts); i++ {
		o.drafts[i].t.Legacy.DatasetVersion = stamp
		step = append(step, i)
	}
	o.h.Steps = append(o.h.Steps, step)
	return nil
}

// transition reads one element of field 2.
func (o *opener) transition(f field) error {
	t := &Transition{Form: Tagged}
	if f.typ != wireBytes {
		v := &violation{msg: fmt.Sprintf("the transition has wire type %d, want 2", f.typ)}
		return o.add(t, &record{form: Tagged, wire: v}, f)
	}
	if err := o.record(t, f); err != nil {
		return err
	}
	if v := t.rec.wire; v != nil && o.h.Tagged {
		o.rule = 3
		return violationf(t.Offset+v.off, "record %d: %s", t.Record, v.msg)
	}
	return nil
}

// record parses the record in f, or finds it in the cache, and appends it as a draft.
func (o *opener) record(t *Transition, f field) error {
	rec, key, err := o.lookup(t.Form, f)
	if err != nil {
		return err
	}
	if rec == nil {
		rec = &record{form: t.Form}
		hashed := key.form != FormUnknown && key.identity == ""
		p := &parser{w: o.w, base: f.off, rec: rec, whole: hashed}
		c := &cursor{w: o.w, pos: f.off, end: f.off + f.n}
		if t.Form == Legacy {
			err = p.group(c)
		} else {
			err = p.transition(c)
		}
		if err != nil {
			return err
		}
		if hashed && (rec.form == Legacy || rec.mapping == OrderedCompaction) {
			rec.id.id = hex.EncodeToString(key.sum[:idBytes]) // no base_id to leave out
		}
		if key.form != FormUnknown {
			rec = o.opt.Cache.put(key, rec)
		}
	}
	return o.add(t, rec, f)
}

// lookup makes the record's cache key and looks for it; a key without a form means that the record has none.
func (o *opener) lookup(form Form, f field) (*record, recordKey, error) {
	key := recordKey{form: form}
	switch {
	case f.n <= smallRecord && o.hashed <= maxHashedBytes:
		b, err := o.w.peek(f.off, int(f.n))
		if err != nil {
			return nil, recordKey{}, err
		}
		key.sum = sha256.Sum256(b)
		o.hashed += f.n
	case o.opt.Identity != "":
		key.identity, key.off, key.n = o.opt.Identity, o.place+f.off, f.n
	default:
		return nil, recordKey{}, nil
	}
	return o.opt.Cache.get(key), key, nil
}

// add appends a draft.
func (o *opener) add(t *Transition, rec *record, f field) error {
	if limit := min(maxRecords, 1024+o.w.size/minRecord); int64(len(o.drafts)) >= limit {
		o.limit = true
		return violationf(f.key, "more than %d records; the limit protects memory", limit)
	}
	if o.digests += len(rec.sources) + len(rec.dests); o.digests > maxDigests {
		o.limit = true
		return violationf(f.key, "more than %d fragment digests; the limit protects memory", maxDigests)
	}
	t.Record = len(o.drafts) + 1
	t.Kind, t.Mapping = rec.mapping, rec.mapping
	t.Sources, t.Destinations = rec.sources, rec.dests
	t.SourcesOK = rec.sourcesOK
	t.Partition = rec.partition
	t.Unknown = rec.unknown
	t.Offset, t.Length = f.off, f.n
	t.rec, t.r = rec, o.h.content
	if rec.survivors != nil {
		t.Survivors = &Survivors{idx: rec.survivors, r: t.r, base: f.off}
	}
	o.drafts = append(o.drafts, &draft{t: t, problems: slices.Clip(rec.problems), tagged: o.h.Tagged, inactive: t.Form == Tagged && !o.h.Tagged})
	return nil
}
