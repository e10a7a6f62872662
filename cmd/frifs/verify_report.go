package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Levels of findings, the gravest first.
const (
	levelError   = "error"
	levelWarning = "warning"
	levelAdvice  = "advice"
)

// maxFindings bounds how many different findings are kept. More are counted.
const maxFindings = 50_000

// finding is one thing that verify has to say. What is found alike in several versions is one finding.
type finding struct {
	Level    string      `json:"level"`
	Check    string      `json:"check"`
	Versions [][2]uint64 `json:"versions"` // first and last of each run of versions that follow each other
	Path     string      `json:"path"`     // in the tree, * for each of the versions; of a file that a version needs below its base
	Record   *int        `json:"record"`   // of the fragment reuse index
	Message  string      `json:"message"`

	alike   string  // Message without what names the version; "" = the same
	line    string  // directory of the versions
	version *uint64 // in which it was found now; nil = it is of none
	place   int     // of that version among the line's
}

// findingKey is what makes findings the same.
type findingKey struct {
	level, check, path, message, line string
	record                            int
}

func (f *finding) key() findingKey {
	k := findingKey{f.Level, f.Check, f.Path, f.Message, f.line, 0}
	if f.alike != "" {
		k.message = f.alike
	}
	if f.Record != nil {
		k.record = *f.Record
	}
	return k
}

// verifyReport gathers findings.
type verifyReport struct {
	URI      string
	Quick    bool
	Versions int // that were checked

	level    string // least that is kept
	findings []*finding
	by       map[findingKey]*finding
	counts   map[string]int // by level, of different findings
	dropped  int
}

func rank(level string) int {
	return slices.Index([]string{levelError, levelWarning, levelAdvice}, level)
}

// note adds a finding.
func (r *verifyReport) note(f finding) {
	if rank(f.Level) > rank(r.level) {
		return
	}
	if r.by == nil {
		r.by, r.counts = map[findingKey]*finding{}, map[string]int{}
	}
	old := r.by[f.key()]
	if old == nil {
		r.counts[f.Level]++
		if len(r.findings) >= maxFindings {
			r.dropped++
			return
		}
		f.Versions = [][2]uint64{}
		if f.version != nil {
			f.Versions = append(f.Versions, [2]uint64{*f.version, *f.version})
		}
		r.findings = append(r.findings, &f)
		r.by[f.key()] = &f
		return
	}
	if f.version == nil || old.version != nil && *old.version == *f.version {
		return
	}
	if old.Message != f.Message {
		old.Message = old.alike
	}
	if n := len(old.Versions); n > 0 && old.place+1 == f.place {
		old.Versions[n-1][1] = *f.version
	} else {
		old.Versions = append(old.Versions, [2]uint64{*f.version, *f.version})
	}
	old.version, old.place = f.version, f.place
}

// forget takes a version out of all that was found in the versions of a line; what was found in it alone goes.
func (r *verifyReport) forget(line string, version uint64) {
	r.Versions--
	r.findings = slices.DeleteFunc(r.findings, func(f *finding) bool {
		if f.version == nil || f.line != line {
			return false
		}
		for i, run := range f.Versions {
			if version < run[0] || version > run[1] {
				continue
			}
			var rest [][2]uint64
			if version > run[0] {
				rest = append(rest, [2]uint64{run[0], version - 1})
			}
			if version < run[1] {
				rest = append(rest, [2]uint64{version + 1, run[1]})
			}
			f.Versions = slices.Concat(f.Versions[:i:i], rest, f.Versions[i+1:])
			break
		}
		if len(f.Versions) > 0 {
			return false
		}
		r.counts[f.Level]--
		delete(r.by, f.key())
		return true
	})
}

// about reports whether something was found about the place at path itself.
func (r *verifyReport) about(path string) bool {
	return slices.ContainsFunc(r.findings, func(f *finding) bool { return f.Path == path })
}

// summary says how much was found; "" for nothing.
func (r *verifyReport) summary() string {
	var words []string
	for _, level := range []string{levelError, levelWarning} {
		if n := r.counts[level]; n > 0 {
			words = append(words, countWord(n, level))
		}
	}
	if n := r.counts[levelAdvice]; n > 0 {
		words = append(words, plural(uint64(n), "piece of advice", "pieces of advice"))
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("%s in %s", strings.Join(words, ", "), countWord(r.Versions, "version"))
}

// sorted puts the gravest first; else the order is that of the versions.
func (r *verifyReport) sorted() []*finding {
	out := slices.Clone(r.findings)
	slices.SortStableFunc(out, func(a, b *finding) int { return rank(a.Level) - rank(b.Level) })
	return out
}

func (r *verifyReport) write(stdout io.Writer, format string) error {
	out := bufio.NewWriter(stdout)
	if format == "json" {
		if err := r.json(out); err != nil {
			return err
		}
		return out.Flush()
	}
	if len(r.findings) == 0 {
		fmt.Fprintf(out, "%s checked, nothing found\n", countWord(r.Versions, "version"))
		return out.Flush()
	}
	t := table{head: []string{"level", "check", "versions", "path", "message"}}
	for _, f := range r.sorted() {
		message := f.Message
		if f.Record != nil {
			message = fmt.Sprintf("record %d: %s", *f.Record, message)
		}
		t.add(f.Level, f.Check, f.runs(), printable(f.Path), printable(message))
	}
	if err := t.print(out, "table"); err != nil {
		return err
	}
	if r.dropped > 0 {
		fmt.Fprintf(out, "… and %d more\n", r.dropped)
	}
	return out.Flush()
}

// runs shows the versions of a finding.
func (f *finding) runs() string {
	words := make([]string, len(f.Versions))
	for i, v := range f.Versions {
		words[i] = fmt.Sprint(v[0])
		if v[1] != v[0] {
			words[i] += fmt.Sprintf("-%d", v[1])
		}
	}
	if len(words) == 0 {
		return "-"
	}
	return capNames(words, 30)
}

// json writes the report, a finding per line.
func (r *verifyReport) json(out *bufio.Writer) error {
	fmt.Fprintf(out, "{\n  \"uri\": %s,\n  \"quick\": %v,\n  \"versions_checked\": %d,\n", jsonString(r.URI), r.Quick, r.Versions)
	fmt.Fprintf(out, "  \"counts\": {\"error\": %d, \"warning\": %d, \"advice\": %d},\n  \"left_out\": %d,\n  \"findings\": [",
		r.counts[levelError], r.counts[levelWarning], r.counts[levelAdvice], r.dropped)
	for i, f := range r.sorted() {
		b, err := json.Marshal(f)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		out.Write(b)
	}
	if len(r.findings) > 0 {
		out.WriteString("\n  ")
	}
	_, err := out.WriteString("]\n}\n")
	return err
}
