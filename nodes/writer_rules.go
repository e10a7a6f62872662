package nodes

import (
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
)

// writerRule is one thing that this version's history makes writers refuse, or do differently.
type writerRule struct {
	rule    string // a stable name
	refuses string
	why     string
}

// writerRules lists what the history of a version makes Lance's writers refuse (docs/FORMAT.md, "FRI entry").
func writerRules(m *dataset.Manifest, f *friEntry, h *fri.History) []writerRule {
	var out []writerRule
	add := func(rule, refuses, why string) { out = append(out, writerRule{rule, refuses, why}) }
	tagged := h.Tagged || m.PB.GetReaderFeatureFlags()&dataset.FlagReuseIndex != 0
	if tagged {
		why := "flag 1024 (fragment_reuse_index) is set; it stays set for ever"
		if m.PB.GetReaderFeatureFlags()&dataset.FlagReuseIndex == 0 {
			why = "the entry has index_version 1, although flag 1024 is not set"
		}
		add("old_reader", "Lance 12.0.0 and older refuse to open the table", why)
		add("compaction_without_deferral", "a compaction without defer_index_remap, of fragments that an index covers (a plain optimize too)",
			"on a tagged table every rewrite of covered fragments needs a record")
		add("legacy_record", "a legacy (version 0) record: it is turned into a transition at commit, or refused",
			"from the first tagged record on every record is a transition")
		add("data_overlay", "DataOverlay commits", "addresses of overlaid rows could not be followed")
		add("clone_by_transaction", "a Clone committed as a plain transaction", "row maps and the entry must be written anew for the clone")
		add("stable_row_id_migration", "a migration to stable row ids", "tagged histories and stable row ids exclude each other")
	}
	if !f.present() {
		return out
	}
	unreadable := h.UnknownRecords > 0
	for _, t := range h.Transitions {
		unreadable = unreadable || t.Kind == fri.Unsupported
	}
	if tagged && unreadable {
		add("unsupported_record", "append of a record, trim, prune, remap and clone of the history (14.0.2)",
			"the history holds a record that Lance 14.0.2 cannot read; carrying the entry along unchanged is allowed")
	}
	if f.count > 1 || h.Broken != nil {
		add("broken_entry", "every change of the history", "the entry cannot be used as a whole")
	}
	if m.StableRowIDs() {
		add("stable_row_ids", "deferred compactions (release builds of 14.0.2)", "the table has stable row ids and a fragment reuse index")
	}
	if h.Broken == nil && !tagged && len(h.Transitions) > 0 {
		add("index_over_part_of_a_group", "a CreateIndex that covers only part of a rewritten group, beside a rewrite (conflict)",
			"a group must be fully inside or fully outside an index's coverage")
	}
	return out
}
