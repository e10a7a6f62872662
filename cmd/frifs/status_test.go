package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestCapNames(t *testing.T) {
	tests := []struct {
		names []string
		width int
		want  string
	}{
		{nil, 5, ""},
		{[]string{"a", "b", "c"}, 5, "a b c"},
		{[]string{"a", "b", "c", "d"}, 5, "a b c … and 1 more"},
		{[]string{"é", "ü", "ö"}, 5, "é ü ö"},
		{[]string{"much_too_long"}, 5, "much_too_long"},
		{[]string{"much_too_long", "b", "c"}, 5, "much_too_long … and 2 more"},
	}
	for _, tc := range tests {
		if got := capNames(tc.names, tc.width); got != tc.want {
			t.Errorf("%v in %d: got %q, want %q", tc.names, tc.width, got, tc.want)
		}
	}
}

// TestStatusOrder has the verdict and an error of the history above the records, and what writers refuse below them.
func TestStatusOrder(t *testing.T) {
	var names []string
	for range 40 {
		names = append(names, `{"index": "index_`+strings.Repeat("x", len(names))+`"}`)
	}
	var s statusDoc
	err := json.Unmarshal([]byte(`{"dataset_version": 7, "present": true, "transitions_total": 1, "pending": 1, "due_by_count": true,
		"transitions": [{"seq": 1, "id": "abc", "needed": true, "needed_by": [`+strings.Join(names, ",")+`], "since": {"version": 3, "age": "exact"}}],
		"writer_rules": [{"rule": "r", "refuses": "compaction", "why": "because"}]}`), &s)
	if err != nil {
		t.Fatal(err)
	}
	history := []json.RawMessage{[]byte(`{"record": 3, "message": "it is empty"}`), []byte(`"more"`)}
	show := func(format string) string {
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		if err := s.print(cmd, format, history); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	got, at := show("table"), 0
	for _, want := range []string{
		"version 7: 1 record, 1 pending", "catching up is due", "2 errors in the history (see frifs history), the first: record 3: it is empty\n",
		"\nseq", "since_is", " … and 34 more ", "exact", "\n\nwriters refuse: compaction: because\n",
	} {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("no %q at its place in:\n%s", want, got)
		}
		at += i
	}
	if csv := show("csv"); strings.Contains(csv, "more") || strings.Count(csv, "index_") != 40 || !strings.Contains(csv, ",since,age,note\n") {
		t.Errorf("csv is cut:\n%s", csv)
	}
}
