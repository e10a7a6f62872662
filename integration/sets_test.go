package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Official Lance reads the remapped sets of every kind of index and file version, and agrees with each address: its own
// translation of the stored ones gives the same, and so do the rows.
func TestOfficialLanceReadsRemappedSets(t *testing.T) {
	dir := t.TempDir()
	python(t, "", "make_sets.py", dir)
	var jobs strings.Builder
	var names []string
	for _, table := range []string{"big", "small20", "small21", "small22", "small23"} {
		uri := filepath.Join(dir, table+".lance")
		for _, index := range strings.Fields(frifs(t, "ls", uri, "latest/indices")) {
			index = strings.TrimSuffix(index, "/")
			for _, kind := range []string{"BITMAP", "LABEL_LIST", "NGRAM", "RTREE"} {
				if !strings.HasPrefix(index, strings.ToLower(kind)+"_") {
					continue
				}
				file := map[string]string{"NGRAM": "ngram_postings.lance", "RTREE": "nulls.lance"}[kind]
				if file == "" {
					file = "bitmap_page_lookup.lance"
				}
				job := map[string]string{"table": uri, "index": index, "kind": kind}
				segment := segmentOf(t, uri, index)
				for _, side := range []string{"stored", "remapped"} {
					job[side] = filepath.Join(dir, table+"-"+index+"-"+side+".lance")
					content := frifs(t, "cat", uri, segment+"/"+side+"/"+file)
					if err := os.WriteFile(job[side], []byte(content), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				line, err := json.Marshal(job)
				if err != nil {
					t.Fatal(err)
				}
				jobs.Write(append(line, '\n'))
				names = append(names, table+"/"+index)
			}
		}
	}
	if len(names) != 1+4*4 {
		t.Fatalf("%d indices: %v", len(names), names)
	}
	answers := strings.Split(strings.TrimSpace(python(t, jobs.String(), "check_sets.py")), "\n")
	if len(answers) != len(names) {
		t.Fatalf("%d answers for %d indices", len(answers), len(names))
	}
	for i, line := range answers {
		var a struct {
			Sets, Members int
			Faults        []string
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Faults {
			t.Errorf("%s: %s", names[i], f)
		}
		if a.Sets == 0 || a.Members == 0 && names[i] != "small20/rtree_pt" { // 2.0 has no null structs
			t.Errorf("%s: %d sets with %d members", names[i], a.Sets, a.Members)
		}
	}
}

// segmentOf is the folder of the only segment of an index in the latest version.
func segmentOf(t testing.TB, uri, index string) string {
	t.Helper()
	for _, name := range strings.Fields(frifs(t, "ls", uri, "latest/indices/"+index)) {
		if name = strings.TrimSuffix(name, "/"); len(name) == 36 {
			return "latest/indices/" + index + "/" + name
		}
	}
	t.Fatalf("no segment of %s in %s", index, uri)
	return ""
}
