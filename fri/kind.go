package fri

// Form is the generation of a record.
type Form uint8

// The forms. The zero value is unknown.
const (
	FormUnknown Form = iota
	Legacy           // a Group of a Version; lifted when the entry has index_version 1
	Tagged           // a Transition
)

// String is the form as it stands in JSON: "legacy", "tagged", "unknown".
func (f Form) String() string {
	switch f {
	case Legacy:
		return "legacy"
	case Tagged:
		return "tagged"
	default:
		return "unknown"
	}
}

// Kind is what a record does, or why it cannot be used.
type Kind uint8

// The kinds. The zero value is unknown.
const (
	KindUnknown       Kind = iota
	OrderedCompaction      // survivors, in source order, fill the destinations in order
	StablePartition        // a row-map file says for each survivor which destination it went to
	Unsupported            // the record has a field that this version of frifs does not know (rule 10)
	Invalid                // the record violates the format
)

// String is the kind as it stands in JSON: "ordered_compaction", "stable_partition", "unsupported", "invalid",
// "unknown".
func (k Kind) String() string {
	switch k {
	case OrderedCompaction:
		return "ordered_compaction"
	case StablePartition:
		return "stable_partition"
	case Unsupported:
		return "unsupported"
	case Invalid:
		return "invalid"
	default:
		return "unknown"
	}
}
