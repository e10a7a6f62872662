package dataset

import (
	"fmt"
	"math/bits"

	"github.com/frifs/frifs/fault"
)

// Bits of the feature-flag words that frifs itself acts on (docs/FORMAT.md, "Feature flags").
const (
	FlagStableRowIDs  = 1 << 1
	FlagReuseIndex    = 1 << 10
	FlagFragmentTree  = 1 << 12
	FlagFieldIDs      = 1 << 15
	firstUnknownFlag  = 18
	pairedFlags       = 1<<8 | 1<<10 | 1<<14 | 1<<16
	refusedByFrifs    = uint64(FlagFragmentTree) | ^uint64(1<<firstUnknownFlag-1)
	noteUnknown       = "not known to Lance 14.0.2 or to frifs"
	noteEvery         = "every release reads it"
	noteReserved      = "reserved: Lance 13.0.0 and 14.0.2 refuse it"
	noteReserved14    = "reserved in 14.0.2"
	noteTranslateOnly = "addresses mean what they always do"
)

// Flag is one bit of a feature-flag word.
type Flag struct {
	Bit    int
	Value  uint64
	Name   string // "" for a bit that frifs does not know
	Paired bool   // must stand in both words or in neither
	Note   string // which releases read it, and what it means for frifs
}

type flagInfo struct{ name, note string }

// flagTable is indexed by bit. Lance 12.0.0 stops at bit 9, 13.0.0 at 14, 14.0.2 at 18.
var flagTable = [firstUnknownFlag]flagInfo{
	{"deletion_files", noteEvery},
	{"stable_row_ids", "every release reads it; indices hold row ids, with exceptions"},
	{"use_v2_format_deprecated", "ignored by every release"},
	{"table_config", "writer word only; no matter to a reader"},
	{"base_paths", "read since 2025"},
	{"disable_transaction_file", "writer word only; no matter to a reader"},
	{"unstable_data_overlay_files", "Lance reads it in debug builds or with an environment switch; values of overlaid rows differ, " + noteTranslateOnly},
	{"covered_index_metadata", "read since 12.0.0"},
	{"mixed_data_file_versions", "read since 12.0.0"},
	{"frag_reuse_with_stable_row_ids", "refused by 12.0.0 and by release builds of 13.0.0 and 14.0.2; indices that hold row ids are not translated"},
	{"fragment_reuse_index", "refused by 12.0.0; read by 13.0.0 and 14.0.2"},
	{"spilled_row_lineage", "13.0.0: behind a switch; read by 14.0.2"},
	{"fragment_tree", noteReserved + "; fragments are not in the manifest, so frifs cannot translate"},
	{"independent_covering_fields", noteReserved + "; " + noteTranslateOnly},
	{"managed_blobs", "read since 14.0.2"},
	{"non_reusable_field_ids", "writer word only, since 14.0.2"},
	{"zone_write_seeds", noteReserved14 + "; " + noteTranslateOnly},
	{"object_metadata", noteReserved14 + ", writer word only"},
}

// Flags explains each set bit of a word, ascending.
func Flags(word uint64) []Flag {
	out := make([]Flag, 0, bits.OnesCount64(word))
	for w := word; w != 0; w &= w - 1 {
		bit := bits.TrailingZeros64(w)
		f := Flag{Bit: bit, Value: 1 << bit, Note: noteUnknown, Paired: uint64(1)<<bit&pairedFlags != 0}
		if bit < firstUnknownFlag {
			f.Name, f.Note = flagTable[bit].name, flagTable[bit].note
		}
		out = append(out, f)
	}
	return out
}

// label names a flag in a message.
func (f Flag) label() string {
	if f.Name == "" {
		return fmt.Sprintf("%d (bit %d, unknown)", f.Value, f.Bit)
	}
	return fmt.Sprintf("%d (%s)", f.Value, f.Name)
}

// FlagFindings says where the two words contradict each other or the format. Each is a finding, no refusal.
func FlagFindings(reader, writer uint64) []string {
	var out []string
	for _, f := range Flags((reader ^ writer) & pairedFlags) {
		word := "reader"
		if writer&f.Value != 0 {
			word = "writer"
		}
		out = append(out, fmt.Sprintf("flag %s stands in the %s word only; Lance takes the manifest as corrupt", f.label(), word))
	}
	if reader&FlagFieldIDs != 0 {
		out = append(out, fmt.Sprintf("flag %s stands in the reader word; Lance takes the manifest as corrupt", Flags(FlagFieldIDs)[0].label()))
	}
	for _, f := range Flags(reader & refusedByFrifs) {
		out = append(out, fmt.Sprintf("reader flag %s: %s; what this version shows may be incomplete", f.label(), f.Note))
	}
	return out
}

// Refusal is non-nil (fault.Unsupported, naming the flags) when a reader flag forbids translation: fragment_tree, or a
// bit that frifs does not know.
func Refusal(m *Manifest) error {
	bad := Flags(m.PB.GetReaderFeatureFlags() & refusedByFrifs)
	if len(bad) == 0 {
		return nil
	}
	list := ""
	for i, f := range bad {
		if i > 0 {
			list += ", "
		}
		list += f.label()
	}
	return fault.New("dataset.Refusal", m.where, fault.Unsupported,
		"reader flag %s: frifs does not know where rows are in such a table and translates nothing", list)
}
