package nodes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
)

// advice says what this version means for Lance itself: which releases answer wrongly, fail, or use no index. It goes by
// the manifest and the history alone (docs/DESIGN.md, "Meaning").
func (n version) advice(l *loaded, h *history) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	m := l.m
	for _, f := range dataset.FlagFindings(m.PB.GetReaderFeatureFlags(), m.PB.GetWriterFeatureFlags()) {
		say("%s", f)
	}
	if m.IndexErr != nil {
		say("the index section cannot be read: no index of this version is usable, and whether there is a fragment reuse index is not known")
	}
	for _, ix := range m.Indices {
		switch {
		case recognise(ix).Class == fri.LookAlike:
			say("the user index named %s makes Lance 14.0.2 fail to list the indices of this table and to filter with them: rename it", fri.EntryName)
		case ix.BitmapErr != nil:
			say("the fragment_bitmap of index %q (entry %d) does not decode: Lance 14.0.2 cannot list any index of this table", ix.Name, ix.Ordinal)
		}
	}
	out = append(out, duplicateAdvice(l)...)
	if !l.fri.present() {
		return out
	}
	if l.fri.count > 1 {
		say("there are %d FRI entries: Lance 12.0.0 fails every filtered query; 14.0.2 takes the first if none is tagged, else it refuses", l.fri.count)
	}
	if h.h.Broken != nil {
		say("the fragment reuse index cannot be used (%v): addresses outside the live fragments cannot be translated", h.h.Broken)
		return out
	}
	out = append(out, recordAdvice(m, h.h)...)
	out = append(out, indexAdvice(l, h.h)...)
	return out
}

// unusableAdvice says how many records cannot be used, row maps that are missing or damaged included.
func unusableAdvice(rs []*record) []string {
	bad := 0
	for _, r := range rs {
		if r.err != nil {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d recorded rewrites cannot be used (see \"errors\" in fri/history.json): addresses that need them are unresolved", bad, len(rs))}
}

// duplicateAdvice names entries that stand in the section more than once.
func duplicateAdvice(l *loaded) []string {
	var out []string
	for _, li := range l.logical {
		seen := map[string]int{}
		for _, s := range li.segments {
			seen[s.ix.UUID]++
		}
		for _, s := range li.segments {
			if c := seen[s.ix.UUID]; c > 1 {
				seen[s.ix.UUID] = 0
				out = append(out, fmt.Sprintf("index %q holds the entry %s %d times: Lance 12.0.0 lists one and counts the rows of each; a drop removes one at a time", li.name, s.ix.UUID, c))
			}
		}
	}
	return out
}

// recordAdvice says what the records of the history do to Lance as a whole. The history's own warnings name it where
// the bytes alone tell.
func recordAdvice(m *dataset.Manifest, h *fri.History) []string {
	var out []string
	for _, w := range h.Warnings {
		if strings.Contains(w.Message, "Lance") {
			out = append(out, w.String())
		}
	}
	for _, t := range h.Transitions {
		if p := t.Partition; p != nil && t.Usable() && p.BaseID != nil && !hasBase(m, *p.BaseID) {
			out = append(out, fmt.Sprintf("record %d names base %d, which the manifest does not have: Lance 14.0.2 cannot list any index of this table", t.Record, *p.BaseID))
		}
	}
	if h.Tagged && m.StableRowIDs() {
		out = append(out, "a tagged history on a table with stable row ids is invalid: Lance refuses it")
	}
	return out
}

func hasBase(m *dataset.Manifest, id uint32) bool {
	for _, b := range m.PB.GetBasePaths() {
		if b.GetId() == id {
			return true
		}
	}
	return false
}

// indexAdvice names indices that Lance answers wrongly from, or not at all, while the history is pending.
func indexAdvice(l *loaded, h *fri.History) []string {
	if len(h.Transitions) == 0 {
		return nil
	}
	var out []string
	for _, li := range l.logical {
		for _, fact := range lanceFacts(l.m, h, li) {
			if fact.wrong {
				out = append(out, "index "+strconv.Quote(li.name)+": "+fact.text)
			}
		}
	}
	return out
}
