package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/nodes"
)

func newVersionsCmd() *cobra.Command {
	var t target
	format := newChoice("table", "json", "csv")
	cmd := &cobra.Command{
		Use:   "versions URI",
		Short: "List the versions: what each did, and which index and FRI entries came and went",
		Long: `Prints one line for each retained version, the oldest first: time, operation, rows, fragments,
the index segments and the records of the fragment reuse index that came in and went out, and what
the version did about remapping. With --branch these are the versions of that branch; any other
selector leaves one. A version that cannot be read has its error in place of all that,
and the exit code is 1 then.`,
		Example: `  frifs versions /data/t.lance
  frifs versions --format csv /data/t.lance | awk -F, '$3 == "Rewrite"'`,
		Args: args(1, 1, "URI"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			t.wholeBranch = true
			s, err := t.table(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.close()
			return printVersions(cmd, s.root, format.word)
		}),
	}
	t.flags(cmd)
	cmd.Flags().Var(format, "format", "`form` of the output: table, json or csv")
	return cmd
}

// versionLine is what versions prints of one version. In JSON, an unknown value is null.
type versionLine struct {
	Version   uint64   `json:"version"`
	Time      *string  `json:"time"`
	Operation *string  `json:"operation"`
	Rows      *uint64  `json:"rows"`
	Fragments *uint64  `json:"fragments"`
	IndicesIn []string `json:"indices_in"`
	IndicesUp []string `json:"indices_out"`
	RecordsIn *int     `json:"fri_records_in"`
	RecordsUp *int     `json:"fri_records_out"`
	Remap     *string  `json:"remap"`
	Error     *string  `json:"error"`
}

// readVersion takes a version's line from its version.json and changes.json.
func readVersion(ctx context.Context, root nodes.Dir, n uint64) (versionLine, error) {
	v := versionLine{Version: n, IndicesIn: []string{}, IndicesUp: []string{}}
	dir := "versions/" + strconv.FormatUint(n, 10) + "/"
	var head struct {
		Timestamp *string
		Operation *string
		Rows      *uint64
		Fragments *uint64
	}
	if err := readJSON(ctx, root, dir+"version.json", &head); err != nil {
		return v, err
	}
	v.Time, v.Operation, v.Rows, v.Fragments = head.Timestamp, head.Operation, head.Rows, head.Fragments
	var ch struct {
		Remap   *string
		Indices *struct{ Added, Removed []struct{ Name string } }
		FRI     *struct {
			Comparable bool
			In         []any `json:"records_in"`
			Out        []any `json:"records_out"`
		}
	}
	if err := readJSON(ctx, root, dir+"changes.json", &ch); err != nil {
		return v, err
	}
	v.Remap = ch.Remap
	if ch.Indices != nil {
		for _, x := range ch.Indices.Added {
			if x.Name != fri.EntryName { // each new record replaces the entry; its records are counted instead
				v.IndicesIn = append(v.IndicesIn, x.Name)
			}
		}
		for _, x := range ch.Indices.Removed {
			if x.Name != fri.EntryName {
				v.IndicesUp = append(v.IndicesUp, x.Name)
			}
		}
	}
	if ch.FRI != nil && ch.FRI.Comparable {
		in, up := len(ch.FRI.In), len(ch.FRI.Out)
		v.RecordsIn, v.RecordsUp = &in, &up
	}
	return v, nil
}

func printVersions(cmd *cobra.Command, root nodes.Dir, format string) error {
	ctx := cmd.Context()
	numbers, err := versionNumbers(ctx, root)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 32<<10)
	bar := newProgress(cmd.ErrOrStderr(), "versions", len(numbers))
	defer bar.done()
	switch format {
	case "csv":
		fmt.Fprintln(out, "version,time,operation,rows,fragments,indices_in,indices_out,fri_records_in,fri_records_out,remap,error")
	case "table":
		fmt.Fprintf(out, "%-8s %-30s %-22s %12s %9s  %-16s %-8s %s\n", "version", "time", "operation", "rows", "fragments", "remap", "records", "indices")
	}
	var first error
	for i, n := range numbers {
		v, err := readVersion(ctx, root, n)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			text := err.Error()
			if format == "table" {
				text = plain(err)
			}
			v.Error = &text
			if first == nil {
				first = printed{err}
			}
		}
		switch format {
		case "csv":
			out.WriteString(v.csv())
		case "json":
			b, err := json.Marshal(v)
			if err != nil {
				return err
			}
			out.WriteString(jsonOpen(i == 0))
			out.Write(b)
		default:
			out.WriteString(v.line())
		}
		if out.Buffered() > 16<<10 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		bar.step()
	}
	if format == "json" {
		if len(numbers) == 0 {
			out.WriteByte('[')
		}
		out.WriteString("\n]\n")
	}
	bar.done()
	if err := out.Flush(); err != nil {
		return err
	}
	return first
}

// versionNumbers lists the versions that the tree shows, ascending.
func versionNumbers(ctx context.Context, root nodes.Dir) ([]uint64, error) {
	return versionNumbersIn(ctx, root, "versions")
}

// versionNumbersIn lists the versions in a directory of the tree, ascending.
func versionNumbersIn(ctx context.Context, root nodes.Dir, path string) ([]uint64, error) {
	n, err := nodes.Resolve(ctx, root, path)
	if err != nil {
		return nil, err
	}
	dir, ok := n.(nodes.Dir)
	if !ok {
		return nil, fault.New("versions", path, fault.Corrupt, "is no directory")
	}
	entries, err := dir.Entries(ctx)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, e := range entries {
		if v, err := strconv.ParseUint(e.Name, 10, 64); err == nil {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (v versionLine) csv() string {
	count := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	cells := []string{
		strconv.FormatUint(v.Version, 10), textOr(v.Time, ""), textOr(v.Operation, ""), orEmpty(v.Rows), orEmpty(v.Fragments),
		strings.Join(v.IndicesIn, " "), strings.Join(v.IndicesUp, " "), count(v.RecordsIn), count(v.RecordsUp),
		textOr(v.Remap, ""), textOr(v.Error, ""),
	}
	for i, c := range cells {
		cells[i] = csvCell(c)
	}
	return strings.Join(cells, ",") + "\n"
}

// trimTime drops zeros at the end of a fraction of a second, and nothing else: --asof takes the time as it is printed.
func trimTime(when string) string {
	whole, fraction, ok := strings.Cut(strings.TrimSuffix(when, "Z"), ".")
	if fraction = strings.TrimRight(fraction, "0"); !ok || fraction == "" {
		if ok {
			return whole + "Z"
		}
		return when
	}
	return whole + "." + fraction + "Z"
}

// line is one line of the table: "+a -b" names what came in and went out.
func (v versionLine) line() string {
	if v.Error != nil {
		return fmt.Sprintf("%-8d %s\n", v.Version, *v.Error)
	}
	records := ""
	if v.RecordsIn != nil && *v.RecordsIn > 0 {
		records = fmt.Sprintf("+%d", *v.RecordsIn)
	}
	if v.RecordsUp != nil && *v.RecordsUp > 0 {
		records = strings.TrimSpace(fmt.Sprintf("%s -%d", records, *v.RecordsUp))
	}
	number := func(n *uint64) string {
		if n == nil {
			return "?"
		}
		return strconv.FormatUint(*n, 10)
	}
	var ix []string
	for _, n := range v.IndicesIn {
		ix = append(ix, "+"+n)
	}
	for _, n := range v.IndicesUp {
		ix = append(ix, "-"+n)
	}
	s := fmt.Sprintf("%-8d %-30s %-22s %12s %9s  %-16s %-8s %s", v.Version, trimTime(textOr(v.Time, "?")), textOr(v.Operation, "?"),
		number(v.Rows), number(v.Fragments), textOr(v.Remap, "?"), records, strings.Join(ix, " "))
	return strings.TrimRight(s, " ") + "\n"
}
