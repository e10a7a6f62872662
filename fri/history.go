package fri

import (
	"fmt"
	"sort"

	"github.com/frifs/frifs/fault"
)

// Finding is one violation or oddity of a history.
type Finding struct {
	Record  int        // 1-based record number in wire order; 0 = the history as a whole
	Rule    int        // row of docs/FORMAT.md, "Validation rules"; 0 = a check of the legacy form, or an oddity
	Kind    fault.Kind // fault.Corrupt, fault.Unsupported, ... ; fault.Unknown for a warning
	Message string     // what is wrong, where, and what Lance does where that differs
}

// String renders "record 2: rule 16: message"; the parts that are 0 are left out.
func (f Finding) String() string {
	s := f.Message
	if f.Rule != 0 {
		s = fmt.Sprintf("rule %d: %s", f.Rule, s)
	}
	if f.Record != 0 {
		s = fmt.Sprintf("record %d: %s", f.Record, s)
	}
	return s
}

// History is what one version's FRI entry says. It is immutable once made and safe for concurrent use.
type History struct {
	IndexVersion int32
	Tagged       bool // index_version 1: one graph in dependency order; false: versions in list order

	// Transitions is in the order of application; Transitions[i].Seq is i+1. Legacy histories keep the wire order.
	// Tagged ones: the records that cannot be used stand at their wire place (Seq equals Record), and the usable ones
	// fill the other places in topological order.
	Transitions []*Transition
	// Steps, legacy histories only: per Version, in list order, the indices into Transitions of its groups, unusable
	// ones included. All groups of a step apply at once. Transitions under index_version 0 are in no step.
	Steps [][]int

	Errors   []Finding // violations, in the order of the records
	Warnings []Finding // oddities, and what Lance does about them

	// Broken is set when the whole history cannot be used (rules 1 to 6, two entries, a missing file): every address
	// that is not in a live fragment is unresolved, and Transitions is empty.
	Broken error
	// Opaque is set when a record that cannot be read may have consumed any fragment: a walk that ends in a dead
	// fragment is then unresolved, not dangling.
	Opaque         bool
	UnknownRecords int            // unknown fields of the content (rule 8); each sets Opaque
	Unknown        []UnknownField // unknown fields of the content and of Version messages, bounded

	Size int64 // of the content in bytes; 0 where there is none

	content                        Reader
	consumers, producers, claimant edges
}

// Content returns the content the history was read from: the bytes of the InlineContent message. nil for a history
// made by Broken.
func (h *History) Content() Reader { return h.content }

// Consumer returns the usable transitions that have f as a source, in the order of application. A tagged history has
// at most one. The slice is shared and must not be changed.
func (h *History) Consumer(f FragID) []*Transition { return h.consumers.of(f) }

// Producer returns the usable transitions that have f as a destination, in the order of application. A tagged history
// has at most one. The slice is shared and must not be changed.
func (h *History) Producer(f FragID) []*Transition { return h.producers.of(f) }

// Claimants returns the transitions that cannot be used and name f as a source: an address that ends in f may have
// been moved by one of them. The slice is shared and must not be changed.
func (h *History) Claimants(f FragID) []*Transition { return h.claimant.of(f) }

// Unresolvable reports whether a walk that ends in the dead fragment f, with no usable step left that consumes it, is
// unresolved rather than dangling (docs/DESIGN.md, "Meaning").
func (h *History) Unresolvable(f FragID) bool {
	return h.Broken != nil || h.Opaque || len(h.Claimants(f)) > 0
}

// edges finds transitions by fragment: two parallel slices, sorted by fragment and then by Seq.
type edges struct {
	frags []FragID
	ts    []*Transition
}

func (e *edges) Len() int { return len(e.frags) }
func (e *edges) Less(i, j int) bool {
	if e.frags[i] != e.frags[j] {
		return e.frags[i] < e.frags[j]
	}
	return e.ts[i].Seq < e.ts[j].Seq
}
func (e *edges) Swap(i, j int) {
	e.frags[i], e.frags[j] = e.frags[j], e.frags[i]
	e.ts[i], e.ts[j] = e.ts[j], e.ts[i]
}

// add enters t under each fragment of ds; ids that are no fragment ids name none. A fragment that is listed twice is
// entered once per listing until finish.
func (e *edges) add(t *Transition, ds []Digest) {
	for _, d := range ds {
		if d.validID() {
			e.frags = append(e.frags, d.Frag())
			e.ts = append(e.ts, t)
		}
	}
}

// finish sorts the edges and removes duplicates.
func (e *edges) finish() {
	sort.Sort(e)
	n := 0
	for i := range e.frags {
		if n > 0 && e.frags[n-1] == e.frags[i] && e.ts[n-1] == e.ts[i] {
			continue
		}
		e.frags[n], e.ts[n] = e.frags[i], e.ts[i]
		n++
	}
	e.frags, e.ts = e.frags[:n:n], e.ts[:n:n]
}

func (e *edges) of(f FragID) []*Transition {
	i := sort.Search(len(e.frags), func(i int) bool { return e.frags[i] >= f })
	j := i
	for j < len(e.frags) && e.frags[j] == f {
		j++
	}
	if i == j {
		return nil
	}
	return e.ts[i:j:j]
}
