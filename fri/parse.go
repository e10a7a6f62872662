package fri

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// parser reads one record. Errors that are returned are failures of the Reader; what the bytes get wrong goes into
// the record.
type parser struct {
	w     *window
	base  int64 // offset of the record in the content
	rec   *record
	whole bool // the record is in memory: check payloads too

	digests int
	late    []problem // of digest messages, kept back until rules 9 to 11 are through
}

// split separates a breach of the format from a failure of the Reader.
func split(err error) (*violation, error) {
	var v *violation
	if errors.As(err, &v) {
		return v, nil
	}
	return nil, err
}

// rel turns a violation at an offset of the content into one at an offset of the record.
func (p *parser) rel(v *violation) *violation { return &violation{off: v.off - p.base, msg: v.msg} }

func (p *parser) fail(check string, rule int, off int64, format string, args ...any) {
	p.rec.problems = append(p.rec.problems,
		problem{check: check, rule: rule, off: off - p.base, msg: fmt.Sprintf(format, args...)})
}

func (p *parser) unknown(f field, path string) {
	p.rec.unknown = appendUnknown(p.rec.unknown, p.w, f, path, p.base)
}

// transition reads a Transition message: one raw pass over it (rules 9 to 11), then the mapping.
func (p *parser) transition(c *cursor) error {
	rec := p.rec
	rec.sourcesOK, rec.destsOK = true, true
	var mapping field
	alternatives, refused := 0, false
	for {
		f, ok, err := c.next()
		if err != nil {
			v, err := split(err)
			if err != nil {
				return err
			}
			rec.sourcesOK, rec.destsOK = false, false
			if !refused { // else rule 9 came first: what follows is lost to this record only
				rec.wire = p.rel(v)
			}
			return nil
		}
		if !ok {
			break
		}
		switch f.num {
		case fieldSources:
			err = p.digest(c, f, &rec.sources, &rec.sourcesOK, "sources")
		case fieldDestinations:
			err = p.digest(c, f, &rec.dests, &rec.destsOK, "destinations")
		case fieldOrderedCompaction, fieldStablePartition:
			alternatives++
			switch {
			case refused:
			case f.typ != wireBytes:
				p.fail(checkMapping, 9, f.key, "mapping field %d has wire type %d, want 2", f.num, f.typ)
				refused = true
			case alternatives > 1:
				p.fail(checkMapping, 9, f.key, "multiple mapping alternatives: field %d after field %d", f.num, mapping.num)
				refused = true
			default:
				mapping = f
			}
		default:
			rec.unsupported = append(rec.unsupported, f.num)
			p.unknown(f, "transition")
			if len(rec.unsupported) > maxUnknown {
				rec.unsupported = rec.unsupported[:maxUnknown]
			}
		}
		if err != nil {
			return err
		}
	}
	if alternatives == 1 && !refused {
		rec.mapping = OrderedCompaction
		if mapping.num == fieldStablePartition {
			rec.mapping = StablePartition
		}
	}
	switch {
	case refused, len(rec.unsupported) > 0:
		return nil
	case alternatives == 0:
		p.fail(checkMapping, 11, p.base, "the transition has no mapping")
		return nil
	}
	rec.problems = append(rec.problems, p.late...)
	if rec.mapping == StablePartition {
		return p.stablePartition(c.sub(mapping))
	}
	return p.orderedCompaction(c.sub(mapping))
}

// group reads a Group message of a legacy Version. Whatever does not parse in it spoils the Version (rule 6).
func (p *parser) group(c *cursor) error {
	rec := p.rec
	rec.mapping, rec.sourcesOK, rec.destsOK = OrderedCompaction, true, true
	var rows field
	for {
		f, ok, err := c.next()
		if err == nil && ok {
			switch f.num {
			case fieldGroupRows:
				if f.typ != wireBytes {
					err = violationf(f.key, "field 1 of a group has wire type %d, want 2", f.typ)
				}
				rows = f
			case fieldGroupOld:
				err = p.digest(c, f, &rec.sources, &rec.sourcesOK, "old_fragments")
			case fieldGroupNew:
				err = p.digest(c, f, &rec.dests, &rec.destsOK, "new_fragments")
			default:
				p.unknown(f, "group")
			}
		}
		if err != nil {
			v, err := split(err)
			if v != nil {
				rec.wire = p.rel(v)
			}
			return err
		}
		if !ok {
			break
		}
	}
	for _, l := range p.late {
		if l.tooLarge {
			rec.problems = append(rec.problems, l)
			continue
		}
		rec.wire = &violation{off: l.off, msg: l.msg}
		return nil
	}
	return p.treemap(rows.off, rows.off+rows.n)
}

// digest reads one FragmentDigest into list. What it gets wrong clears ok and is kept back.
func (p *parser) digest(c *cursor, f field, list *[]Digest, ok *bool, name string) error {
	bad := func(off int64, msg string, tooLarge bool) {
		if *ok {
			p.late = append(p.late, problem{check: checkDigests, rule: 3, off: off - p.base, msg: msg, tooLarge: tooLarge})
		}
		*ok = false
	}
	if f.typ != wireBytes {
		bad(f.key, fmt.Sprintf("field %d (%s) has wire type %d, want 2", f.num, name, f.typ), false)
		return nil
	}
	if p.digests++; p.digests > maxRecDigests {
		bad(f.key, fmt.Sprintf("more than %d fragment digests in one record; the limit protects memory", maxRecDigests), true)
		return nil
	}
	if d, ok, err := p.plainDigest(f); err != nil {
		return err
	} else if ok {
		*list = append(*list, d)
		return nil
	}
	var d Digest
	sub := c.sub(f)
	for {
		g, more, err := sub.next()
		if err == nil && more && g.num >= 1 && g.num <= 3 && g.typ != wireVarint {
			err = violationf(g.key, "field %d of a digest has wire type %d, want 0", g.num, g.typ)
		}
		if err != nil {
			v, err := split(err)
			if v != nil {
				bad(v.off, name+": "+v.msg, false)
			}
			return err
		}
		if !more {
			break
		}
		switch g.num {
		case 1:
			d.ID = g.val
		case 2:
			d.PhysicalRows = g.val
		case 3:
			d.DeletedRows = g.val
		default:
			p.unknown(g, name+"["+strconv.Itoa(len(*list))+"]")
		}
	}
	*list = append(*list, d)
	return nil
}

// plainDigest reads a FragmentDigest that has nothing but its three fields, which is every real one; ok is false for
// any other.
func (p *parser) plainDigest(f field) (d Digest, ok bool, err error) {
	if f.n > 64 {
		return d, false, nil
	}
	b, err := p.w.peek(f.off, int(f.n))
	if err != nil {
		return d, false, err
	}
	for len(b) > 0 {
		v, n := binary.Uvarint(b[1:])
		if n <= 0 {
			return d, false, nil
		}
		switch b[0] {
		case 1<<3 | wireVarint:
			d.ID = v
		case 2<<3 | wireVarint:
			d.PhysicalRows = v
		case 3<<3 | wireVarint:
			d.DeletedRows = v
		default:
			return d, false, nil
		}
		b = b[1+n:]
	}
	return d, true, nil
}

// orderedCompaction reads an OrderedCompaction message.
func (p *parser) orderedCompaction(c *cursor) error {
	var rows field
	ok, err := p.fields(c, "ordered_compaction", func(f field) (uint8, bool) {
		if f.num == 1 {
			rows = f
		}
		return wireBytes, f.num == 1
	})
	if err != nil || !ok {
		return err
	}
	return p.treemap(rows.off, rows.off+rows.n)
}

// stablePartition reads a StablePartition message.
func (p *parser) stablePartition(c *cursor) error {
	part := &Partition{}
	var id field
	ok, err := p.fields(c, "stable_partition", func(f field) (uint8, bool) {
		switch f.num {
		case 1:
			id = f
			return wireBytes, true
		case 2:
			part.SizeBytes = f.val
		case 3:
			v := uint32(f.val)
			part.BaseID = &v
		default:
			return 0, false
		}
		return wireVarint, true
	})
	if err != nil || !ok {
		return err
	}
	p.rec.partition = part
	if id.n > maxMapID {
		p.fail(checkMapID, 20, id.off, "invalid map_id: %d bytes, no UUID is longer than %d", id.n, maxMapID)
		return nil
	}
	b, err := p.w.peek(id.off, int(id.n))
	if err != nil {
		return err
	}
	part.MapID = string(b)
	return nil
}

// fields walks a mapping message. want says which wire type a field must have, and whether it is known. ok is false
// if the message does not parse, which is then a problem of the record.
func (p *parser) fields(c *cursor, name string, want func(field) (typ uint8, known bool)) (ok bool, err error) {
	for {
		f, more, err := c.next()
		if err == nil && !more {
			return true, nil
		}
		if err == nil {
			typ, known := want(f)
			switch {
			case !known:
				p.unknown(f, name)
			case typ != f.typ:
				err = violationf(f.key, "field %d has wire type %d, want %d", f.num, f.typ, typ)
			}
		}
		if err != nil {
			v, err := split(err)
			if v != nil {
				p.fail(checkMapping, 3, v.off, "%s: %s", name, v.msg)
			}
			return false, err
		}
	}
}

// treemap reads the headers of the survivors in [off, end) of the content.
func (p *parser) treemap(off, end int64) error {
	t := treemapReader{w: p.w, base: p.base, pos: off, end: end, idx: &survivorIndex{}}
	err := t.read()
	if err == nil && p.whole {
		err = t.payloads()
	}
	if err != nil {
		v, err := split(err)
		if v != nil {
			p.rec.problems = append(p.rec.problems, problem{check: t.check(), rule: 17, off: v.off - p.base,
				msg: "survivor bitmap: " + v.msg, readable: t.readable})
		}
		return err
	}
	p.rec.survivors = t.idx
	return nil
}
