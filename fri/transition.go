package fri

import "context"

// LegacyRef says where a legacy record stands in its history.
type LegacyRef struct {
	DatasetVersion uint64 // the stamp: dataset version recorded with the rewrite; it orders nothing
	Version        int    // 1-based position of the Version message in wire order; Steps[Version-1] is its step
	Group          int    // 1-based position of the group within its Version
}

// Partition is what a record says of its row-map file (docs/FORMAT.md, "Row map").
type Partition struct {
	MapID     string  // as given on the wire; a usable record's parses as a UUID, so it is safe in a path
	SizeBytes uint64  // size of the row-map file in bytes; never 0 in a usable record
	BaseID    *uint32 // id of the base path that holds the file; nil = the dataset itself, a present 0 is an id
}

// Check is one test that was made of a record. The names are stable: "wire", "mapping", "digests", "row_counts",
// "survivors_headers", "survivors_payload" (ordered compaction), "map_id", "map_size", "row_map" (stable partition),
// "graph".
type Check struct {
	Name   string
	OK     *bool  // nil: not looked at (yet)
	Detail string // what was found, or why it was not looked at; may be empty
}

// UnknownField is a field that frifs does not know. Inside nested messages such fields change nothing; they are kept
// to be shown.
type UnknownField struct {
	Path     string // the message that holds it: "content", "version", "group", "transition", "sources[3]", ...
	Number   uint32 // field number
	WireType uint8  // 0 varint, 1 fixed64, 2 length-delimited, 3 group, 5 fixed32
	Offset   int64  // of the value in bytes, from the start of the record; of "content" and "version" from their own start
	Length   int64  // of the value in bytes
	Value    []byte // the value's bytes without key and length prefix; nil when longer than 4096 bytes
}

// Transition is one recorded rewrite: a legacy group or a tagged transition. It is immutable; its slices are shared
// with other histories and must not be changed.
type Transition struct {
	Seq    int // 1-based position in History.Transitions, the order of application
	Record int // 1-based number in wire order, counting every legacy group and every transition
	Form   Form

	// Kind is what the record is: a mapping, or Unsupported or Invalid. A transition under index_version 0 keeps the
	// kind of its mapping although it is never applied; Err tells.
	Kind Kind
	// Mapping is what the wire says even where Kind is Unsupported or Invalid; KindUnknown if it names no mapping or
	// more than one.
	Mapping Kind

	Legacy       *LegacyRef // nil for a tagged transition
	Sources      []Digest   // in scan order: rank follows this order
	Destinations []Digest   // in output order: label order of a stable partition
	// SourcesOK reports that the list of sources could be decoded. Where it is false the record might have consumed
	// any fragment, and History.Opaque is set.
	SourcesOK bool

	Survivors *Survivors // ordered compaction only; nil if its headers do not decode
	Partition *Partition // stable partition only

	Offset, Length int64 // of the record's message value in the content, in bytes
	Checks         []Check
	Unknown        []UnknownField

	// Err is nil for a usable record. Its kind is fault.Corrupt or fault.Unsupported; the message names the record,
	// the rule and the byte where one is known.
	Err error

	rec *record
	r   Reader
}

// Usable reports whether the record may be applied.
func (t *Transition) Usable() bool { return t.Err == nil }

// Rows sums the digests: rows of the sources, rows that arrived in the destinations, rows that did not. ok is false
// for a record that is not usable, and the numbers are then 0.
func (t *Transition) Rows() (in, moved, dropped uint64, ok bool) {
	if !t.Usable() {
		return 0, 0, 0, false
	}
	for _, d := range t.Sources {
		in += d.PhysicalRows
	}
	for _, d := range t.Destinations {
		moved += d.PhysicalRows
	}
	if moved > in {
		return 0, 0, 0, false
	}
	return in, moved, in - moved, true
}

// ID returns the first 16 hex digits of the SHA-256 of the record's message value, with the base_id of a stable
// partition left out (the lengths around it encoded anew). It names the same record across versions and clones.
// It is computed when it is first asked for, with one pass over the record, and kept. Errors are those of the Reader
// and of ctx.
func (t *Transition) ID(ctx context.Context) (string, error) {
	return t.rec.identity(ctx, t.r, t.Offset, t.Length)
}
