package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// Advice for vector indices with a graph is given for those, and not for others, with --quick too; where the files are
// gone it is given with its condition.
func TestAdviceKnowsTheKindOfAnIndex(t *testing.T) {
	table := testdata.Copy(t, "legacy/all_types")
	advice := func(args ...string) (sure, unsure []string) {
		for _, f := range verify(t, append(args, "--version", "29", table)...).Findings {
			if f.Check != "advice" {
				continue
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(f.Message, `index "`), `"`)
			switch {
			case strings.Contains(f.Message, "if this is an IVF_HNSW"):
				unsure = append(unsure, name)
			case strings.Contains(f.Message, "it is an IVF_HNSW_"):
				sure = append(sure, name)
			}
		}
		return sure, unsure
	}
	const want = "ivf_hnsw_flat_vec_hf ivf_hnsw_pq_vec_hpq ivf_hnsw_sq_vec_hsq"
	for _, args := range [][]string{nil, {"--quick"}} {
		if sure, unsure := advice(args...); strings.Join(sure, " ") != want || len(unsure) > 0 {
			t.Errorf("%v: %v and perhaps %v, want %s", args, sure, unsure, want)
		}
	}
	segment := strings.TrimSpace(must(t, "ls", table, "versions/29/indices/ivf_pq_vec_pq"))
	segment = strings.Fields(segment)[0]
	if err := os.RemoveAll(filepath.Join(table, "_indices", segment)); err != nil {
		t.Fatal(err)
	}
	if sure, unsure := advice("--quick"); strings.Join(sure, " ") != want || strings.Join(unsure, " ") != "ivf_pq_vec_pq" {
		t.Errorf("without the files of an index: %v and perhaps %v", sure, unsure)
	}
}

// Versions that differ in nothing but the name of their manifest are one finding; that of one version names it.
func TestFindingsThatNameTheManifest(t *testing.T) {
	table := testdata.Copy(t, "tagged/chain")
	for _, v := range []uint64{4, 5, 6, 9} {
		if err := os.WriteFile(manifestOf(t, table, v), []byte("nonsense of some length"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v := verify(t, "--quick", "--level", "error", table)
	if got := v.brief("error"); len(v.Findings) != 1 || got[0] != "manifest [[4 6] [9 9]]" || !strings.Contains(v.Findings[0].Message, "/_versions/*.manifest") {
		t.Errorf("%+v", v.Findings)
	}
	v = verify(t, "--quick", "--level", "error", "--version", "5", table)
	if len(v.Findings) != 1 || !strings.Contains(v.Findings[0].Message, filepath.Base(manifestOf(t, table, 5))) {
		t.Errorf("of one version: %+v", v.Findings)
	}
	const other = "see /t/_versions/7.manifest"
	if got := withoutManifest(other+", /t/_versions/18446744073709551607.manifest", 8); got != other+", /t/_versions/*.manifest" {
		t.Errorf("got %q", got)
	}
}
