package dataset

import (
	"strings"

	"github.com/frifs/frifs/internal/pb"
)

const (
	// FlagManagedBlobs is the flag of tables with blobs below _blobs.
	FlagManagedBlobs = 1 << 14
	// ManagedBlobsDir is where those are, below the dataset's root.
	ManagedBlobsDir = "_blobs"
	// SidecarSuffix ends the names of the files beside a data file that hold its large blobs.
	SidecarSuffix = ".blob"
)

// BlobFields are the ids of the fields whose values may lie outside of the data files, and of the fields below them: the
// columns of the extension type lance.blob.v2. nil where there are none.
func (m *Manifest) BlobFields() map[int32]bool {
	var ids map[int32]bool
	for _, f := range m.PB.GetFields() { // a field stands behind the one that holds it
		if string(f.GetMetadata()["ARROW:extension:name"]) != "lance.blob.v2" && !ids[f.GetParentId()] {
			continue
		}
		if ids == nil {
			ids = map[int32]bool{}
		}
		ids[f.GetId()] = true
	}
	return ids
}

// Sidecars is the directory with the blobs of a data file, which stands beside the file and has its name without
// ".lance". false where the file has no such column (blobs as BlobFields gives them), or no such name. Whether there is
// a directory, the manifest does not say: small blobs lie in the data file.
func Sidecars(path string, d *pb.DataFile, blobs map[int32]bool) (dir string, ok bool) {
	if len(blobs) == 0 {
		return "", false
	}
	dir, ok = strings.CutSuffix(path, ".lance")
	if !ok || dir == "" || strings.HasSuffix(dir, "/") {
		return "", false
	}
	for _, id := range d.GetFields() {
		if blobs[id] {
			return dir, true
		}
	}
	return "", false
}
