package fri

import "fmt"

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

	// wire is set where the message itself does not parse: rule 3 for a Transition, rule 6 for a Group.
	wire *violation
	// problems of the mapping and of the digest messages, in the order of the checks.
	problems []problem

	id ident
}

// problem is a violation that concerns one record.
type problem struct {
	check    string // name of the Check that it fails
	rule     int    // 0: a check of the legacy form
	off      int64  // in the record; -1: no place
	msg      string
	tooLarge bool // a limit of frifs, not a breach of the format
	readable bool // Lance reads such a record all the same
}

// text renders the message with its place in the content; base is the offset of the record.
func (p problem) text(base int64) string {
	if p.off < 0 {
		return p.msg
	}
	return fmt.Sprintf("%s (at byte %d)", p.msg, base+p.off)
}

// Names of the checks; see Check.
const (
	checkWire      = "wire"
	checkMapping   = "mapping"
	checkDigests   = "digests"
	checkRows      = "row_counts"
	checkHeaders   = "survivors_headers"
	checkPayload   = "survivors_payload"
	checkMapID     = "map_id"
	checkMapSize   = "map_size"
	checkRowMap    = "row_map"
	checkGraph     = "graph"
	maxRecDigests  = 1 << 20 // digests of one record
	maxDigests     = 1 << 21 // digests of one history: 48 MiB of them
	maxRecords     = 1 << 16 // records of one history; real ones have tens
	minRecord      = 16      // bytes of content per record, beyond the first 1024: real ones have three times that
	maxErrors      = 4096    // violations of one history that are named
	maxSteps       = 1 << 16 // Version messages of one history
	smallRecord    = 1 << 20 // bytes: up to here a record is read whole, hashed and checked whole
	maxHashedBytes = 16 << 20
	maxMapID       = 45 // bytes of the longest form of a UUID, urn:uuid:...
)

// Field numbers of the messages (docs/FORMAT.md, "FRI entry").
const (
	fieldSources           = 1 // of Transition
	fieldDestinations      = 2
	fieldOrderedCompaction = 3
	fieldStablePartition   = 4
	fieldGroupRows         = 1 // of Group
	fieldGroupOld          = 2
	fieldGroupNew          = 3
)

// cost estimates the bytes that a record holds in memory.
func (rec *record) cost() int64 {
	n := 512 + 24*(len(rec.sources)+len(rec.dests))
	if x := rec.survivors; x != nil {
		n += 24*x.nCont + 48*len(x.keys)
	}
	for _, u := range rec.unknown {
		n += 80 + len(u.Value)
	}
	for _, p := range rec.problems {
		n += 64 + len(p.msg)
	}
	return int64(n)
}
