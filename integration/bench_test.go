package integration

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/nodes"
	"github.com/frifs/frifs/translate"
)

// The benchmarks of whole processes and mounts, and those of the peers, for docs/PERFORMANCE.md. Those of single
// packages lie in the packages.

const mappingPath = "latest/fri/transitions/0001/mapping.csv"

// compacted makes a table with one ordered compaction of random survivors.
func compacted(b *testing.B, fragments int, rows uint64) table {
	b.Helper()
	d, survivors := randomSurvivors(b, fragments, rows)
	return withHistory(b, d, survivors, 10_000_000)
}

// translator opens the newest version of a table as the commands do.
func translator(b *testing.B, dir string) *translate.Translator {
	b.Helper()
	ctx := b.Context()
	st, err := store.OpenURI(ctx, dir, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ds, err := dataset.Open(ctx, st, dataset.Options{})
	if err != nil {
		b.Fatal(err)
	}
	tree, err := nodes.New(ctx, nodes.Config{Dataset: ds})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(tree.Close)
	tr, _, err := tree.Translator(ctx, nil)
	if err != nil {
		b.Fatal(err)
	}
	return tr
}

// BenchmarkPeersTranslate translates the same addresses with frifs and with the official reader, in batches of 65,536:
// 100 M rows in 10 fragments, one ordered compaction.
func BenchmarkPeersTranslate(b *testing.B) {
	const batch, fragments, rows = 65536, 10, 10_000_000 / 64 * 64
	x := compacted(b, fragments, rows)
	tr := translator(b, x.dir)
	rng := rand.New(rand.NewPCG(9, 9))
	ordered, spread := make([][]fri.RowAddr, 64), make([][]fri.RowAddr, 64)
	for i := range ordered {
		for j := range batch {
			ordered[i] = append(ordered[i], fri.RowAddr(i*batch+j))
			spread[i] = append(spread[i], fri.Addr(fri.FragID(rng.IntN(fragments)), uint32(rng.IntN(rows))))
		}
	}
	for _, c := range []struct {
		name    string
		batches [][]fri.RowAddr
	}{{"in_order", ordered}, {"random", spread}} {
		b.Run("frifs/"+c.name, func(b *testing.B) {
			r := translate.Results{New: make([]fri.RowAddr, batch), Outcome: make([]translate.Outcome, batch)}
			run := func(batches [][]fri.RowAddr) {
				for _, addrs := range batches {
					if err := tr.Translate(context.Background(), addrs, &r); err != nil {
						b.Fatal(err)
					}
				}
			}
			run(c.batches) // blocks are cached, as with the peer
			n := 0
			for b.Loop() {
				run(c.batches)
				n += len(c.batches) * batch
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Maddr/s")
		})
	}
	peers(b, "Maddr/s", "remap_row_addrs", "remap", x.dir, fmt.Sprint(rows), fmt.Sprint(fragments))
}

// peers runs a part of integration/py/peers.py once and reports each of its figures as a benchmark.
func peers(b *testing.B, unit, name string, args ...string) {
	var out string
	for line := range strings.Lines(python(b, "", "peers.py", args...)) {
		out += line
		var what string
		var figure float64
		if _, err := fmt.Sscan(line, &what, &figure); err != nil {
			b.Fatalf("%q: %v", line, err)
		}
		b.Run(name+"/"+what, func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(figure/1e6, unit)
		})
	}
}

// BenchmarkPeersCSV writes a mapping of 10 M rows: frifs from the record, the peers from a table in memory.
func BenchmarkPeersCSV(b *testing.B) {
	x := compacted(b, 10, 1_000_000/64*64)
	b.Run("frifs_cat", func(b *testing.B) { catBench(b, x.dir) })
	arrow := filepath.Join(b.TempDir(), "mapping.arrow")
	f, err := os.Create(arrow)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe, "cat", x.dir, strings.TrimSuffix(mappingPath, "csv")+"arrow")
	cmd.Stdout = f
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	peers(b, "MB/s", "write_csv", "csv", arrow, b.TempDir())
}

// catBench times `frifs cat` of a mapping into /dev/null, start of the process included.
func catBench(b *testing.B, dir string) {
	b.Helper()
	var size int64
	if _, err := fmt.Sscan(command(b, "", "sh", "-c", `"$0" cat "$1" "$2" | wc -c`, exe, dir, mappingPath).stdout, &size); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	measured(b, "cat", dir, mappingPath)
}

// BenchmarkCat reads mappings of real size in one process.
func BenchmarkCat(b *testing.B) {
	b.Run("ordered_100M", func(b *testing.B) { x := compacted(b, 10, 10_000_000/64*64); catBench(b, x.dir) })
	b.Run("partition_1M", func(b *testing.B) { catBench(b, testdata.Dataset(b, "tagged/big")) })
}

// BenchmarkCat1e9 reads 4 GB from the middle of a mapping of 1e9 rows with a bitmap of 125 MB, and reports the memory.
func BenchmarkCat1e9(b *testing.B) {
	x := compacted(b, 1000, 1_000_000/64*64)
	const n = 4 << 30
	b.SetBytes(n)
	measured(b, "cat", "--offset", "20000000000", "--length", fmt.Sprint(n), x.dir, mappingPath)
}

// measured runs frifs with its output into /dev/null and reports its peak of memory.
func measured(b *testing.B, args ...string) {
	b.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	peak := 0.0
	for b.Loop() {
		cmd := exec.Command(exe, args...)
		cmd.Stdout = null
		p, err := runMeasured(cmd)
		if err != nil {
			b.Fatal(err)
		}
		peak = max(peak, p)
	}
	b.ReportMetric(peak, "MiB-peak")
}

// runMeasured runs a process and returns the peak of its resident memory in MiB. What wait tells would not do: it
// includes the memory of the process that started it.
func runMeasured(cmd *exec.Cmd) (peak float64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil {
			for line := range strings.Lines(string(b)) {
				var kib float64
				if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kib); err == nil {
					peak = max(peak, kib/1024)
				}
			}
		}
		select {
		case err := <-done:
			return peak, err
		case <-tick.C:
		}
	}
}

// BenchmarkMountCat reads a mapping of 10 M rows through a fresh mount, in reads of 1 MiB.
func BenchmarkMountCat(b *testing.B) {
	x := compacted(b, 10, 1_000_000/64*64)
	buf := make([]byte, 1<<20)
	var size int64
	for b.Loop() {
		b.StopTimer()
		m := mount(b, x.dir)
		b.StartTimer()
		f, err := os.Open(m.path(mappingPath))
		if err != nil {
			b.Fatal(err)
		}
		if size, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		f.Close()
		m.stop()
		b.StartTimer()
	}
	b.SetBytes(size)
}

// BenchmarkMount mounts a local table and lists its root.
func BenchmarkMount(b *testing.B) {
	needFUSE(b)
	uri := testdata.Dataset(b, "legacy/many_versions")
	var first time.Duration
	n := 0
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), fmt.Sprint(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		m := start(b, dir, exe, "mount", uri, dir)
		for {
			if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
				break
			}
			if m.ended(time.Millisecond) {
				b.Fatal(m.logs)
			}
		}
		first += time.Since(begin)
		b.StopTimer()
		m.stop()
		b.StartTimer()
		n++
	}
	b.ReportMetric(float64(first.Milliseconds())/float64(n), "ms-to-ls")
}
