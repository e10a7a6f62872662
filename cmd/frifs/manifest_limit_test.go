package main

import (
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// A version whose manifest is over the limit is refused by name; the others, and the list of all, are as they were.
func TestMaxManifestBytes(t *testing.T) {
	table := testdata.Dataset(t, "tagged/chain")
	all := must(t, "ls", table, "versions")
	if got := must(t, "ls", "--max-manifest-bytes", "600", table, "versions"); got != all {
		t.Errorf("versions are %q, want %q", got, all)
	}
	refused := 0
	for _, v := range strings.Fields(all) {
		switch r := frifs(t, "", "cat", "--max-manifest-bytes", "600", table, "versions/"+v+"/version.json"); {
		case r.code == 0:
		case r.code != 1 || !strings.Contains(r.stderr, "the limit is 600"):
			t.Errorf("version %s: exit %d, %s", v, r.code, r.stderr)
		default:
			refused++
		}
	}
	if n := len(strings.Fields(all)); refused == 0 || refused == n {
		t.Errorf("%d of %d versions are refused, want some", refused, n)
	}
}
