package fri

// record is what the bytes of one record say, whatever history they stand in. It is immutable but for the id, and
// shared between histories through a Cache. Offsets in it count from the start of the record's message value.
type record struct {
	form    Form
	mapping Kind // KindUnknown: none, or more than one

	sources, dests     []Digest
	sourcesOK, destsOK bool

	survivors *survivorIndex // ordered compaction, headers decoded
	partition *Partition

	unknown     []UnknownField
	unsupported []uint32 // numbers of unknown fields of a Transition (rule 10)

	problems []problem  // of the wire and of the mapping, in the order of the checks
	wire     *violation // the record does not parse at all

	id ident
}

// problem is a violation that was found while a record was parsed.
type problem struct {
	check string // name of the Check it belongs to
	rule  int
	off   int64 // in the record; -1: no place
	msg   string
	// readable: Lance reads this all the same.
	readable bool
}

// Field numbers of the messages (docs/FORMAT.md, "FRI entry").
const (
	fieldOrderedCompaction = 3 // of Transition
	fieldStablePartition   = 4
)
