package dataset

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

// BitmapState says what the fragment_bitmap of an index entry means.
type BitmapState uint8

// The states of docs/FORMAT.md, "Index details". The zero value stands for bytes that do not decode.
const (
	BitmapUndecodable BitmapState = iota
	BitmapAbsent                  // no bytes: coverage unknown
	BitmapWithdrawn               // an empty bitmap: covers nothing
	BitmapPresent
)

// String is the state's name in JSON.
func (s BitmapState) String() string {
	return [...]string{"undecodable", "unknown", "withdrawn", "present"}[min(s, BitmapPresent)]
}

// The names of the system indices.
const (
	ReuseIndexName  = "__lance_frag_reuse"
	MemWalIndexName = "__lance_mem_wal"
)

// Index is one entry of the index section. Entries are raw: none is left out, joined or ordered.
type Index struct {
	Ordinal     int // position in the section, from 0
	PB          *pb.IndexMetadata
	UUID        string // lower-case, hyphenated: the directory name; "" if UUIDErr
	UUIDErr     error
	Name        string
	TypeURL     string // "" without details
	TypeName    string // last part of the type url, after "/" and "."; "" unknown
	Type        string // by the known type names, "BTREE"; "" unknown
	BitmapState BitmapState
	Bitmap      *roaring.Bitmap // nil unless Withdrawn or Present
	BitmapErr   error
	Duplicate   bool // another entry has the same name and uuid
}

// System reports whether the name is one of a system index. Its bitmap is never coverage of data.
func (x *Index) System() bool { return x.Name == ReuseIndexName || x.Name == MemWalIndexName }

// Dir is the directory of the index's files, relative to _indices of a dataset root.
func (x *Index) Dir() string { return x.UUID }

// typeNames are the details messages by the last part of their name, in lower case. Packages changed over time
// (lance.table, lance.index.pb, lance.index), so they are not looked at.
var typeNames = map[string]string{
	"btreeindexdetails":         "BTREE",
	"bitmapindexdetails":        "BITMAP",
	"labellistindexdetails":     "LABEL_LIST",
	"ngramindexdetails":         "NGRAM",
	"zonemapindexdetails":       "ZONEMAP",
	"bloomfilterindexdetails":   "BLOOMFILTER",
	"rtreeindexdetails":         "RTREE",
	"invertedindexdetails":      "INVERTED",
	"jsonindexdetails":          "JSON",
	"fmindexdetails":            "FM",
	"minhashlshindexdetails":    "MINHASH_LSH",
	"vectorindexdetails":        "VECTOR",
	"fragmentreuseindexdetails": "FRAGMENT_REUSE",
	"memwalindexdetails":        "MEM_WAL",
}

// IndexType tells what a type url of index details names: the message's own name, and the index type ("BTREE"; "" for
// an unknown one).
func IndexType(url string) (name, typ string) {
	name = url[strings.LastIndexByte(url, '/')+1:]
	name = name[strings.LastIndexByte(name, '.')+1:]
	return name, typeNames[strings.ToLower(name)]
}

// makeIndices wraps the entries of an index section.
func makeIndices(section *pb.IndexSection, where string) []*Index {
	out := make([]*Index, len(section.GetIndices()))
	first := map[[2]string]*Index{}
	for i, p := range section.GetIndices() {
		x := &Index{Ordinal: i, PB: p, Name: p.GetName(), TypeURL: p.GetIndexDetails().GetTypeUrl()}
		out[i] = x
		x.TypeName, x.Type = IndexType(x.TypeURL)
		x.UUID, x.UUIDErr = uuidString(p.GetUuid().GetUuid())
		if x.UUIDErr != nil {
			x.UUIDErr = fault.New("dataset.Manifest", where, fault.Corrupt, "index entry %d (%q): %w", i, x.Name, x.UUIDErr)
		}
		x.readBitmap(where)
		key := [2]string{x.Name, string(p.GetUuid().GetUuid())}
		if other, ok := first[key]; ok {
			other.Duplicate, x.Duplicate = true, true
		} else {
			first[key] = x
		}
	}
	return out
}

func (x *Index) readBitmap(where string) {
	b := x.PB.GetFragmentBitmap()
	if len(b) == 0 {
		x.BitmapState = BitmapAbsent
		return
	}
	bm, err := DecodeBitmap(b)
	switch {
	case err != nil:
		x.BitmapErr = fault.New("dataset.Manifest", where, fault.Corrupt, "index entry %d (%q): fragment_bitmap: %w", x.Ordinal, x.Name, err)
	case bm.IsEmpty():
		x.BitmapState, x.Bitmap = BitmapWithdrawn, bm
	default:
		x.BitmapState, x.Bitmap = BitmapPresent, bm
	}
}

// uuidString renders 16 bytes in the hyphenated lower-case form.
func uuidString(b []byte) (string, error) {
	if len(b) != 16 {
		return "", fmt.Errorf("the uuid has %d bytes, not 16", len(b))
	}
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}
