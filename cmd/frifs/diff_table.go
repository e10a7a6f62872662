package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// mostLines is how many lines of one kind a person is shown; --format json has all.
const mostLines = 40

// diffLines is one part of a comparison for a person: a heading, and lines with a sign before each.
type diffLines struct {
	head  string
	lines []string
	count int // all that there are
}

func (l *diffLines) add(sign, format string, args ...any) {
	if l.count++; l.count <= mostLines {
		l.lines = append(l.lines, "  "+sign+" "+printable(fmt.Sprintf(format, args...)))
	}
}

func (l *diffLines) print(out io.Writer) {
	if l.count == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s:\n%s\n", l.head, strings.Join(l.lines, "\n"))
	if n := l.count - len(l.lines); n > 0 {
		fmt.Fprintf(out, "  … and %d more (--format json shows all)\n", n)
	}
}

// The parts of changes.json that a person is shown.
type (
	diffFragment struct {
		Fragment    uint64
		Rows        *uint64 `json:"physical_rows"`
		Deleted     *uint64 `json:"deleted_rows"`
		Before      *uint64 `json:"deleted_rows_before"`
		NewDeletion bool    `json:"deletion_file_changed"`
		NewFiles    bool    `json:"data_files_changed"`
	}
	diffIndex struct {
		Name, UUID    string
		Type          *string
		Version       uint64                  `json:"dataset_version"`
		VersionBefore *uint64                 `json:"dataset_version_before"`
		Bitmap        any                     `json:"bitmap"`
		BitmapBefore  any                     `json:"bitmap_before"`
		Covers        struct{ Count *uint64 } `json:"fragment_bitmap"`
		Gained        []uint64                `json:"fragments_gained"`
		Lost          []uint64                `json:"fragments_lost"`
	}
	diffRecord struct {
		Record                int
		ID                    *string
		Kind                  string
		Sources, Destinations []uint64
		NeededBy              []struct{ Name, UUID string } `json:"needed_by"`
	}
	diffField struct {
		Path  string
		Field struct {
			Type *string `json:"logical_type"`
		}
	}
	diffFieldChange struct {
		Path       string
		PathBefore string `json:"path_before"`
		Before     map[string]json.RawMessage
		After      map[string]json.RawMessage
	}
	diffPair struct {
		Key           string
		ID            *uint64
		Before, After json.RawMessage
	}
	diffFlag struct{ Name *string }
)

// table prints the comparison for a person.
func (d *differ) table(stdout io.Writer) error {
	var from, to sideDoc
	var reversed *bool
	fragments, indices, records := diffLines{head: "fragments"}, diffLines{head: "indices"}, diffLines{head: "fragment reuse index"}
	schema, bases, flags := diffLines{head: "schema"}, diffLines{head: "base paths"}, diffLines{head: "feature flags"}
	config, tableMeta, schemaMeta := diffLines{head: "configuration"}, diffLines{head: "table metadata"}, diffLines{head: "schema metadata"}
	compared := true
	fragment := func(sign string) func(*json.Decoder) error {
		return each(func(f diffFragment) { fragments.add(sign, "%s", f.line()) })
	}
	index := func(sign string) func(*json.Decoder) error {
		return each(func(x diffIndex) { indices.add(sign, "%s", x.line()) })
	}
	record := func(sign string) func(*json.Decoder) error {
		return each(func(r diffRecord) { records.add(sign, "%s", r.line()) })
	}
	pair := func(l *diffLines) func(*json.Decoder) error {
		return each(func(p diffPair) { l.add(p.sign(), "%s", p.line()) })
	}
	flag := func(sign, word string) func(*json.Decoder) error {
		return each(func(f diffFlag) { flags.add(sign, "%s %s", word, textOr(f.Name, "unknown")) })
	}
	err := scanDoc(d.ctx, d.root, d.path, members{
		"from": into(&from), "to": into(&to), "reversed": into(&reversed),
		"fragments.added": fragment("+"), "fragments.removed": fragment("-"), "fragments.changed": fragment("~"),
		"indices.added": index("+"), "indices.removed": index("-"), "indices.changed": index("~"),
		"fri.comparable": into(&compared), "fri.records_in": record("+"), "fri.records_out": record("-"), "fri.needed_but_gone": record("!"),
		"schema.added":    each(func(f diffField) { schema.add("+", "%s %s", f.Path, textOr(f.Field.Type, "")) }),
		"schema.removed":  each(func(f diffField) { schema.add("-", "%s %s", f.Path, textOr(f.Field.Type, "")) }),
		"schema.changed":  each(func(c diffFieldChange) { schema.add("~", "%s", c.line()) }),
		"schema.metadata": pair(&schemaMeta), "config": pair(&config), "table_metadata": pair(&tableMeta), "bases": pair(&bases),
		"flags.reader_set": flag("+", "reader"), "flags.reader_cleared": flag("-", "reader"),
		"flags.writer_set": flag("+", "writer"), "flags.writer_cleared": flag("-", "writer"),
	})
	if err != nil {
		return err
	}
	operations := diffLines{head: "operations"}
	err = d.operations(&from, &to, func(o operation) error {
		operations.add(" ", "%s", o.line())
		return nil
	})
	if err != nil {
		return err
	}
	if reversed != nil && *reversed {
		operations.head += ", from the older one to the newer"
	}
	out := bufio.NewWriter(stdout)
	fmt.Fprintf(out, "from %s\nto   %s\n", from.line(), to.line())
	all := []*diffLines{&operations, &fragments, &indices, &records, &schema, &schemaMeta, &config, &tableMeta, &bases, &flags}
	differs := 0
	for _, l := range all {
		l.print(out)
		if l != &operations {
			differs += l.count
		}
	}
	if !compared {
		fmt.Fprint(out, "\nrecords of the fragment reuse index were not compared: one of the two cannot be read (see frifs history)\n")
	}
	if differs == 0 && compared {
		fmt.Fprint(out, "\nthere is no difference in what was compared\n")
	}
	return out.Flush()
}

// toSeconds cuts a time to seconds.
func toSeconds(t *string) string {
	when := textOr(t, "?")
	if i := strings.IndexByte(when, '.'); i > 0 {
		when = when[:i] + "Z"
	}
	return when
}

// knownNumber shows a number, or a question mark where it is not known.
func knownNumber(n *uint64) string {
	if n == nil {
		return "?"
	}
	return orEmpty(n)
}

func (s *sideDoc) line() string {
	name := fmt.Sprintf("version %d", s.Version)
	if b := textOr(s.Branch, ""); b != "" {
		name += " of branch " + b
	}
	return fmt.Sprintf("%s  %s  %s rows, %s, %s", name, toSeconds(s.Time), knownNumber(s.Rows),
		countWord(int(s.Fragments), "fragment"), plural(s.Indices, "index", "indices"))
}

func plural(n uint64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func (o operation) line() string {
	if o.Error != nil {
		return fmt.Sprintf("%-8d %s", o.Version, *o.Error)
	}
	return fmt.Sprintf("%-8d %-20s %-22s %12s rows", o.Version, toSeconds(o.Time), textOr(o.Operation, "?"), knownNumber(o.Rows))
}

func (f diffFragment) line() string {
	s := fmt.Sprintf("%-10d %s rows", f.Fragment, knownNumber(f.Rows))
	switch {
	case f.Before != nil || f.NewDeletion || f.NewFiles:
		s += fmt.Sprintf(", deleted %s → %s", knownNumber(f.Before), knownNumber(f.Deleted))
	case f.Deleted == nil || *f.Deleted > 0:
		s += fmt.Sprintf(", %s deleted", knownNumber(f.Deleted))
	}
	if f.NewFiles {
		s += ", other data files"
	}
	return s
}

func (x diffIndex) line() string {
	s := fmt.Sprintf("%s %s %s", x.Name, x.UUID, textOr(x.Type, "?"))
	if x.VersionBefore == nil {
		covers := "an unknown number of fragments"
		if x.Covers.Count != nil {
			covers = plural(*x.Covers.Count, "fragment", "fragments")
		}
		return s + fmt.Sprintf(", built from version %d, covers %s", x.Version, covers)
	}
	if *x.VersionBefore != x.Version {
		s += fmt.Sprintf(", built from version %d → %d", *x.VersionBefore, x.Version)
	}
	if x.Bitmap != x.BitmapBefore {
		s += fmt.Sprintf(", coverage %v → %v", x.BitmapBefore, x.Bitmap)
	}
	for _, l := range []struct {
		word string
		list []uint64
	}{{"covers also", x.Gained}, {"covers no more", x.Lost}} {
		if len(l.list) > 0 {
			s += ", " + l.word + " " + fragmentWords(l.list)
		}
	}
	return s
}

// fragmentWords names some fragments.
func fragmentWords(ids []uint64) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	return capNames(words, neededByWidth)
}

func (r diffRecord) line() string {
	s := fmt.Sprintf("record %d %s %s: %s → %s", r.Record, textOr(r.ID, "?"), r.Kind, fragmentWords(r.Sources), fragmentWords(r.Destinations))
	if len(r.NeededBy) > 0 {
		names := make([]string, len(r.NeededBy))
		for i, n := range r.NeededBy {
			names[i] = n.Name
		}
		s += ", gone although needed by " + capNames(names, neededByWidth)
	}
	return s
}

// line shows a column that changed: what of it.
func (c diffFieldChange) line() string {
	var parts []string
	for _, k := range []string{"logical_type", "nullable", "parent_id", "extension_name", "unenforced_primary_key", "metadata"} {
		if string(c.Before[k]) != string(c.After[k]) {
			parts = append(parts, fmt.Sprintf("%s %s → %s", k, compact(c.Before[k]), compact(c.After[k])))
		}
	}
	name := c.Path
	if c.PathBefore != c.Path {
		name = c.PathBefore + " → " + c.Path
	}
	return strings.TrimSuffix(name+": "+strings.Join(parts, ", "), ": ")
}

// sign says whether the pair came, went or changed.
func (p diffPair) sign() string {
	switch {
	case isNull(p.Before):
		return "+"
	case isNull(p.After):
		return "-"
	}
	return "~"
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// line shows a key of a map, or a base path by its number.
func (p diffPair) line() string {
	name := p.Key
	if p.ID != nil {
		name = fmt.Sprintf("base %d", *p.ID)
	}
	switch p.sign() {
	case "+":
		return name + ": " + compact(p.After)
	case "-":
		return name + ": " + compact(p.Before)
	}
	return fmt.Sprintf("%s: %s → %s", name, compact(p.Before), compact(p.After))
}

// compact is JSON in one line, cut where it is long.
func compact(raw json.RawMessage) string {
	const most = 100
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return "null"
	}
	s := []rune(b.String())
	if len(s) > most {
		return string(s[:most]) + "…"
	}
	return string(s)
}

// printable is text with what would steer a terminal written out: names come from the dataset.
func printable(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
