package nodes

import (
	"fmt"

	"github.com/frifs/frifs/internal/dataset"
)

// Domains of the values that an index stores (docs/DESIGN.md, "Words").
const (
	domainAddress = "row_address"
	domainRowID   = "row_id"
	domainUnknown = "unknown"
)

// indexDomain says what an index stores, and why frifs thinks so. It looks at the stable-row-id flag, the type and the
// index version, and says unknown when in doubt (docs/FORMAT.md, "Index details").
func indexDomain(m *dataset.Manifest, ix *dataset.Index) (domain, why string) {
	if systemEntry(ix) {
		return domainUnknown, "a system index: it stores no rows"
	}
	v := ix.PB.GetIndexVersion()
	if !m.StableRowIDs() {
		if ix.Type == "" && ix.PB.GetIndexDetails() != nil {
			return domainUnknown, fmt.Sprintf("index type %q is not known", ix.TypeName)
		}
		return domainAddress, "the table has no stable row ids"
	}
	always := "it stores addresses on every table"
	var first int32 // index version from which on the type holds addresses
	switch ix.Type {
	case "ZONEMAP", "BLOOMFILTER", "FM":
		return domainAddress, fmt.Sprintf("%s: %s", ix.Type, always)
	case "BTREE", "NGRAM", "RTREE", "BITMAP":
		first = 1
	case "LABEL_LIST":
		first = 2
	case "INVERTED", "VECTOR", "MINHASH_LSH":
		return domainRowID, ix.Type + " stores row ids where the table has stable row ids"
	case "JSON":
		return domainUnknown, "JSON stores what its target index stores; its details are not looked into"
	case "":
		if ix.PB.GetIndexDetails() == nil {
			return domainUnknown, "the entry has no details, so its type is not known, and the table has stable row ids"
		}
		return domainUnknown, fmt.Sprintf("index type %q is not known, and the table has stable row ids", ix.TypeName)
	default:
		return domainUnknown, fmt.Sprintf("index type %s is not known to store rows", ix.Type)
	}
	if v >= first {
		return domainAddress, fmt.Sprintf("%s with index_version %d (from %d on it stores addresses)", ix.Type, v, first)
	}
	return domainRowID, fmt.Sprintf("%s with index_version %d on a table with stable row ids (addresses from version %d on)", ix.Type, v, first)
}

// addressDomain reports whether an index is proven to store addresses.
func addressDomain(m *dataset.Manifest, ix *dataset.Index) bool {
	d, _ := indexDomain(m, ix)
	return d == domainAddress
}
