package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// queryKinds are the queries of integration/py/bench_remapped.py.
var queryKinds = []string{"btree", "btree_range", "bitmap", "text", "vector"}

// chained makes the table of integration/py/bench_remapped.py with so many deferred compactions.
func chained(b *testing.B, rows, steps int) string {
	b.Helper()
	dir := b.TempDir()
	python(b, "", "bench_remapped.py", "make", dir, fmt.Sprint(rows), fmt.Sprint(steps))
	return filepath.Join(dir, "table.lance")
}

// timings runs a part of bench_remapped.py.
func timings[T any](b *testing.B, args ...string) (v T) {
	b.Helper()
	if err := json.Unmarshal([]byte(python(b, "", "bench_remapped.py", args...)), &v); err != nil {
		b.Fatal(err)
	}
	return v
}

// BenchmarkRemappedQueries runs indexed queries of the official reader on the mounted remapped.lance and, in turn, on the
// original through its own fragment reuse index: a table of one million rows after one and after six compactions.
//
//   - warm: a query on an open dataset;
//   - reopened: an open and a query in the same process, so that only the page cache is warm;
//   - cold: an open and a query in a fresh process through a fresh mount, with empty page caches where this process may
//     empty them.
//
// The figures are milliseconds; "ratio" is remapped to original.
func BenchmarkRemappedQueries(b *testing.B) {
	needFUSE(b)
	for _, steps := range []int{1, 6} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			table := chained(b, 1_000_000, steps)
			m := mount(b, table)
			remapped := m.path("latest/remapped.lance")
			for _, kind := range queryKinds {
				type pair [2]float64
				report := func(b *testing.B, p pair) {
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(1e3*p[0], "ms-original")
					b.ReportMetric(1e3*p[1], "ms-remapped")
					b.ReportMetric(p[1]/p[0], "ratio")
				}
				warm := timings[struct {
					Query, Reopened pair
					Same            bool
				}](b, "warm", table, remapped, kind, "40")
				if !warm.Same {
					b.Fatalf("%s: the answers differ", kind)
				}
				b.Run(kind+"/warm", func(b *testing.B) { report(b, warm.Query) })
				b.Run(kind+"/reopened", func(b *testing.B) { report(b, warm.Reopened) })
				b.Run(kind+"/cold", func(b *testing.B) { report(b, coldQueries(b, table, kind)) })
			}
			b.Run("memory", func(b *testing.B) {
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(peakMemory(b, m), "MiB-peak")
			})
		})
	}
}

// coldQueries gives the medians of an open with the first query, on the original and through mounts of its own.
func coldQueries(b *testing.B, table, kind string) (took [2]float64) {
	b.Helper()
	const turns = 5
	var all [2][]float64
	for range turns {
		for side := range all {
			path := table
			var m *mounted
			if side == 1 {
				m = mount(b, table)
				path = m.path("latest/remapped.lance")
			}
			dropCaches(b)
			c := timings[struct{ Open, First float64 }](b, "cold", path, kind)
			all[side] = append(all[side], c.Open+c.First)
			if m != nil {
				m.stop()
			}
		}
	}
	for side := range all {
		slices.Sort(all[side])
		took[side] = all[side][turns/2]
	}
	return took
}

// dropCaches empties the page cache where this process may.
func dropCaches(b *testing.B) {
	b.Helper()
	if os.Geteuid() != 0 {
		return
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0o200); err != nil {
		b.Logf("the page cache stays: %v", err)
	}
}

// peakMemory is the peak of a mount's resident memory in MiB.
func peakMemory(b *testing.B, m *mounted) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	b.Fatal("the status has no VmHWM")
	return 0
}

// BenchmarkMountRemapped reads the remapped page data of a B-tree of one million rows through fresh mounts, in reads of
// 1 MiB: open to end, translation included.
func BenchmarkMountRemapped(b *testing.B) {
	table := chained(b, 1_000_000, 1)
	buf := make([]byte, 1<<20)
	var size int64
	for b.Loop() {
		b.StopTimer()
		m := mount(b, table)
		files, err := filepath.Glob(m.path("latest/remapped.lance/_indices/*/page_data.lance"))
		if err != nil || len(files) != 1 {
			b.Fatal(files, err)
		}
		b.StartTimer()
		f, err := os.Open(files[0])
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
