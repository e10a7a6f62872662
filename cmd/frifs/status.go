package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func newStatusCmd() *cobra.Command {
	var t target
	var check bool
	format := newChoice("table", "json", "csv")
	cmd := &cobra.Command{
		Use:   "status URI",
		Short: "Say which recorded rewrites are still needed, by whom, and whether catching up is due",
		Long: `Shows which records of the fragment reuse index are still needed by which index, by the metadata
of the version, since when they are there, and what they make writers refuse. Catching up is due from
5 pending records, or a day after the oldest came in. --format json is the file latest/fri/status.json
as it is.

With --check the exit code is 3 if catching up is due, or if the history has errors; the reasons are
printed on stderr.`,
		Example: `  frifs status /data/t.lance
  frifs status --check /data/t.lance || echo 'look at it'
  frifs status --format csv /data/t.lance | cut -d, -f1,6`,
		Args: args(1, 1, "URI"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			src, err := t.table(cmd, args[0])
			if err != nil {
				return err
			}
			defer src.close()
			root := src.root
			const path = "latest/fri/status.json"
			var s statusDoc
			if err := readJSON(ctx, root, path, &s); err != nil {
				return t.olderVersion(ctx, src, err)
			}
			var h historyDoc
			if err := readJSON(ctx, root, "latest/fri/history.json", &h); err != nil {
				return err
			}
			if format.word == "json" {
				err = catFile(ctx, root, path, 0, -1, cmd.OutOrStdout())
			} else {
				err = s.print(cmd, format.word, h.Errors)
			}
			if err != nil || !check {
				return err
			}
			if why := s.findings(time.Now(), len(h.Errors)); len(why) > 0 {
				return findings{strings.Join(why, "; ")}
			}
			return nil
		}),
	}
	t.flags(cmd)
	cmd.Flags().Var(format, "format", "`form` of the output: table, json or csv")
	cmd.Flags().BoolVar(&check, "check", false, "exit 3 if catching up is due or the history has errors")
	return cmd
}

// statusDoc is what the command needs of status.json.
type statusDoc struct {
	DatasetVersion uint64 `json:"dataset_version"`
	Present        bool
	Error          json.RawMessage
	Total          int `json:"transitions_total"`
	Pending        *int
	Counts         string `json:"pending_counts"`
	Trimmable      int
	DueByCount     bool    `json:"due_by_count"`
	DueAt          *string `json:"due_at"`
	Transitions    []struct {
		Seq      int
		ID       *string
		Needed   *bool
		NeededBy []struct{ Index string } `json:"needed_by"`
		KeptFor  []int                    `json:"kept_for"`
		Note     *string
		Since    *struct {
			Version uint64
			Time    *string
			Age     string
		}
	}
	WriterRules []struct{ Rule, Refuses, Why string } `json:"writer_rules"`
}

// dueAt is when the oldest pending record asks for catching up; false where that is not known.
func (s *statusDoc) dueAt() (time.Time, bool) {
	if s.DueAt == nil {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, *s.DueAt)
	return t, err == nil
}

// findings are the reasons for exit code 3.
func (s *statusDoc) findings(now time.Time, errors int) []string {
	var out []string
	if m := messageOf(s.Error); m != "" {
		out = append(out, "the fragment reuse index cannot be used: "+m)
	} else if errors > 0 {
		out = append(out, "the history has "+countWord(errors, "error")+" (latest/fri/history.json)")
	}
	if s.DueByCount && s.Pending != nil {
		out = append(out, fmt.Sprintf("catching up is due: %d pending", *s.Pending))
	}
	if at, ok := s.dueAt(); ok && !at.After(now) {
		out = append(out, "catching up is due since "+at.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return out
}

// neededByWidth is how wide the names of indices may get in the table.
const neededByWidth = 60

// capNames joins the names that fit into about width characters, and says how many are left out.
func capNames(names []string, width int) string {
	used := 0
	for i, n := range names {
		used += utf8.RuneCountInString(n) + 1
		if i > 0 && used-1 > width {
			return fmt.Sprintf("%s … and %d more", strings.Join(names[:i], " "), len(names)-i)
		}
	}
	return strings.Join(names, " ")
}

// print prints the status: for a person the verdict, then the records, then what writers refuse; as CSV the records.
func (s *statusDoc) print(cmd *cobra.Command, format string, errors []json.RawMessage) error {
	age, width := "age", math.MaxInt // CSV keeps the name that status.json has
	if format == "table" {
		age, width = "since_is", neededByWidth
	}
	t := table{head: []string{"seq", "id", "needed", "needed_by", "since_version", "since", age, "note"}}
	for _, x := range s.Transitions {
		needed := "unknown"
		if x.Needed != nil {
			needed = "no"
			if *x.Needed {
				needed = "yes"
			}
		}
		var by []string
		seen := map[string]bool{}
		for _, b := range x.NeededBy {
			if !seen[b.Index] {
				seen[b.Index] = true
				by = append(by, b.Index)
			}
		}
		version, since, age := "", "", ""
		if x.Since != nil {
			version, since, age = strconv.FormatUint(x.Since.Version, 10), textOr(x.Since.Time, ""), x.Since.Age
		}
		note := textOr(x.Note, "")
		if len(x.KeptFor) > 0 {
			note = strings.TrimPrefix(note+"; kept for "+joinInts(x.KeptFor), "; ")
		}
		t.add(strconv.Itoa(x.Seq), textOr(x.ID, ""), needed, capNames(by, width), version, since, age, note)
	}
	out := cmd.OutOrStdout()
	if format == "csv" {
		return t.print(out, format)
	}
	var b strings.Builder
	switch m := messageOf(s.Error); {
	case !s.Present:
		fmt.Fprintf(&b, "version %d has no fragment reuse index\n", s.DatasetVersion)
	case m != "":
		fmt.Fprintf(&b, "version %d: the fragment reuse index cannot be used: %s\n", s.DatasetVersion, m)
	default:
		pending := "an unknown number"
		if s.Pending != nil {
			pending = strconv.Itoa(*s.Pending)
		}
		fmt.Fprintf(&b, "version %d: %s, %s pending (%s), %d trimmable\n", s.DatasetVersion, countWord(s.Total, "record"),
			pending, strings.ReplaceAll(s.Counts, "_", " "), s.Trimmable)
		switch at, ok := s.dueAt(); {
		case s.DueByCount:
			b.WriteString("catching up is due: by number of pending records\n")
		case ok && !at.After(time.Now()):
			fmt.Fprintf(&b, "catching up is due: since %s\n", *s.DueAt)
		case ok:
			fmt.Fprintf(&b, "catching up will be due at %s\n", *s.DueAt)
		}
	}
	if len(errors) > 0 {
		fmt.Fprintf(&b, "%s in the history (see frifs history), the first: %s\n", countWord(len(errors), "error"), messageOf(errors[0]))
	}
	if len(t.rows) > 0 {
		b.WriteByte('\n')
		if err := t.print(&b, format); err != nil {
			return err
		}
	}
	for i, r := range s.WriterRules {
		if i == 0 && len(t.rows) > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "writers refuse: %s: %s\n", r.Refuses, r.Why)
	}
	_, err := fmt.Fprint(out, b.String())
	return err
}

func joinInts(list []int) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = strconv.Itoa(n)
	}
	return strings.Join(out, ",")
}
