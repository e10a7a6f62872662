package fri

import (
	"fmt"
	"slices"
	"strings"

	"github.com/frifs/frifs/fault"
)

// finish checks the records, alone and against each other, puts them in order and writes down what was found.
func (o *opener) finish() {
	o.warnHistory()
	for _, d := range o.drafts {
		o.validate(d)
	}
	if o.h.Tagged {
		o.h.Steps = nil
		o.graphRules()
	} else {
		o.crossGroups()
		o.warnOrder()
	}
	for _, d := range o.drafts {
		o.conclude(d)
	}
	if o.unnamed > 0 {
		o.h.Errors = append(o.h.Errors, Finding{Kind: fault.Corrupt, Message: fmt.Sprintf("%d more violations are not listed", o.unnamed)})
	}
	for i, d := range o.order() {
		d.t.Seq = i + 1
		o.h.Transitions = append(o.h.Transitions, d.t)
	}
	for _, d := range o.drafts {
		d.t.Checks = d.checks()
	}
	h := o.h
	for _, t := range h.Transitions {
		if t.Usable() {
			h.consumers.add(t, t.Sources)
			h.producers.add(t, t.Destinations)
			continue
		}
		h.claimant.add(t, t.Sources)
		if !t.SourcesOK {
			h.Opaque = true
		}
	}
	h.consumers.finish()
	h.producers.finish()
	h.claimant.finish()
	o.warnLance()
	slices.SortStableFunc(h.Warnings, func(a, b Finding) int { return a.Record - b.Record })
}

// conclude settles a record's kind and error and enters its violations.
func (o *opener) conclude(d *draft) {
	t := d.t
	found := make([]Finding, 0, len(d.problems)+1)
	slices.SortStableFunc(d.problems, func(a, b problem) int { return a.rule - b.rule })
	for i, p := range d.problems {
		f := Finding{Record: t.Record, Rule: p.rule, Kind: fault.Corrupt, Message: p.text(t.Offset)}
		if p.tooLarge {
			f.Kind = fault.TooLarge
		}
		if n := d.more[p.rule]; n > 0 && (i+1 == len(d.problems) || d.problems[i+1].rule != p.rule) {
			f.Message += fmt.Sprintf(" (and %d more of this kind)", n)
		}
		found = append(found, f)
	}
	switch {
	case d.inactive:
		if len(t.rec.unsupported) > 0 {
			t.Kind = Unsupported
		} else if t.Mapping == KindUnknown {
			t.Kind = Invalid
		}
		t.Err = fault.New("fri.Open", o.name(t), fault.Unsupported, "a transition under index_version 0 is never applied")
		return
	case len(found) > 0:
		t.Kind = Invalid
	case len(t.rec.unsupported) > 0:
		t.Kind = Unsupported
		found = append(found, Finding{Record: t.Record, Rule: 10, Kind: fault.Unsupported,
			Message: fmt.Sprintf("unknown field %s in the transition; what it changes is not known, so the record is not applied",
				numbers(t.rec.unsupported))})
	default:
		return
	}
	room := max(0, maxErrors-len(o.h.Errors))
	o.h.Errors = append(o.h.Errors, found[:min(len(found), room)]...)
	o.unnamed += max(0, len(found)-room)
	first := found[0]
	rule := ""
	if first.Rule != 0 {
		rule = fmt.Sprintf("rule %d: ", first.Rule)
	}
	t.Err = fault.New("fri.Open", o.name(t), first.Kind, "%s%s", rule, first.Message)
}

// name names a record in errors.
func (o *opener) name(t *Transition) string { return fmt.Sprintf("record %d", t.Record) }

// crossGroups applies the one legacy check that concerns several groups: a fragment that is a source in two groups of
// one version spoils all of them.
func (o *opener) crossGroups() {
	for _, step := range o.h.Steps {
		if len(step) < 2 {
			continue
		}
		group := o.drafts[step[0] : step[len(step)-1]+1]
		groups(uses(group, sourcesOf, func(d *draft) bool { return d.t.Form == Legacy }), func(us []use) {
			if us[0].d == us[len(us)-1].d {
				return
			}
			version, list := group[us[0].d].t.Legacy.Version, groupList(group, us)
			for _, u := range us {
				if d := group[u.d]; !d.failedGraph(u.frag) {
					d.fail(checkGraph, 0, "fragment %d is a source in two groups of version %d: groups %s", u.frag, version, list)
				}
			}
		})
	}
}

// failedGraph reports that the check across groups has named this fragment in this record already: a fragment may be
// listed twice in one group.
func (d *draft) failedGraph(f FragID) bool {
	prefix := fmt.Sprintf("fragment %d is a source in two groups", f)
	return slices.ContainsFunc(d.problems, func(p problem) bool { return p.check == checkGraph && strings.HasPrefix(p.msg, prefix) })
}

// groupList names the groups of uses, at most eight.
func groupList(group []*draft, us []use) string {
	var parts []string
	for _, u := range us {
		s := fmt.Sprint(group[u.d].t.Legacy.Group)
		if len(parts) > 0 && parts[len(parts)-1] == s {
			continue
		}
		if len(parts) == 8 {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// numbers lists field numbers without repeating them, at most eight.
func numbers(ns []uint32) string {
	ns = slices.Compact(slices.Sorted(slices.Values(ns)))
	var parts []string
	for i, n := range ns {
		if i == 8 {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, fmt.Sprint(n))
	}
	return strings.Join(parts, ", ")
}

// checks says, per named check, what came of it.
func (d *draft) checks() []Check {
	names := []string{checkWire, checkMapping, checkDigests, checkRows, checkGraph}
	switch d.t.Mapping {
	case OrderedCompaction:
		names = []string{checkWire, checkMapping, checkDigests, checkRows, checkHeaders, checkPayload, checkGraph}
	case StablePartition:
		names = []string{checkWire, checkMapping, checkDigests, checkRows, checkMapID, checkMapSize, checkRowMap, checkGraph}
	}
	yes, no := true, false
	out := make([]Check, 0, len(names))
	for _, name := range names {
		out = append(out, d.check(name, &yes, &no))
	}
	return out
}

// check says what came of one check; yes and no point to the two results.
func (d *draft) check(name string, yes, no *bool) Check {
	t := d.t
	for _, p := range d.problems {
		if p.check == name {
			return Check{name, no, p.text(t.Offset)}
		}
	}
	wireBroken := t.rec.wire != nil
	switch {
	case name == checkWire && wireBroken:
		return Check{name, no, t.rec.wire.msg}
	case name == checkWire:
		return Check{name, yes, plural(t.Length, "byte")}
	case name == checkMapping && t.Kind == Unsupported && !d.inactive:
		return Check{name, no, "unknown field " + numbers(t.rec.unsupported)}
	case d.inactive:
		return Check{name, nil, "not looked at: a transition under index_version 0"}
	case t.Kind == Unsupported || t.Mapping == KindUnknown:
		return Check{name, nil, "not looked at: the mapping cannot be read"}
	case name == checkMapping:
		return Check{name, yes, t.Mapping.String()}
	case name == checkDigests:
		return Check{name, yes, plural(int64(len(t.Sources)), "source") + ", " + plural(int64(len(t.Destinations)), "destination")}
	case name == checkRows:
		return d.rowsCheck(yes)
	case name == checkHeaders:
		if t.Survivors == nil || d.failed(checkDigests) {
			return Check{name, nil, "not looked at"}
		}
		return Check{name, yes, plural(int64(t.Survivors.Total()), "survivor") + " in " + plural(int64(t.Survivors.Containers()), "container")}
	case name == checkPayload:
		if t.Survivors != nil && t.Survivors.Checked() {
			return Check{name, yes, ""}
		}
		return Check{name, nil, "checked container by container when rows are asked for"}
	case name == checkRowMap:
		return Check{name, nil, "checked when the row map is opened"}
	case name == checkGraph && !t.Usable():
		return Check{name, nil, "not looked at: the record cannot be used"}
	case name == checkGraph && !d.tagged:
		return Check{name, yes, "no fragment is a source in two groups of the version"}
	default:
		return Check{name, yes, ""}
	}
}

func (d *draft) rowsCheck(yes *bool) Check {
	if d.failed(checkDigests) || d.failed(checkHeaders) {
		return Check{checkRows, nil, "not looked at"}
	}
	rows, _ := sum(d.t.Destinations, func(d Digest) uint64 { return d.PhysicalRows })
	return Check{checkRows, yes, d.hold(rows)}
}
