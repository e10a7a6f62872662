package fri

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxPerRule bounds the violations of one rule that are named for one record.
const maxPerRule = 4

// fail adds a violation of a check; beyond maxPerRule of a rule they are only counted.
func (d *draft) fail(check string, rule int, format string, args ...any) {
	d.failAt(problem{check: check, rule: rule, off: -1}, format, args...)
}

func (d *draft) failAt(p problem, format string, args ...any) {
	n := 0
	for _, q := range d.problems {
		if q.rule == p.rule && q.check == p.check {
			n++
		}
	}
	if n >= maxPerRule {
		if d.more == nil {
			d.more = map[int]int{}
		}
		d.more[p.rule]++
		return
	}
	p.msg = fmt.Sprintf(format, args...)
	d.problems = append(d.problems, p)
}

func (d *draft) failed(check string) bool {
	return slices.ContainsFunc(d.problems, func(p problem) bool { return p.check == check })
}

func (d *draft) usable() bool {
	return !d.inactive && len(d.problems) == 0 && len(d.t.rec.unsupported) == 0
}

// validate applies the checks that concern the record alone.
func (o *opener) validate(d *draft) {
	rec := d.t.rec
	switch {
	case d.inactive:
		d.problems = nil
	case len(rec.unsupported) > 0 || d.failed(checkMapping) && rec.mapping == KindUnknown:
		// Rule 10, 9 or 11: nothing else is looked at.
	case o.h.Tagged:
		d.strict()
	default:
		o.lenient(d)
	}
}

// strict applies rules 12 to 21; lifted legacy groups go through them too.
func (d *draft) strict() {
	t := d.t
	if len(t.Sources) == 0 && t.SourcesOK {
		d.fail(checkDigests, 12, "the record has no sources")
	}
	d.strictDigests(t.Sources, "source")
	d.strictDigests(t.Destinations, "destination")
	if !d.failed(checkDigests) {
		live, ok1 := sum(t.Sources, Digest.LiveRows)
		rows, ok2 := sum(t.Destinations, func(d Digest) uint64 { return d.PhysicalRows })
		switch {
		case !ok1 || !ok2:
			d.fail(checkRows, 16, "row counts differ: their sum overflows 64 bits")
		case live != rows:
			d.fail(checkRows, 16, "row counts differ: sources have %d live rows, %s", live, d.hold(rows))
		}
	}
	if t.Mapping == StablePartition {
		d.strictPartition()
		return
	}
	x := t.rec.survivors
	if x == nil {
		return // rule 17, found by the parser
	}
	if x.trailing > 0 {
		d.failAt(problem{check: checkHeaders, rule: 17, off: x.end}, "%s behind the survivor bitmap (trailing bytes)", plural(x.trailing, "byte"))
	}
	if d.failed(checkDigests) {
		return
	}
	d.strictSurvivors(x)
	d.layout(x, 19)
	if rows, _ := sum(t.Destinations, func(d Digest) uint64 { return d.PhysicalRows }); len(d.problems) == 0 && rows != x.total {
		d.fail(checkHeaders, 19, "survivors %d, %s", x.total, d.hold(rows))
	}
}

// strictDigests applies rules 13 to 15 to each digest, in list order.
func (d *draft) strictDigests(ds []Digest, role string) {
	twice := duplicates(ds)
	seen := map[uint64]bool{}
	for _, g := range ds {
		switch {
		case g.ID >= math.MaxUint32:
			d.fail(checkDigests, 13, "invalid fragment digest: %s %d is no fragment id (the highest is 4294967294)", role, g.ID)
		case g.PhysicalRows > math.MaxUint32:
			d.fail(checkDigests, 13, "invalid fragment digest: %s %d has %d rows (the limit is 4294967295)", role, g.ID, g.PhysicalRows)
		case g.DeletedRows > g.PhysicalRows:
			d.fail(checkDigests, 13, "invalid fragment digest: %s %d has %d deleted rows of %d", role, g.ID, g.DeletedRows, g.PhysicalRows)
		}
		if twice[g.ID] {
			if seen[g.ID] {
				d.fail(checkDigests, 14, "fragment %d is listed twice as a %s", g.ID, role)
			}
			seen[g.ID] = true
		}
		if role == "destination" && g.DeletedRows != 0 {
			d.fail(checkDigests, 15, "destination %d has %d deleted rows at its creation (creation-time deletions)", g.ID, g.DeletedRows)
		}
	}
}

// strictSurvivors applies rule 18.
func (d *draft) strictSurvivors(x *survivorIndex) {
	t := d.t
	if d.emptyBitmap(x, 18) {
		return
	}
	for _, g := range t.Sources {
		fs, _ := x.fragment(g.Frag())
		if fs.Rows != g.LiveRows() {
			d.fail(checkHeaders, 18, "survivors inconsistent: fragment %d has %d survivors, its digest has %d live rows",
				g.ID, fs.Rows, g.LiveRows())
		}
	}
}

// emptyBitmap names the one writer bug that is known: no survivors, but rows in the destinations.
func (d *draft) emptyBitmap(x *survivorIndex, rule int) bool {
	rows, _ := sum(d.t.Destinations, func(d Digest) uint64 { return d.PhysicalRows })
	if x.total != 0 || rows == 0 {
		return false
	}
	bug := ""
	if d.t.Form == Legacy {
		bug = " (a known writer bug: Lance 0.30 to 4.0.0-beta.6 wrote such groups for tables with stable row ids; " +
			"Lance refuses the index listing of the table)"
	}
	d.fail(checkHeaders, rule, "survivors 0, %s%s", d.hold(rows), bug)
	return true
}

// layout checks that the survivors are rows of the sources (rule 19, and for legacy groups at any index version).
func (d *draft) layout(x *survivorIndex, rule int) {
	t := d.t
	for _, g := range t.Sources {
		if fs, ok := x.fragment(g.Frag()); ok && fs.Rows > 0 && uint64(fs.Max) >= g.PhysicalRows {
			d.fail(checkHeaders, rule, "fragment %d has a survivor at offset %d, outside its %d rows", g.ID, fs.Max, g.PhysicalRows)
		}
	}
	ids := make([]uint64, len(t.Sources))
	for i, g := range t.Sources {
		ids[i] = g.ID
	}
	slices.Sort(ids)
	for i, f := range x.keys {
		if _, ok := slices.BinarySearch(ids, uint64(f)); !ok && x.frags[i].Rows > 0 {
			d.fail(checkHeaders, rule, "the survivors name fragment %d, which is not a source", f)
		}
	}
}

// strictPartition applies rules 20 and 21. A partition without destinations, which Lance refuses when it opens the
// row map, is refused here.
func (d *draft) strictPartition() {
	p := d.t.Partition
	if p == nil {
		return
	}
	if !d.failed(checkMapID) && !isUUID(p.MapID) {
		d.fail(checkMapID, 20, "invalid map_id %q: it must be a UUID", p.MapID)
	}
	if p.SizeBytes == 0 {
		d.fail(checkMapSize, 21, "map_size_bytes is 0")
	}
	if len(d.t.Destinations) == 0 && d.t.rec.destsOK {
		d.failAt(problem{check: checkDigests, rule: 21, off: -1, readable: true}, "a stable partition without destinations has no row map "+
			"(Lance lists the indices and fails when it needs the record)")
	}
}

// lenient applies the checks of a legacy group (docs/FORMAT.md, "Legacy history" and "Validation rules").
func (o *opener) lenient(d *draft) {
	t := d.t
	for i, p := range d.problems {
		if i == 0 {
			d.problems = slices.Clone(d.problems)
		}
		p.rule = 0
		d.problems[i] = p
	}
	for i, ds := range [][]Digest{t.Sources, t.Destinations} {
		role := [...]string{"source", "destination"}[i]
		for _, g := range ds {
			switch {
			case !g.validID():
				d.fail(checkDigests, 0, "%s %d is no fragment id (it does not fit 32 bits)", role, g.ID)
			case g.PhysicalRows > math.MaxUint32:
				d.fail(checkDigests, 0, "%s %d has %d rows (the limit is 4294967295)", role, g.ID, g.PhysicalRows)
			}
		}
	}
	twice := duplicates(t.Sources)
	for _, id := range slices.Sorted(maps.Keys(twice)) {
		d.fail(checkDigests, 0, "fragment %d is listed twice as a source", id)
	}
	x := t.rec.survivors
	if x == nil {
		return
	}
	if x.trailing > 0 {
		o.warn(t.Record, 17, "%s behind the survivor bitmap (trailing bytes, at byte %d); ignored, as Lance does under index_version 0",
			plural(x.trailing, "byte"), t.Offset+x.end)
	}
	if d.failed(checkDigests) {
		return
	}
	d.layout(x, 0)
	rows, _ := sum(t.Destinations, func(d Digest) uint64 { return d.PhysicalRows })
	if !d.emptyBitmap(x, 0) && rows != x.total {
		d.fail(checkRows, 0, "survivors %d, %s", x.total, d.hold(rows))
	}
}

// hold says what the destinations hold.
func (d *draft) hold(rows uint64) string {
	who := "destinations hold "
	if len(d.t.Destinations) == 1 {
		who = "destination holds "
	}
	return who + strconv.FormatUint(rows, 10) + " rows"
}

// sum adds up rows of digests; ok is false where the sum does not fit 64 bits.
func sum(ds []Digest, rows func(Digest) uint64) (total uint64, ok bool) {
	for _, d := range ds {
		n := rows(d)
		if n > math.MaxUint64-total {
			return 0, false
		}
		total += n
	}
	return total, true
}

// duplicates returns the ids that occur more than once.
func duplicates(ds []Digest) map[uint64]bool {
	ids := make([]uint64, len(ds))
	for i, d := range ds {
		ids[i] = d.ID
	}
	slices.Sort(ids)
	var twice map[uint64]bool
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			if twice == nil {
				twice = map[uint64]bool{}
			}
			twice[ids[i]] = true
		}
	}
	return twice
}

func plural(n int64, unit string) string {
	s := strconv.FormatInt(n, 10) + " " + unit
	if n != 1 {
		s += "s"
	}
	return s
}

// isUUID accepts what Lance's parser accepts: hyphenated, 32 hex digits, braced, or urn:uuid:, in any case of the
// digits.
func isUUID(s string) bool {
	switch {
	case len(s) == 32:
		return isHex(s)
	case len(s) == 38 && s[0] == '{' && s[37] == '}':
		s = s[1:37]
	case len(s) == 45:
		rest, ok := strings.CutPrefix(s, "urn:uuid:")
		if !ok {
			return false
		}
		s = rest
	}
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	return isHex(s[:8]) && isHex(s[9:13]) && isHex(s[14:18]) && isHex(s[19:23]) && isHex(s[24:])
}

func isHex(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}
