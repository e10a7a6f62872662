package main

import (
	"encoding/json"
	"fmt"
	"slices"
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
application. record is the number of the record in the content, as errors and warnings name it.
--format json is the file latest/fri/history.json as it is. Errors and warnings of the history go to
stderr with the table.`,
		Example: `  frifs history /data/t.lance
  frifs history --version 12 --format json /data/t.lance | jq '.errors'`,
		Args: args(1, 1, "URI"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			s, err := t.table(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.close()
			const path = "latest/fri/history.json"
			if format.word == "json" {
				return t.olderVersion(cmd.Context(), s, catFile(cmd.Context(), s.root, path, 0, -1, cmd.OutOrStdout()))
			}
			var h historyDoc
			if err := readJSON(cmd.Context(), s.root, path, &h); err != nil {
				return t.olderVersion(cmd.Context(), s, err)
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
	head := []string{"seq", "id", "form", "kind", "sources", "destinations", "rows_in", "rows_moved", "rows_dropped", "error"}
	// The number of the record in the content, which errors and warnings name, stands next to seq for a person. In CSV
	// it comes last, where it moves no other column.
	sep, place := " ", len(head)
	if format == "table" {
		sep, place = ",", 1
	}
	t := table{head: slices.Insert(head, place, "record")}
	for _, x := range h.Transitions {
		var in, moved, dropped *uint64
		if x.Rows != nil {
			in, moved, dropped = x.Rows.In, x.Rows.Moved, x.Rows.Dropped
		}
		record := ""
		if x.Record != nil {
			record = strconv.Itoa(*x.Record)
		}
		t.add(slices.Insert([]string{
			strconv.Itoa(x.Seq), textOr(x.ID, ""), x.Form, x.Kind, fragmentList(x.Sources, sep), fragmentList(x.Destinations, sep),
			orEmpty(in), orEmpty(moved), orEmpty(dropped), messageOf(x.Error),
		}, place, record)...)
	}
	return t.print(cmd.OutOrStdout(), format)
}
