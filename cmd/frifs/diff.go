package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/nodes"
)

const diffHelp = `Shows what changed from version A to version B: the operations between them, fragments that came, went
or had rows deleted, index segments that came, went or cover other fragments, records of the fragment
reuse index in and out, and schema, configuration, base paths and feature flags.

A and B are numbers of versions, latest, or names of tags. BRANCH:N and BRANCH:latest name a version
of a branch; with --branch the numbers are that branch's. A may be the newer one: then everything
reads the other way round. The exit code is 0 whether anything differs or not.

--format json is the file diff/<A>..<B>/changes.json of the tree, with "operations" at its end: the
versions after the older one up to the newer, null for two branches.`

func newDiffCmd() *cobra.Command {
	var t target
	format := newChoice("table", "json")
	cmd := &cobra.Command{
		Use:   "diff URI A B",
		Short: "Say what changed between two versions",
		Long:  diffHelp,
		Example: `  frifs diff /data/t.lance 12 latest
  frifs diff /data/t.lance v1.0 v1.1                       # tags
  frifs diff /data/t.lance main:12 experiment:latest       # a branch against the main line
  frifs diff --format json /data/t.lance 12 13 | jq '.indices.changed'`,
		Args: args(3, 3, "URI A B"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"version", "tag", "asof"} {
				if cmd.Flags().Changed(name) {
					return usagef("diff: --%s has no meaning here; the versions to compare are A and B", name)
				}
			}
			if err := t.checkSelectors(cmd); err != nil {
				return err
			}
			branch := t.branch
			t.branch, cmd.Flags().Lookup("branch").Changed = "", false // it would pin the tree to one version
			s, err := t.table(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.close()
			pair := "diff/" + versionName(branch, args[1]) + ".." + versionName(branch, args[2])
			d := differ{ctx: cmd.Context(), root: s.root, path: pair + "/changes.json", stderr: cmd.ErrOrStderr()}
			if format.word == "json" {
				return d.json(cmd.OutOrStdout())
			}
			return d.table(cmd.OutOrStdout())
		}),
	}
	t.flags(cmd)
	for _, name := range []string{"version", "tag", "asof"} {
		_ = cmd.Flags().MarkHidden(name) // they are there
	}
	cmd.Flags().Lookup("branch").Usage = "numbers and latest are versions of branch `NAME`"
	cmd.Flags().Var(format, "format", "`form` of the output: table or json")
	return cmd
}

// versionName is what the tree calls a version in diff/. Without a branch in it, it is one of branch.
func versionName(branch, name string) string {
	if i := strings.LastIndexByte(name, ':'); i > 0 {
		return nodes.EncodeName(name[:i]) + ":" + nodes.EncodeName(name[i+1:])
	}
	_, err := strconv.ParseUint(name, 10, 64)
	if branch != "" && (err == nil || name == "latest") {
		return nodes.EncodeName(branch) + ":" + name
	}
	return nodes.EncodeName(name)
}

// differ shows a comparison that the tree makes.
type differ struct {
	ctx    context.Context
	root   nodes.Dir
	path   string
	stderr io.Writer
}

// sideDoc is one of the two versions.
type sideDoc struct {
	Version    uint64  `json:"dataset_version"`
	Path       string  `json:"path"`
	Branch     *string `json:"branch"`
	Time       *string `json:"timestamp"`
	Rows       *uint64 `json:"rows"`
	Fragments  uint64  `json:"fragments"`
	Indices    uint64  `json:"indices"`
	DataBytes  *uint64 `json:"data_bytes"`
	Writer     *string `json:"writer"`
	Storage    *string `json:"storage_version"`
	StableRows bool    `json:"stable_row_ids"`
}

// operation is a version between the two.
type operation struct {
	Version   uint64  `json:"version"`
	Time      *string `json:"time"`
	Operation *string `json:"operation"`
	Rows      *uint64 `json:"rows"`
	Error     *string `json:"error"`
}

// operations gives the versions after the older of two up to the newer, in order; none for two branches.
func (d *differ) operations(from, to *sideDoc, give func(operation) error) error {
	dir := path.Dir(from.Path)
	if dir != path.Dir(to.Path) {
		return nil
	}
	numbers, err := versionNumbersIn(d.ctx, d.root, dir)
	if err != nil {
		return err
	}
	lo, hi := min(from.Version, to.Version), max(from.Version, to.Version)
	var between []uint64
	for _, n := range numbers {
		if lo < n && n <= hi {
			between = append(between, n)
		}
	}
	bar := newProgress(d.stderr, "versions", len(between))
	defer bar.done()
	return inOrder(len(between), versionsAtOnce, func(i int) operation {
		var v struct {
			Timestamp, Operation *string
			Rows                 *uint64
		}
		out := operation{Version: between[i]}
		err := readJSON(d.ctx, d.root, dir+"/"+strconv.FormatUint(between[i], 10)+"/version.json", &v)
		if err != nil {
			text := plain(err)
			out.Error = &text
			return out
		}
		out.Time, out.Operation, out.Rows = v.Timestamp, v.Operation, v.Rows
		return out
	}, func(_ int, o operation) error {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		bar.step()
		return give(o)
	})
}

// versionsAtOnce is how many versions are read at a time.
const versionsAtOnce = 8

// json prints the document of the tree, and the operations at its end.
func (d *differ) json(out io.Writer) error {
	var from, to sideDoc
	if err := scanDoc(d.ctx, d.root, d.path, members{"from": into(&from), "to": into(&to)}); err != nil {
		return err
	}
	const end = "\n}\n"
	w := &heldBack{out: out, n: len(end)}
	if err := catFile(d.ctx, d.root, d.path, 0, -1, w); err != nil {
		return err
	}
	var b bytes.Buffer
	if path.Dir(from.Path) != path.Dir(to.Path) {
		b.WriteString(",\n  \"operations\": null" + end)
		_, err := out.Write(b.Bytes())
		return err
	}
	b.WriteString(",\n  \"operations\": [")
	first := true
	err := d.operations(&from, &to, func(o operation) error {
		line, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.WriteString("\n    ")
		b.Write(line)
		_, err = b.WriteTo(out)
		return err
	})
	if err != nil {
		return err
	}
	if !first {
		b.WriteString("\n  ")
	}
	b.WriteString("]" + end)
	_, err = out.Write(b.Bytes())
	return err
}

// heldBack passes on all but the last n bytes.
type heldBack struct {
	out  io.Writer
	n    int
	held []byte
}

// Write implements io.Writer.
func (w *heldBack) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	if k := len(w.held) - w.n; k > 0 {
		if _, err := w.out.Write(w.held[:k]); err != nil {
			return 0, err
		}
		w.held = append(w.held[:0], w.held[k:]...)
	}
	return len(p), nil
}
