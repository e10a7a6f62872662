package integration

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/testdata"
)

// limited runs frifs and fails if it took more memory than a mount may (docs/DESIGN.md, "Bars").
func limited(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(exe, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	peak, err := runMeasured(cmd)
	if err != nil {
		t.Fatalf("frifs %q: %v: %s", args, err, errs.String())
	}
	if peak > 256 {
		t.Errorf("frifs %q took %.0f MiB", args, peak)
	}
	return out.String()
}

// A hundred million rows in one record, with sparse deletions: the end of the mapping costs what its start costs.
func TestR19_MemoryDoesNotGrowWithRows(t *testing.T) {
	const rows, every = 100_000_000, 1009
	survivors := roaring64.New()
	survivors.AddRange(0, rows)
	for o := uint64(3); o < rows; o += every {
		survivors.Remove(o)
	}
	x := withHistory(t, digests([]uint64{rows}, survivors), treemap(t, survivors), 10_000_000)
	mapping := "latest/fri/transitions/0001/mapping.csv"
	lines := strings.Split(strings.TrimSpace(limited(t, "cat", "--offset", "-200000", x.dir, mapping)), "\n")
	for i, line := range lines[1:] { // the first is cut
		old := uint64(rows - len(lines) + 1 + i)
		want := fmt.Sprintf("%d,0,%d,,,", old, old)
		if old%every != 3 {
			rank := old - (old+every-4)/every // a row is lost at 3, 3+every, …
			a := (firstDestination+rank/10_000_000)<<32 | rank%10_000_000
			want = fmt.Sprintf("%d,0,%d,%d,%d,%d", old, old, a, a>>32, uint32(a))
		}
		if line != want {
			t.Fatalf("line of row %d: got %s, want %s", old, line, want)
		}
	}
	tail := limited(t, "cat", "--offset", "-100", x.dir, "latest/fri/scan/composed.csv")
	if !strings.HasSuffix(tail, ",moved\n") {
		t.Errorf("composed.csv ends with %q", tail)
	}
	if n := len(limited(t, "cat", "--length", "100000000", x.dir, mapping)); n != 100_000_000 {
		t.Errorf("%d bytes", n)
	}
}

// Holes at the edges of the bitmap's blocks, in blocks of each kind.
func TestR20_RanksAtContainerEdges(t *testing.T) {
	const rows = 200_000
	holes := []uint64{7, 65535, 65536, 131072}
	for _, c := range []struct {
		name  string
		shape func(b *roaring64.Bitmap) // of the second fragment; the first has only the holes
	}{
		{"runs", func(b *roaring64.Bitmap) { b.AddRange(1<<32, 1<<32|rows); b.RunOptimize() }},
		{"bitmaps", func(b *roaring64.Bitmap) {
			for o := uint64(0); o < rows; o += 2 {
				b.Add(1<<32 | o)
			}
		}},
		{"arrays", func(b *roaring64.Bitmap) {
			for o := uint64(0); o < rows; o += 997 {
				b.Add(1<<32 | o)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			survivors := roaring64.New()
			survivors.AddRange(0, rows)
			c.shape(survivors)
			for _, h := range holes {
				survivors.Remove(h)
				survivors.Remove(1<<32 | h)
			}
			x := withHistory(t, digests([]uint64{rows, rows}, survivors), treemap(t, survivors), 70_001)
			var asked []string
			var want []answer
			for _, f := range []uint64{0, 1} {
				for _, h := range append(slices.Clone(holes), 0, 1, 131071, rows-1) {
					for o := max(h, 2) - 2; o <= h+2; o++ {
						asked = append(asked, fmt.Sprintf("%d:%d", f, o))
						switch a := f<<32 | o; {
						case o >= rows:
							want = append(want, answer{"out_of_range", ""})
						case !survivors.Contains(a):
							want = append(want, answer{"dropped", ""})
						default:
							rank := survivors.Rank(a) - 1
							want = append(want, answer{"moved", strconv.FormatUint((firstDestination+rank/70_001)<<32|rank%70_001, 10)})
						}
					}
				}
			}
			for i, got := range x.translate(nil, asked...) {
				if got != want[i] {
					t.Errorf("%s: got %v, want %v", asked[i], got, want[i])
				}
			}
		})
	}
}

// Reading a partition's mapping from start to end reads each block of labels once.
func TestR21_EachLabelBlockIsReadOnce(t *testing.T) {
	m, calls := slow(t, testdata.Dataset(t, "tagged/big"))
	sh(t, m.dir, "ls -l latest/fri/transitions/0001 > /dev/null")
	calls()
	sh(t, m.dir, "cat latest/fri/transitions/0001/mapping.csv | wc -l | grep -qx 1000001")
	blocks := 1_000_000/65536 + 1
	n := 0
	for call, times := range calls() {
		if strings.Contains(call, "_fri/") {
			n += times
		}
	}
	// A block takes a read of its labels and one of its counts; opening the file takes a few.
	if limit := 3*blocks + 10; n > limit || n == 0 {
		t.Errorf("%d requests for a row map of %d blocks, at most %d are expected", n, blocks, limit)
	}
	sh(t, m.dir, "cat latest/fri/transitions/0001/scan/inverse.csv | wc -l | grep -qx 950001")
	n = 0
	for call, times := range calls() {
		if strings.Contains(call, "_fri/") {
			n += times
		}
	}
	if limit := 4*blocks + 10; n > limit {
		t.Errorf("inverse.csv: %d requests for a row map of %d blocks, at most %d are expected", n, blocks, limit)
	}
}

func TestR09_UnknownIndexType(t *testing.T) {
	dir := testdata.Copy(t, "legacy/basic")
	edit(t, dir, 5, func(m *pb.Manifest, ix *pb.IndexSection) {
		m.ReaderFeatureFlags = proto.Uint64(m.GetReaderFeatureFlags() | 2) // row ids or addresses? nobody knows
		for _, e := range ix.Indices {
			if e.GetName() != "__lance_frag_reuse" {
				e.IndexDetails.TypeUrl = proto.String("/lance.table.QuantumIndexDetails")
			}
		}
	})
	x := table{t, dir, nil}
	for _, name := range x.ls("latest/indices") {
		if name != "__lance_frag_reuse" {
			ix := x.json("latest/indices/" + name + "/index.json")
			ix.at("domain").is("unknown")
			ix.at("domain_reason").has("Quantum")
		}
	}
	tableOf(t, "legacy/all_types").json("latest/indices/fm_txt_fm/index.json").at("lance").has("FM")
}

// An index over other fragments does not pin a record, old as it may be; a record that no index needs can go.
func TestR17_RecordsThatNoIndexNeeds(t *testing.T) {
	dir := testdata.Copy(t, "legacy/basic")
	x := table{t, dir, nil}
	tr := x.json("latest/fri/status.json").at("transitions", 0)
	tr.at("needed").is("true")
	edit(t, dir, 5, func(_ *pb.Manifest, ix *pb.IndexSection) {
		for _, e := range ix.Indices {
			if e.GetName() != "__lance_frag_reuse" {
				e.FragmentBitmap = []byte{0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 77, 0} // fragment 77 only
			}
		}
	})
	tr = x.json("latest/fri/status.json").at("transitions", 0)
	tr.at("needed").is("false")
	tr.at("trimmable").is("true")
	tr.at("needed_by").is("[]")
}

// Each class of failure has its errno, and the reason is in JSON.
func TestR25_ErrorClasses(t *testing.T) {
	broken := testdata.Copy(t, "tagged/chain")
	maps, err := filepath.Glob(filepath.Join(broken, "_fri", "*", "*"))
	if err != nil || len(maps) != 1 {
		t.Fatal(maps, err)
	}
	write(t, maps[0], bytes.Repeat([]byte("x"), len(read(t, maps[0]))))
	flagged := testdata.Copy(t, "legacy/basic")
	edit(t, flagged, 5, func(m *pb.Manifest, _ *pb.IndexSection) { m.ReaderFeatureFlags = proto.Uint64(1 << 30) })
	for _, c := range []struct {
		name, uri, path string
		want            syscall.Errno
	}{
		{"not found", broken, "versions/4711/version.json", syscall.ENOENT},
		{"corrupt", broken, "latest/fri/transitions/0004/mapping.csv", syscall.EIO},
		{"unsupported", flagged, "latest/fri/scan/composed.csv", syscall.ENOTSUP},
		{"denied", testdata.Dataset(t, "tagged/clone"), "latest/fri/transitions/0001/mapping.csv", syscall.EACCES},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mount(t, c.uri)
			r := command(t, "", "cat", m.path(c.path))
			if r.code == 0 || !strings.Contains(r.stderr, errnoText[c.want]) {
				t.Errorf("%s: %q, want %v", c.path, r.stderr, c.want)
			}
		})
	}
}

// errnoText is how tools of the C library print an errno.
var errnoText = map[syscall.Errno]string{
	syscall.ENOENT: "No such file", syscall.EIO: "Input/output error", syscall.ENOTSUP: "not supported", syscall.EACCES: "Permission denied",
}

// A fragment that two segments of one index cover would be answered twice.
func TestR15_CoveredTwice(t *testing.T) {
	dir := testdata.Copy(t, "legacy/segments")
	x := table{t, dir, nil}
	name := ""
	edit(t, dir, latestVersion(t, dir), func(_ *pb.Manifest, ix *pb.IndexSection) {
		for _, e := range ix.Indices {
			if e.GetName() == "__lance_frag_reuse" || name != "" && e.GetName() != name {
				continue
			}
			name = e.GetName()
			e.FragmentBitmap = []byte{0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0} // fragment 0 in each segment
		}
	})
	before := tableOf(t, "legacy/segments").json("latest/indices/" + name + "/index.json")
	before.at("covered_twice").is("[]")
	segments := x.json("latest/indices/" + name + "/index.json").at("segments").list()
	if len(segments) != 3 {
		t.Fatalf("%d segments", len(segments))
	}
	for _, s := range segments {
		s.at("stored_fragments").is("[0]")
	}
}

func TestR63_HNSWWithDroppedRows(t *testing.T) {
	tableOf(t, "legacy/all_types").json("latest/indices/ivf_hnsw_flat_vec_hf/index.json").at("lance").has("IVF_HNSW")
	if text := tableOf(t, "legacy/all_types_nodel").cat("latest/indices/ivf_hnsw_flat_vec_hf/index.json"); strings.Contains(text, "rows were dropped") {
		t.Error("nothing was dropped here, and yet the graph is said to be out of step")
	}
}
