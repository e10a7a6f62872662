package indexfile

import (
	"context"
	"strings"

	"github.com/frifs/frifs/fault"
)

// role is what a file of an index is for.
type role uint8

// The roles. Files without addresses share one.
const (
	roleOther   role = iota
	roleIDs          // an address per row
	roleDocs         // of full text: an address per document
	roleLeaves       // page data of an R-tree: an address per leaf entry
	roleFM           // addresses as hex in the schema metadata
	roleVectors      // a legacy index.idx
	roleBitmaps      // sets of addresses by key, of BITMAP and LABEL_LIST
	roleNGrams
	roleNulls    // the null set of an R-tree
	rolePostings // of legacy full text
	roleZones
)

// body is what one file has beyond its tables: where its addresses are, and how they are listed and replaced. It is safe
// for concurrent use.
type body interface {
	// places names where the addresses are, for File.Addresses; nil = it holds none.
	places() []string
	// scan walks over the stored addresses from a position on.
	scan(ctx context.Context, from Position) (Cursor, error)
	// remap makes the remapped file, translating nothing unless the file's How is Reserialised or Zones. Closing the
	// Content does not close the stored file.
	remap(ctx context.Context, r Resolver, o Options) (Content, error)
}

// opener looks into a file whose Segment, path, reader and container are set, and makes its body.
type opener func(ctx context.Context, f *File) (body, error)

// rule says what the files of one name are for.
type rule struct {
	name    string // below the segment's directory; "*" stands for a decimal number
	role    role
	how     How
	columns []string // the first that is there holds the addresses
	open    opener   // nil: no addresses
}

// layout describes the files of one index type (docs/FORMAT.md, "Index files").
type layout struct {
	newest int32 // highest index version that Lance 14.0.2 reads
	rules  []rule
}

// plain is the rule of a file without addresses.
func plain(name string) rule { return rule{name: name, how: Verbatim} }

// layoutOf describes the files of an index type, by the segment's file names where a type has several forms; nil for a
// type that is not known, and for system indices.
func layoutOf(typ string, has func(name string) bool) *layout {
	switch typ {
	case "BTREE":
		return &layout{1, []rule{
			{"page_data.lance", roleIDs, Flat, []string{"ids"}, newFlatFile},
			{"part_*_page_data.lance", roleIDs, Flat, []string{"ids"}, newFlatFile},
			plain("page_lookup.lance"), plain("part_*_page_lookup.lance"),
		}}
	case "VECTOR":
		if !has("auxiliary.idx") {
			return &layout{2, []rule{{"index.idx", roleVectors, InPlace, nil, newLegacyVectorFile}}}
		}
		return &layout{2, []rule{
			{"auxiliary.idx", roleIDs, Flat, []string{"_rowid"}, newFlatFile},
			plain("index.idx"),
		}}
	case "INVERTED":
		if !has("metadata.lance") {
			return &layout{3, []rule{
				{"invert.lance", rolePostings, Reserialised, []string{"_rowid"}, newPostingsFile},
				{"docs.lance", roleDocs, Flat, []string{"_rowid"}, newFlatFile},
				plain("tokens.lance"),
			}}
		}
		return &layout{3, []rule{
			{"part_*_docs.lance", roleDocs, Flat, []string{"_rowid"}, newFlatFile},
			plain("metadata.lance"), plain("part_*_tokens.lance"), plain("part_*_invert.lance"),
		}}
	case "MINHASH_LSH":
		return &layout{0, []rule{
			{"signatures.lance", roleIDs, Flat, []string{"_rowid", "_rowaddr"}, newFlatFile},
			plain("bands.lance"),
		}}
	case "RTREE":
		return &layout{0, []rule{
			{"page_data.lance", roleLeaves, Flat, []string{"id"}, newFlatFile},
			{"nulls.lance", roleNulls, Reserialised, []string{"nulls"}, newSetsFile},
		}}
	case "FM":
		return &layout{10, []rule{{"part_*_fm.lance", roleFM, InPlace, nil, newFMFile}}}
	case "BITMAP":
		return &layout{0, []rule{{"bitmap_page_lookup.lance", roleBitmaps, Reserialised, []string{"bitmaps"}, newSetsFile}}}
	case "LABEL_LIST":
		return &layout{1, []rule{{"bitmap_page_lookup.lance", roleBitmaps, Reserialised, []string{"bitmaps"}, newSetsFile}}}
	case "NGRAM":
		return &layout{0, []rule{{"ngram_postings.lance", roleNGrams, Reserialised, []string{"posting_list"}, newSetsFile}}}
	case "ZONEMAP":
		return &layout{0, []rule{{"zonemap.lance", roleZones, Zones, zoneColumns(), newZonesFile}}}
	case "BLOOMFILTER":
		return &layout{0, []rule{{"bloomfilter.lance", roleZones, Zones, zoneColumns(), newZonesFile}}}
	}
	return nil
}

func zoneColumns() []string { return []string{"fragment_id", "zone_start", "zone_length"} }

// rule finds what a file of the segment is for, and why it cannot be said.
func (s *Segment) rule(op, path string) (*rule, error) {
	if s.layout == nil {
		return nil, fault.New(op, path, fault.Unsupported, "%s", s.unknown())
	}
	for i := range s.layout.rules {
		if r := &s.layout.rules[i]; matches(r.name, path) {
			return r, nil
		}
	}
	if strings.HasPrefix(path, "staging/") || matches("part_*_bitmap_page_lookup.lance", path) {
		return nil, fault.New(op, path, fault.Unsupported,
			"no known file of a %s index; names like this are left over from an unfinished build, and Lance does not read them", s.kind())
	}
	return nil, fault.New(op, path, fault.Unsupported, "no known file of a %s index: it may hold addresses", s.kind())
}

// unknown says why the segment has no layout.
func (s *Segment) unknown() string {
	switch {
	case s.Type == "JSON":
		return "a JSON index over an index of unknown type"
	case s.Type == "" && s.TypeName == "":
		return "the index entry has no details, and its files are those of no known type"
	case s.Type == "":
		return "index type \"" + s.TypeName + "\" is not known"
	}
	return "an index of type " + s.Type + " stores no rows"
}

// matches reports whether a path is of the form of a rule's name.
func matches(name, path string) bool {
	before, after, ok := strings.Cut(name, "*")
	if !ok {
		return name == path
	}
	n := len(path) - len(before) - len(after)
	if n < 1 || n > 20 || path[:len(before)] != before || path[len(path)-len(after):] != after {
		return false
	}
	return strings.Trim(path[len(before):len(before)+n], "0123456789") == ""
}
