package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// TestRecordsOfLines checks that what is said in lines becomes one record of a JSON log each.
func TestRecordsOfLines(t *testing.T) {
	var out bytes.Buffer
	w := recordWriter{slog.New(slog.NewJSONHandler(&out, nil))}
	for _, text := range []string{"frifs: one\nfrifs: warning: two \"x\"\n", "three\n", "\n", "fri\tfs: fo\x01ur"} {
		if n, err := fmt.Fprint(w, text); n != len(text) || err != nil {
			t.Fatalf("%q: %d, %v", text, n, err)
		}
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		var r struct{ Level, Msg, Time string }
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Time == "" {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, r.Level+" "+r.Msg)
	}
	want := "INFO one|WARN two \"x\"|INFO three|INFO fri\tfs: fo\x01ur"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOmissionsThatNameNothing(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	names := strings.Fields(must(t, "ls", chain, "versions/29/indices"))
	if len(names) == 0 {
		t.Fatal("the dataset has no index")
	}
	for _, tc := range []struct{ omit, path, says string }{
		{names[0], "latest/fri/history.json", ""},
		{"BTree", "latest/fri/history.json", ""},
		{names[0] + ",fts_nothing", "latest/fri/history.json", `"fts_nothing"`},
		{"no such", "versions/12/version.json", `version 12 has no index of the name or type "no such"`},
		{"no such", "README.txt", "the newest version shown has no index"},
	} {
		r := frifs(t, "", "export", "--omit-index", tc.omit, chain, tc.path, t.TempDir()+"/x")
		if r.code != 0 || strings.Contains(r.stderr, "warning") != (tc.says != "") || !strings.Contains(r.stderr, tc.says) || strings.Count(r.stderr, "warning") > 1 {
			t.Errorf("%s of %s: exit %d, %q", tc.omit, tc.path, r.code, r.stderr)
		}
	}
}
