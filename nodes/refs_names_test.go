package nodes

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
)

// TestBranchesNamedLikeTheMainLine: such a branch would hold the main line, which holds the branches, and so itself.
func TestBranchesNamedLikeTheMainLine(t *testing.T) {
	m := makeTable(t)
	m.version(1, nil)
	m.file("_refs/branches/main.json", `{"parentVersion":1}`)
	m.file("_refs/branches/.json", `{"parentVersion":1}`)
	m.branch("b", 1)
	m.branch("main", 1)
	m.file("_refs/branches/b.json", `{"parentVersion":1}`)
	tr := m.tree(nil)
	if got, want := names(t, tr, "branches"), []string{"%", "b", "main"}; !slices.Equal(got, want) {
		t.Errorf("branches %q, want %q", got, want)
	}
	for _, name := range []string{"%", "main"} {
		if got := names(t, tr, "branches/"+name); !slices.Equal(got, []string{"ERROR.json"}) {
			t.Errorf("branches/%s holds %q, want ERROR.json", name, got)
		}
		if text := string(cat(t, tr, "branches/"+name+"/ERROR.json")); !strings.Contains(text, "stands for the main line") {
			t.Errorf("branches/%s: %s", name, text)
		}
		if _, err := Resolve(t.Context(), tr.Root(), "branches/"+name+"/versions"); !fault.Is(err, fault.Corrupt) {
			t.Errorf("branches/%s/versions: %v, want corrupt", name, err)
		}
	}
	err := fs.WalkDir(FS(tr.Root()), "branches", func(path string, _ fs.DirEntry, err error) error {
		if strings.Count(path, "/branches/") > 0 {
			t.Fatalf("%s: branches in a branch", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	doc := decode[struct {
		Refs []struct {
			Name  string
			Error *struct{ Kind string }
		} `json:"branch_refs"`
	}](t, tr, "dataset.json")
	for _, r := range doc.Refs {
		if bad := r.Error != nil; bad != (r.Name != "b") {
			t.Errorf("dataset.json: branch %q has error %+v", r.Name, r.Error)
		}
	}
}
