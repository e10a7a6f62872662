package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// tour shows what the sample dataset looks like. With a mountpoint it runs ordinary programs on the mounted files, in
// child processes: this process must not read its own mount. Without one the same programs read what frifs cat gives;
// programs that are not installed are replaced by the few lines of Go that do the same.
type tour struct {
	src        *source
	mountpoint string // "" without a mount
	out        io.Writer
}

// stop is one station: a filter over one file of the tree.
type stop struct {
	title   string
	tool    string   // program that must be there
	filter  []string // its arguments before the file
	file    string
	instead func(data []byte) (string, error) // does the same where the program is missing
}

const (
	jqProgram = `.transitions[] | "\(.seq): \(.form) \(.kind), fragments \([.sources[].fragment]) became \([.destinations[].fragment]), ` +
		`\(.rows.moved) rows moved, \(.rows.dropped) were gone"`
	awkProgram = `NR > 1 { n[$5 == "" ? "none" : $5]++ } END { for (f in n) print n[f], "rows to fragment", f | "sort -k5n" }`
)

func stops() []stop {
	return []stop{
		{
			title: "Which rewrites happened? Each is an entry of history.json.",
			tool:  "jq", filter: []string{"-r", jqProgram}, file: "latest/fri/history.json", instead: listTransitions,
		},
		{
			title: "Where did the rows of the fourth rewrite go? Each has a CSV: old address, new address.",
			tool:  "awk", filter: []string{"-F,", awkProgram}, file: "latest/fri/transitions/0004/mapping.csv", instead: countByFragment,
		},
	}
}

func (t *tour) run(ctx context.Context) error {
	say := func(format string, args ...any) error {
		_, err := fmt.Fprintf(t.out, format, args...)
		return err
	}
	where := "its files, read without a mount (frifs ls, frifs cat)"
	if t.mountpoint != "" {
		where = "mounted at " + t.mountpoint
	}
	if err := say("A table that was compacted five times, %s.\n\n", where); err != nil {
		return err
	}
	if err := say("The newest version, as files:\n  $ frifs tree --depth 3 %s latest/fri\n", demoName); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := drawTree(ctx, t.src.root, "latest/fri", 3, &b, io.Discard); err != nil {
		return err
	}
	if err := say("%s\n", indent(b.String())); err != nil {
		return err
	}
	for _, s := range stops() {
		text, err := t.visit(ctx, s)
		if err != nil {
			return err
		}
		if err := say("%s\n%s\n", s.title, text); err != nil {
			return err
		}
	}
	return t.follow(ctx, fri.Addr(1, 17))
}

// visit runs one station and returns the command line that it shows with its output.
func (t *tour) visit(ctx context.Context, s stop) (string, error) {
	quoted := make([]string, len(s.filter))
	for i, a := range s.filter {
		quoted[i] = a
		if strings.ContainsAny(a, ` "$\`) {
			quoted[i] = "'" + a + "'"
		}
	}
	line := s.tool + " " + strings.Join(quoted, " ")
	if t.mountpoint != "" {
		line += " " + s.file
	} else {
		line = "frifs cat " + demoName + " " + s.file + " | " + line
	}
	out, err := t.output(ctx, s)
	if err != nil {
		return "", err
	}
	return "  $ " + line + "\n" + indent(out), nil
}

func (t *tour) output(ctx context.Context, s stop) (string, error) {
	tool, err := exec.LookPath(s.tool)
	if err != nil {
		data, err := readNode(ctx, t.src.root, s.file)
		if err != nil {
			return "", err
		}
		return s.instead(data)
	}
	args := slices.Clone(s.filter)
	cmd := exec.CommandContext(ctx, tool, args...)
	if t.mountpoint != "" {
		cmd.Args = append(cmd.Args, t.mountpoint+"/"+s.file)
	} else {
		data, err := readNode(ctx, t.src.root, s.file)
		if err != nil {
			return "", err
		}
		cmd.Stdin = bytes.NewReader(data)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fault.New("demo", s.file, fault.Unavailable, "%s: %w: %s", s.tool, err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// follow shows the way of one row.
func (t *tour) follow(ctx context.Context, a fri.RowAddr) error {
	tr, err := t.src.translator(ctx)
	if err != nil {
		return err
	}
	hops, outcome, last, err := tr.Trace(ctx, a)
	if err != nil {
		return err
	}
	r := traced{addr: a, hops: hops, outcome: outcome, last: last}
	_, err = fmt.Fprintf(t.out, "Where is the row that was once at offset %d of fragment %d?\n  $ frifs translate --trace %s %v\n%s\n"+
		"That is all. With a table of your own: frifs mount /data/t.lance /mnt/t\n",
		a.Offset(), a.Frag(), demoName, a, indent(string(r.table())))
	return err
}

func indent(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "  " + l
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// listTransitions does what jqProgram does.
func listTransitions(data []byte) (string, error) {
	var h historyDoc
	if err := json.Unmarshal(data, &h); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, x := range h.Transitions {
		moved, dropped := "null", "null"
		if x.Rows != nil {
			moved, dropped = orEmpty(x.Rows.Moved), orEmpty(x.Rows.Dropped)
		}
		fmt.Fprintf(&b, "%d: %s %s, fragments [%s] became [%s], %s rows moved, %s were gone\n",
			x.Seq, x.Form, x.Kind, fragmentList(x.Sources, ","), fragmentList(x.Destinations, ","), moved, dropped)
	}
	return b.String(), nil
}

// countByFragment does what awkProgram does.
func countByFragment(data []byte) (string, error) {
	counts := map[string]int{}
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		cells := strings.Split(line, ",")
		if i == 0 || len(cells) < 6 {
			continue
		}
		name := cells[4]
		if name == "" {
			name = "none"
		}
		counts[name]++
	}
	names := make([]string, 0, len(counts))
	for n := range counts {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := numberOf(a) - numberOf(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%d rows to fragment %s\n", counts[n], n)
	}
	return b.String(), nil
}

// numberOf is the value of leading digits, 0 for none, as sort -n takes it.
func numberOf(s string) int {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}
