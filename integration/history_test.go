package integration

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/fritest"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/testdata"
)

// Synthetic histories: tables of any number of rows, of which only the newest manifest and the record exist.

// inlineLimit is the length from which on Lance stores a history in a file of its own.
const inlineLimit = 204_800

// withHistory makes a table whose newest version has one legacy record from the sources to as many live destinations
// (from fragment 100,000 on) of dest rows as it takes.
func withHistory(t testing.TB, sources []fri.Digest, survivors []byte, dest uint64) table {
	t.Helper()
	dir := testdata.Copy(t, "spliced/s_v0")
	r := fritest.Record{Sources: sources, Survivors: survivors}
	left := uint64(0)
	for _, d := range sources {
		left += d.PhysicalRows - d.DeletedRows
	}
	for ; left > 0; left -= min(left, dest) {
		r.Destinations = append(r.Destinations, fri.Digest{ID: firstDestination + uint64(len(r.Destinations)), PhysicalRows: min(left, dest)})
	}
	content := fritest.AppendVersion(nil, 1, []fritest.Record{r})
	details := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), content)
	edit(t, dir, latestVersion(t, dir), func(m *pb.Manifest, ix *pb.IndexSection) {
		m.Fragments = nil
		for _, d := range r.Destinations {
			m.Fragments = append(m.Fragments, &pb.DataFragment{Id: proto.Uint64(d.ID), PhysicalRows: proto.Uint64(d.PhysicalRows)})
		}
		for _, e := range ix.Indices {
			if e.GetName() != "__lance_frag_reuse" {
				continue
			}
			if len(content) > inlineLimit {
				details = external(t, dir, e, content)
			}
			e.IndexDetails.Value = details
		}
	})
	return table{t, dir, nil}
}

// firstDestination is the id of the first fragment that withHistory writes to.
const firstDestination = 100_000

// external stores content in the entry's details file and returns the details that point there.
func external(t testing.TB, dir string, e *pb.IndexMetadata, content []byte) []byte {
	t.Helper()
	id := e.GetUuid().GetUuid()
	folder := filepath.Join(dir, "_indices", fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "details.binpb"), content)
	file, err := proto.Marshal(&pb.ExternalFile{Path: proto.String("details.binpb"), Size: proto.Uint64(uint64(len(content)))})
	if err != nil {
		t.Fatal(err)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), file)
}

func treemap(t testing.TB, b *roaring64.Bitmap) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := b.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// digests describes fragments 0, 1, … of so many rows, of which the survivors are left.
func digests(rows []uint64, survivors *roaring64.Bitmap) (d []fri.Digest) {
	before := uint64(0)
	for i, n := range rows {
		upTo := survivors.Rank(uint64(i)<<32 | 0xffffffff)
		d = append(d, fri.Digest{ID: uint64(i), PhysicalRows: n, DeletedRows: n - (upTo - before)})
		before = upTo
	}
	return d
}

// randomSurvivors describes fragments of so many rows, of which about one in twenty is lost, as bitmap containers.
func randomSurvivors(t testing.TB, fragments int, rows uint64) (d []fri.Digest, survivors []byte) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 8))
	out := bytes.NewBuffer(binary.LittleEndian.AppendUint64(nil, uint64(fragments)))
	words := make([]uint64, rows/64)
	for f := range fragments {
		live := 0
		for i := range words {
			a, b := rng.Uint64(), rng.Uint64()
			words[i] = a | b | b>>32 | rng.Uint64() // a bit is 0 with a probability of about 1/16
			live += bits.OnesCount64(words[i])
		}
		out.Write(binary.LittleEndian.AppendUint32(nil, uint32(f)))
		if _, err := roaring.FromDense(words, true).WriteTo(out); err != nil {
			t.Fatal(err)
		}
		d = append(d, fri.Digest{ID: uint64(f), PhysicalRows: rows, DeletedRows: rows - uint64(live)})
	}
	return d, out.Bytes()
}
