package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

const verifyHelp = `Runs every check on every retained version of the main line, of all branches and of all detached
versions (of every table, if URI is a database), and prints what it finds. It never stops at a finding.
With a selector only the version that it names is checked.

  error    something is missing, damaged or cannot be told: manifests and transactions that do not read,
           files that are missing or have another size than recorded, records of the fragment reuse
           index that cannot be used or went while they were needed, mappings that do not read to their
           end, index files that do not, addresses in them that cannot be followed
  warning  something is odd, or left behind: warnings of the history, index entries that name rows of
           fragments that are gone, fragments covered twice, an index that came back, tags of versions
           that were cleaned up, directories that no version names (of 7 days and older)
  advice   what a version means for Lance itself: releases that fail on it, or answer wrongly

The exit code is 0 if nothing of the --level was found, 3 if something was, and 1 if there was nothing
to check. Index files are read whole, and each file of a version is asked for; --quick leaves out both
and reads metadata only (of an index file no more than it takes to tell what kind of index it is).
What is found in versions that follow each other is one line.`

func newVerifyCmd() *cobra.Command {
	var t target
	var quick bool
	format, level := newChoice("table", "json"), newChoice(levelAdvice, levelWarning, levelError)
	cmd := &cobra.Command{
		Use:   "verify URI",
		Short: "Check every version, and say what is missing, damaged, odd or left behind",
		Long:  verifyHelp,
		Example: `  frifs verify /data/t.lance
  frifs verify --quick --level error s3://bucket/t.lance || echo 'look at it'
  frifs verify --version 12 --format json /data/t.lance | jq '.findings[] | select(.check == "missing_file")'`,
		Args: args(1, 1, "URI"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			s, err := t.source(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.close()
			v := &verifier{
				ctx: cmd.Context(), root: s.root, tree: s.tree, quick: quick, stderr: cmd.ErrOrStderr(), rows: map[string]*rowsRead{},
				report: &verifyReport{URI: s.uri, Quick: quick, level: level.word},
			}
			if err := v.all(t.pinned()); err != nil {
				return err
			}
			if err := v.report.write(cmd.OutOrStdout(), format.word); err != nil {
				return err
			}
			if text := v.report.summary(); text != "" {
				return findings{text}
			}
			return nil
		}),
	}
	t.flags(cmd)
	t.treeFlags(cmd)
	for _, name := range []string{"for-reader", "omit-index"} { // they change nothing that is checked
		_ = cmd.Flags().MarkHidden(name) // they are there
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "read metadata only: neither index files nor mappings, and ask for no file")
	cmd.Flags().Var(level, "level", "least `level` that is shown and counts: advice, warning or error")
	cmd.Flags().Var(format, "format", "`form` of the output: table or json")
	return cmd
}

// verifier checks a tree: it reads the files in which the tree says what it knows.
type verifier struct {
	ctx    context.Context
	root   nodes.Dir
	quick  bool
	stderr io.Writer
	report *verifyReport
	rows   map[string]*rowsRead // of records whose mappings have been read, by id; only touched between versions
	tree   *nodes.Tree
	kinds  sync.Map // uuid of a segment of a vector index → what kind it is (string), in all versions
}

// all checks whatever the root of the tree is.
func (v *verifier) all(pinned bool) error {
	var kind struct{ Kind string }
	if err := readJSON(v.ctx, v.root, "dataset.json", &kind); err != nil && !fault.Is(err, fault.Corrupt) {
		return err
	}
	if kind.Kind != "database" {
		return v.dataset("", pinned)
	}
	tables, err := v.names("tables")
	if err != nil {
		return err
	}
	for _, name := range tables {
		if err := v.dataset("tables/"+name+"/", false); err != nil {
			return err
		}
	}
	return nil
}

// names lists a directory.
func (v *verifier) names(path string) ([]string, error) {
	n, err := nodes.Resolve(v.ctx, v.root, path)
	if err != nil {
		return nil, err
	}
	dir, ok := n.(nodes.Dir)
	if !ok {
		return nil, fault.New("verify", path, fault.Corrupt, "is no directory")
	}
	es, err := dir.Entries(v.ctx)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.Name
	}
	return out, nil
}

// dataset checks what is below prefix, the root of a dataset with its branches.
func (v *verifier) dataset(prefix string, pinned bool) error {
	var refs []string
	if pinned {
		// tags and branches are beside the one version that is meant
	} else {
		refs = v.refs(prefix)
	}
	for _, dir := range append([]string{prefix}, refs...) {
		if err := v.line(dir); err != nil {
			return err
		}
	}
	if prefix == "" && !pinned && !v.quick {
		v.orphans()
	}
	return v.ctx.Err()
}

// refs checks what dataset.json says of tags and branches, and returns the directories of the branches.
func (v *verifier) refs(prefix string) (branches []string) {
	var doc struct {
		Error *errorDoc
		Tags  []struct {
			Path, Branch string
			Version      *uint64
			Retained     *bool
			Error        *errorDoc
		} `json:"tag_refs"`
		Branches []struct {
			Path  string
			Error *errorDoc
		} `json:"branch_refs"`
	}
	path := prefix + "dataset.json"
	if err := readJSON(v.ctx, v.root, path, &doc); err != nil {
		v.report.note(v.failure("dataset", path, err))
		return nil
	}
	for _, t := range doc.Tags {
		switch {
		case t.Error != nil:
			v.report.note(finding{Level: levelError, Check: "tag", Path: prefix + t.Path, Message: t.Error.text()})
		case t.Retained != nil && !*t.Retained && t.Version != nil:
			where := ""
			if t.Branch != "" {
				where = fmt.Sprintf(" of branch %q", t.Branch)
			}
			v.report.note(finding{Level: levelWarning, Check: "tag", Path: prefix + t.Path, Message: fmt.Sprintf("it names version %d%s, which is not retained", *t.Version, where)})
		}
	}
	for _, b := range doc.Branches {
		if b.Error != nil {
			v.report.note(finding{Level: levelError, Check: "branch", Path: prefix + b.Path, Message: b.Error.text()})
		}
		if names, err := v.names(prefix + b.Path); err == nil && len(names) > 0 {
			branches = append(branches, prefix+b.Path+"/")
		}
	}
	return branches
}

// line checks the versions of the main line or of one branch, and the detached ones there.
func (v *verifier) line(prefix string) error {
	dir := prefix + "versions"
	numbers, err := versionNumbersIn(v.ctx, v.root, dir)
	if err != nil {
		if v.ctx.Err() != nil {
			return err
		}
		if !fault.Is(err, fault.NotFound) || !v.saidBefore(prefix) {
			v.report.note(v.failure("versions", dir, err))
		}
		return nil
	}
	if err := v.versions(prefix, dir, numbers, nil); err != nil {
		return err
	}
	names, err := v.names(prefix + "detached")
	if err != nil {
		return v.ctx.Err() // there are none
	}
	return v.versions(prefix, prefix+"detached", nil, names)
}

// saidBefore reports whether there is a finding about the directory as a whole.
func (v *verifier) saidBefore(prefix string) bool {
	return v.report.about(strings.TrimSuffix(prefix, "/"))
}

// versions checks versions in dir, by number or by name.
func (v *verifier) versions(prefix, dir string, numbers []uint64, names []string) error {
	for _, n := range numbers {
		names = append(names, strconv.FormatUint(n, 10))
	}
	bar := newProgress(v.stderr, strings.TrimSuffix(dir, "/"), len(names))
	defer bar.done()
	var suspects []uint64
	err := inOrder(len(names), versionsAtOnce, func(i int) *versionCheck {
		c := &versionCheck{v: v, dir: dir + "/" + names[i] + "/"}
		c.run()
		return c
	}, func(i int, c *versionCheck) error {
		if err := v.ctx.Err(); err != nil {
			return fault.Wrap("verify", dir, err)
		}
		bar.step()
		c.readRows()
		if err := v.ctx.Err(); err != nil {
			return fault.Wrap("verify", dir, err)
		}
		for _, f := range c.found {
			f.line = dir
			if numbers != nil {
				f.version, f.place = &numbers[i], i
				f.alike = withoutManifest(f.Message, numbers[i])
				if rest, ok := strings.CutPrefix(f.Path, c.dir); ok {
					f.Path = prefix + "versions/*/" + rest
				}
			}
			v.report.note(f)
		}
		v.report.Versions++
		if numbers != nil && slices.ContainsFunc(c.found, func(f finding) bool { return f.Level == levelError }) {
			suspects = append(suspects, numbers[i])
		}
		return nil
	})
	if err == nil {
		v.forget(dir, suspects)
	}
	return err
}

// manifests finds the names of manifests, by either naming scheme.
var manifests = regexp.MustCompile(`/_versions/[0-9]{1,20}\.manifest`)

// withoutManifest is a message with * in place of the manifest, so that what is the same in several versions reads the same.
func withoutManifest(message string, version uint64) string {
	return manifests.ReplaceAllStringFunc(message, func(path string) string {
		n, err := strconv.ParseUint(strings.TrimSuffix(path[len("/_versions/"):], ".manifest"), 10, 64)
		if err != nil || n != version && n != math.MaxUint64-version {
			return path
		}
		return "/_versions/*.manifest"
	})
}

// forget drops what was found in versions that are retained no more: somebody cleaned up meanwhile, and what is missing
// then is missed by nobody.
func (v *verifier) forget(dir string, suspects []uint64) {
	if len(suspects) == 0 || v.tree.Refresh(v.ctx) != nil {
		return // without an answer they count as there
	}
	for _, n := range suspects {
		_, err := nodes.Resolve(v.ctx, v.root, dir+"/"+strconv.FormatUint(n, 10))
		if fault.Is(err, fault.NotFound) {
			v.report.forget(dir, n)
		}
	}
}

// orphans notes directories that no version names.
func (v *verifier) orphans() {
	const path = ".frifs/orphans.json"
	type dir struct {
		Kind, Path    string
		Orphan, Fresh *bool
		Files, Bytes  *uint64
		Error         *errorDoc
	}
	err := scanDoc(v.ctx, v.root, path, members{"directories": each(func(d dir) {
		switch {
		case d.Error != nil:
			v.report.note(finding{Level: levelError, Check: "orphan", Path: d.Path, Message: d.Error.text()})
		case d.Orphan != nil && *d.Orphan && (d.Fresh == nil || !*d.Fresh):
			v.report.note(finding{Level: levelWarning, Check: "orphan", Path: d.Path,
				Message: fmt.Sprintf("no retained version names this directory (%s files, %s bytes)", knownNumber(d.Files), knownNumber(d.Bytes))})
		}
	})})
	if err != nil {
		v.report.note(v.failure("orphan", path, err))
	}
}

// errorDoc is an error in a document of the tree.
type errorDoc struct{ File, Kind, Message, Path, Detail string }

func (e *errorDoc) text() string {
	text := e.Message
	if e.Kind != "" {
		text = strings.ReplaceAll(e.Kind, "_", " ") + ": " + text
	}
	if e.Path != "" && !strings.Contains(e.Path, "/_versions/") { // what a manifest says may be wrong in many of them
		text = e.Path + ": " + text
	}
	return text
}

// UnmarshalJSON takes an error that is a text alone, too.
func (e *errorDoc) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &e.Message)
	}
	type plainDoc errorDoc
	return json.Unmarshal(b, (*plainDoc)(e))
}

// failure is the finding that a file of the tree cannot be read.
func (v *verifier) failure(check, path string, err error) finding {
	return finding{Level: levelError, Check: check, Path: path, Message: plainBelow(path, err)}
}
