package indexfile

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/internal/dataset"
)

// remapRevision changes whenever a release makes other bytes of remapped files than the one before: readers cache by
// uuid.
const remapRevision = "frifs remapped index 1"

// Seed is what the new uuids of a version's index entries depend on, beside the entries themselves. It names content
// only: neither where the dataset is, nor when it was looked at.
type Seed struct {
	Fragments []byte // FragmentsDigest
	History   []byte // digest of the FRI's content; nil = none
	Options   string // what is left out, and for whom
}

// NewUUID is the uuid of an entry of m in the remapped dataset, of RFC 9562's form 8: a hash of the stored uuid, name and
// bitmap, of the derived coverage, of the version's number and fragments, and of seed. What is
// found in the entry's files is not in it: those bytes follow from the stored uuid. nth tells entries with equal uuid and
// name apart.
func (s Seed) NewUUID(m *dataset.Manifest, x *dataset.Index, derived *roaring.Bitmap, nth int) [16]byte {
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte(remapRevision), x.PB.GetUuid().GetUuid(), []byte(x.Name), x.PB.GetFragmentBitmap(), s.Fragments, s.History, []byte(s.Options),
	} {
		number(h, uint64(len(part)))
		h.Write(part)
	}
	number(h, m.Version())
	number(h, uint64(nth))
	for it := derived.Iterator(); it.HasNext(); {
		number(h, uint64(it.Next()))
	}
	var u [16]byte
	copy(u[:], h.Sum(nil))
	u[6] = u[6]&0x0F | 0x80
	u[8] = u[8]&0x3F | 0x80
	return u
}

func number(h hash.Hash, n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	h.Write(b[:])
}

// FragmentsDigest names the fragments of a version: ids, rows and deletion files. Where their files lie does not matter.
func FragmentsDigest(m *dataset.Manifest) []byte {
	h := sha256.New()
	for _, f := range m.Fragments() {
		d := f.DeletionFile()
		has := uint64(0)
		if d != nil {
			has = 1
		}
		for _, n := range [...]uint64{f.RecordedID(), f.RecordedRows(), has, uint64(d.GetFileType()), d.GetReadVersion(), d.GetId(), d.GetNumDeletedRows()} {
			number(h, n)
		}
	}
	return h.Sum(nil)
}
