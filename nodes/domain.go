package nodes

import (
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
)

// addressDomain reports whether an index is proven to store addresses.
func addressDomain(m *dataset.Manifest, ix *dataset.Index) bool {
	d, _ := indexfile.Domain(m, ix)
	return d == indexfile.DomainAddress
}
