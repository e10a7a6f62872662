package fri

import (
	"fmt"
	"slices"
	"strings"

	"github.com/frifs/frifs/fault"
)

// maxWarnings bounds the warnings of one history; a hostile one could have one per record and more.
const maxWarnings = 4096

// maxPartitionDests is the number of destinations up to which Lance can list the indices of a table.
const maxPartitionDests = 65535

// warn adds a warning. record 0 means the history as a whole.
func (o *opener) warn(record, rule int, format string, args ...any) {
	if len(o.h.Warnings) < maxWarnings {
		o.h.Warnings = append(o.h.Warnings, Finding{Record: record, Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
}

// warnHistory looks at what does not belong to one record.
func (o *opener) warnHistory() {
	h := o.h
	switch set := o.opt; {
	case set.FlagReader != set.FlagWriter:
		has, lacks := "reader", "writer"
		if set.FlagWriter {
			has, lacks = lacks, has
		}
		o.warn(0, 0, "flag missing: feature flag 1024 (fragment_reuse_index) is set in the %s word of the manifest and missing in the %s "+
			"word; Lance 14.0.2 refuses such a manifest", has, lacks)
	case h.Tagged && !set.FlagReader:
		o.warn(0, 0, "flag missing: index_version is 1, but feature flag 1024 (fragment_reuse_index) is not set; read as tagged, as Lance "+
			"14.0.2 does (Lance 12.0.0 reads such a table as index_version 0)")
	}
	if n := h.UnknownRecords; n > 0 {
		lance := "Lance 14.0.2 uses no user index on this version, queries scan"
		if !h.Tagged {
			lance = "Lance skips it under index_version 0"
		}
		o.warn(0, 8, "%s in the content (field %s): an unknown record may have moved any fragment, so an address that ends in a dead fragment "+
			"is unresolved; %s", plural(int64(n), "unknown field"), numbers(o.strange), lance)
	}
	inactive := 0
	for _, d := range o.drafts {
		if d.inactive {
			inactive++
		}
	}
	if inactive > 0 {
		o.warn(0, 7, "%s under index_version 0: never applied (Lance 14.0.2 ignores them and scans); addresses of their sources are unresolved",
			plural(int64(inactive), "transition"))
	}
	for _, d := range o.drafts {
		if !d.inactive {
			o.warnRecord(d)
		}
	}
}

// warnRecord looks at one record by itself.
func (o *opener) warnRecord(d *draft) {
	t := d.t
	if t.Mapping == OrderedCompaction {
		for i := 1; i < len(t.Sources); i++ {
			if t.Sources[i].ID < t.Sources[i-1].ID {
				o.warn(t.Record, 0, "the sources are not in ascending order (%s): rank follows the list order, as in Lance; writers list "+
					"them ascending, so the record may be wrong", fragList(t.Sources))
				break
			}
		}
	}
	if n := len(t.Destinations); t.Mapping == StablePartition && n > maxPartitionDests {
		o.warn(t.Record, 0, "%d destinations: Lance cannot list any index of a version with more than %d in one stable partition", n,
			maxPartitionDests)
	}
	if t.Form == Legacy && !d.tagged {
		o.warnDeleted(d)
		if twice := duplicates(t.Destinations); len(twice) > 0 {
			o.warn(t.Record, 0, "%s listed twice as a destination; translated as recorded", plural(int64(len(twice)), "fragment"))
		}
	}
}

// warnDeleted compares the deleted rows that a legacy group's digests claim with its survivors.
func (o *opener) warnDeleted(d *draft) {
	x := d.t.rec.survivors
	if rows, _ := sum(d.t.Destinations, func(g Digest) uint64 { return g.PhysicalRows }); x == nil || x.total == 0 && rows > 0 {
		return
	}
	n := 0
	var first Digest
	var found uint64
	for _, g := range d.t.Sources {
		if !g.validID() {
			continue
		}
		fs, _ := x.fragment(g.Frag())
		if fs.Rows > g.PhysicalRows || g.PhysicalRows-fs.Rows == g.DeletedRows {
			continue
		}
		if n++; n == 1 {
			first, found = g, g.PhysicalRows-fs.Rows
		}
	}
	if n > 0 {
		o.warn(d.t.Record, 18, "the deleted rows of %s disagree with the survivors: fragment %d says %d, its survivors leave %d; the survivors "+
			"decide, as in Lance under index_version 0 (under index_version 1 such a record is corrupt)", plural(int64(n), "source"), first.ID,
			first.DeletedRows, found)
	}
}

// warnOrder names legacy records for which list order and dependency order differ: a fragment that is consumed before
// it is produced, or in the same version, or twice.
func (o *opener) warnOrder() {
	legacy := func(d *draft) bool { return d.usable() && d.t.Form == Legacy }
	prod, cons := uses(o.drafts, destinationsOf, legacy), uses(o.drafts, sourcesOf, legacy)
	type seen struct{ p, c int }
	told := map[seen]bool{}
	groups(cons, func(cs []use) {
		for _, p := range named(prod, cs[0].frag) {
			c := cs[0]
			pt, ct := o.drafts[p.d].t, o.drafts[c.d].t
			if told[seen{p.d, c.d}] || pt.Legacy.Version < ct.Legacy.Version {
				continue
			}
			told[seen{p.d, c.d}] = true
			if pt.Legacy.Version == ct.Legacy.Version {
				o.warn(ct.Record, 0, "groups chained inside version %d: record %d (group %d) produces fragment %d and record %d (group %d) "+
					"consumes it; the groups of one version apply at once, so rows that pass through it end there, dangling unless it is live "+
					"(tested with Lance 12.0.0 and 14.0.2: wrong rows or a scan; under index_version 1 the groups would compose)",
					ct.Legacy.Version, pt.Record, pt.Legacy.Group, c.frag, ct.Record, ct.Legacy.Group)
				continue
			}
			o.warn(ct.Record, 0, "list order differs from dependency order: record %d (version %d, stamp %d) consumes fragment %d, which only "+
				"the later record %d (version %d, stamp %d) produces; legacy versions apply in list order, so rows that pass through it end there, "+
				"dangling unless it is live (Lance does the same and scans; by dependency, record %d comes first)",
				ct.Record, ct.Legacy.Version, ct.Legacy.DatasetVersion, c.frag, pt.Record, pt.Legacy.Version, pt.Legacy.DatasetVersion, pt.Record)
		}
		if len(cs) > 1 && cs[0].d != cs[len(cs)-1].d && !told[seen{-1, cs[0].d}] {
			told[seen{-1, cs[0].d}] = true
			o.warn(o.drafts[cs[1].d].t.Record, 0, "fragment %d is a source of records %s; the first in list order decides", cs[0].frag, o.records(cs))
		}
	})
}

// warnLance says what Lance does with a history of which we still use a part.
func (o *opener) warnLance() {
	var refused, unsupported []int
	for i, d := range o.drafts {
		if slices.ContainsFunc(d.problems, func(p problem) bool { return !p.readable && !p.tooLarge }) {
			refused = append(refused, i)
		}
		if d.t.Kind == Unsupported && !d.inactive {
			unsupported = append(unsupported, i)
		}
	}
	named := func(drafts []int) string {
		if len(drafts) == 1 {
			return "record " + o.recordList(drafts)
		}
		return "records " + o.recordList(drafts)
	}
	if len(refused) > 0 {
		o.warn(0, 0, "Lance refuses the whole history because of %s: listing the indices of this version and filtering with them fail",
			named(refused))
	}
	if len(unsupported) > 0 {
		o.warn(0, 10, "Lance 13.0.0 and 14.0.2 use no user index on this version because of %s; queries scan", named(unsupported))
	}
}

// fragList lists the fragments of digests, at most eight.
func fragList(ds []Digest) string {
	var parts []string
	for i, d := range ds {
		if i == 8 {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, fmt.Sprint(d.ID))
	}
	return strings.Join(parts, ", ")
}

// AddWarning appends a warning about the history as a whole that its content cannot show: an odd type URL, a base id
// that the manifest does not know. It must be called before the History is shared.
func (h *History) AddWarning(message string) {
	h.Warnings = append(h.Warnings, Finding{Kind: fault.Unknown, Message: message})
}
