package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func newHistoryCmd() *cobra.Command {
	var t target
	format := newChoice("table", "json", "csv")
	cmd := &cobra.Command{
		Use:   "history URI",
		Short: "Show the recorded rewrites of a version",
		Long: `Shows the fragment reuse index of a version: one line for each recorded rewrite, in the order of
application. --format json is the file latest/fri/history.json as it is. Errors and warnings of the
history go to stderr with the table.`,
		Example: `  frifs history /data/t.lance
  frifs history --version 12 --format json /data/t.lance | jq '.errors'`,
		Args: args(1, 1, "URI"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			root, done, err := t.open(cmd, args[0])
			if err != nil {
				return err
			}
			defer done()
			const path = "latest/fri/history.json"
			if format.word == "json" {
				return catFile(cmd.Context(), root, path, 0, -1, cmd.OutOrStdout())
			}
			var h historyDoc
			if err := readJSON(cmd.Context(), root, path, &h); err != nil {
				return err
			}
			return h.print(cmd, format.word)
		}),
	}
	t.flags(cmd)
	cmd.Flags().Var(format, "format", "`form` of the output: table, json or csv")
	return cmd
}

// historyDoc is what the command needs of history.json.
type historyDoc struct {
	DatasetVersion uint64 `json:"dataset_version"`
	Present        bool
	Tagged         *bool
	IndexVersion   *int64 `json:"index_version"`
	Warnings       []json.RawMessage
	Errors         []json.RawMessage
	Transitions    []struct {
		Seq          int
		Record       *int
		ID           *string
		Form, Kind   string
		Sources      []fragmentDoc
		Destinations []fragmentDoc
		Rows         *struct{ In, Moved, Dropped *uint64 }
		Error        json.RawMessage
	}
}

type fragmentDoc struct{ Fragment uint64 }

func fragmentList(list []fragmentDoc, sep string) string {
	out := make([]string, len(list))
	for i, f := range list {
		out[i] = strconv.FormatUint(f.Fragment, 10)
	}
	return strings.Join(out, sep)
}

// messageOf shows an error or warning of a document: a text, or an object with a message.
func messageOf(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct {
		Message string
		Record  *int
	}
	if json.Unmarshal(raw, &o) == nil && o.Message != "" {
		if o.Record != nil && *o.Record > 0 {
			return fmt.Sprintf("record %d: %s", *o.Record, o.Message)
		}
		return o.Message
	}
	return string(raw)
}

func (h *historyDoc) print(cmd *cobra.Command, format string) error {
	if format == "table" {
		for _, e := range h.Errors {
			fmt.Fprintln(cmd.ErrOrStderr(), "error:", messageOf(e))
		}
		for _, w := range h.Warnings {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", messageOf(w))
		}
		if !h.Present {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "version %d has no fragment reuse index\n", h.DatasetVersion)
			return err
		}
	}
	t := table{head: []string{"seq", "id", "form", "kind", "sources", "destinations", "rows_in", "rows_moved", "rows_dropped", "error"}}
	sep := " "
	if format == "table" {
		sep = ","
	}
	for _, x := range h.Transitions {
		var in, moved, dropped *uint64
		if x.Rows != nil {
			in, moved, dropped = x.Rows.In, x.Rows.Moved, x.Rows.Dropped
		}
		t.add(strconv.Itoa(x.Seq), textOr(x.ID, ""), x.Form, x.Kind, fragmentList(x.Sources, sep), fragmentList(x.Destinations, sep),
			orEmpty(in), orEmpty(moved), orEmpty(dropped), messageOf(x.Error))
	}
	return t.print(cmd.OutOrStdout(), format)
}
