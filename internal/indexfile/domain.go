package indexfile

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
)

// Domains of the values that an index stores (docs/DESIGN.md, "Words").
const (
	DomainAddress = "row_address"
	DomainRowID   = "row_id"
	DomainUnknown = "unknown"
)

// System reports whether an entry is one of a system index, by name and type: it stores no rows.
func System(ix *dataset.Index) bool {
	d := ix.PB.GetIndexDetails()
	return ix.System() && fri.IsEntry(ix.PB.GetName(), d.GetTypeUrl(), d != nil, ix.PB.GetFields()).Class != fri.LookAlike
}

// Domain says what an index stores, and why frifs thinks so. It looks at the stable-row-id flag, the type and the index
// version, and says unknown when in doubt (docs/FORMAT.md, "Index details").
func Domain(m *dataset.Manifest, ix *dataset.Index) (domain, why string) {
	if System(ix) {
		return DomainUnknown, "a system index: it stores no rows"
	}
	if !m.StableRowIDs() {
		if ix.Type == "" && ix.PB.GetIndexDetails() != nil {
			return DomainUnknown, fmt.Sprintf("index type %q is not known", ix.TypeName)
		}
		return DomainAddress, "the table has no stable row ids"
	}
	typ, name := ix.Type, ix.Type
	if typ == "JSON" {
		target, url := JSONTarget(ix)
		if target == "" {
			return DomainUnknown, fmt.Sprintf("a JSON index stores what its target index stores, and its target %q is not known", url)
		}
		typ, name = target, "JSON over "+target
	}
	v := ix.PB.GetIndexVersion()
	var first int32 // index version from which on the type holds addresses
	switch typ {
	case "ZONEMAP", "BLOOMFILTER", "FM":
		return DomainAddress, name + ": it stores addresses on every table"
	case "BTREE", "NGRAM", "RTREE", "BITMAP":
		first = 1
	case "LABEL_LIST":
		first = 2
	case "INVERTED", "VECTOR", "MINHASH_LSH":
		return DomainRowID, name + " stores row ids where the table has stable row ids"
	case "":
		if ix.PB.GetIndexDetails() == nil {
			return DomainUnknown, "the entry has no details, so its type is not known, and the table has stable row ids"
		}
		return DomainUnknown, fmt.Sprintf("index type %q is not known, and the table has stable row ids", ix.TypeName)
	default:
		return DomainUnknown, fmt.Sprintf("index type %s is not known to store rows", typ)
	}
	if ix.Type == "JSON" {
		return DomainUnknown, name + ": the index_version of the target, which tells row ids from addresses, is not recorded"
	}
	if v >= first {
		return DomainAddress, fmt.Sprintf("%s with index_version %d (from %d on it stores addresses)", typ, v, first)
	}
	return DomainRowID, fmt.Sprintf("%s with index_version %d on a table with stable row ids (addresses from version %d on)", typ, v, first)
}

// JSONTarget says what index a JSON index wraps, from its details {1 path, 2 details of the target: Any}: the type ("" if
// it is not known, or the details do not decode) and the type url.
func JSONTarget(ix *dataset.Index) (typ, url string) {
	target := lastBytes(ix.PB.GetIndexDetails().GetValue(), 2)
	u := lastBytes(target, 1)
	_, typ = dataset.IndexType(string(u))
	if typ == "JSON" {
		return "", string(u) // an index of an index of an index is not made by any release
	}
	return typ, string(u)
}

// lastBytes returns the last length-delimited field num of a message; nothing if the message does not decode.
func lastBytes(b []byte, num protowire.Number) (v []byte) {
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			return nil
		}
		b = b[size:]
		if size = protowire.ConsumeFieldValue(n, typ, b); size < 0 {
			return nil
		}
		if n == num && typ == protowire.BytesType {
			v, _ = protowire.ConsumeBytes(b)
		}
		b = b[size:]
	}
	return v
}
