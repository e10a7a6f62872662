package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// versionCheck is the checks of one version.
type versionCheck struct {
	v       *verifier
	dir     string // of the version, with a slash at the end
	found   []finding
	left    int  // findings that were too many
	refused bool // nothing is translated
	records []recordDoc
}

// mostPerVersion bounds the findings of one version.
const mostPerVersion = 10_000

func (c *versionCheck) add(level, check, path, format string, args ...any) {
	c.addFinding(finding{Level: level, Check: check, Path: c.dir + path, Message: fmt.Sprintf(format, args...)})
}

func (c *versionCheck) addFinding(f finding) {
	if len(c.found) >= mostPerVersion {
		if c.left++; c.left == 1 {
			c.found = append(c.found, finding{Level: levelError, Check: "too_many", Path: c.dir, Message: fmt.Sprintf("more than %d findings in this version; the others are left out", mostPerVersion)})
		}
		return
	}
	c.found = append(c.found, f)
}

// scan reads a document of the version. That it cannot be read is a finding.
func (c *versionCheck) scan(check, path string, want members) bool {
	err := scanDoc(c.v.ctx, c.v.root, c.dir+path, want)
	if err != nil && c.v.ctx.Err() == nil {
		c.addFinding(c.v.failure(check, c.dir+path, err))
	}
	return err == nil
}

// recordDoc is what verify needs of a record of the history.
type recordDoc struct {
	Seq    int
	Record *int
	ID     *string
	Error  *errorDoc
	RowMap *struct{ Path string } `json:"row_map"`
	Checks []struct {
		Name   string
		OK     *bool
		Detail *string
	}
}

// run makes all checks but those that versions share.
func (c *versionCheck) run() {
	if !c.manifest() {
		return
	}
	c.transaction()
	c.history()
	c.changes()
	c.leftOut()
	c.indices()
	if !c.v.quick {
		c.files()
		c.composed()
	}
}

// manifest checks what is to be known of the version as a whole; false where its manifest cannot be read.
func (c *versionCheck) manifest() bool {
	each1 := func(level, check string) func(*json.Decoder) error {
		return each(func(text string) { c.add(level, check, "version.json", "%s", text) })
	}
	var advice []string
	ok := c.scan("manifest", "version.json", members{
		"warnings": each1(levelWarning, "manifest"), "advice": each(func(text string) { advice = append(advice, text) }),
		"translation_refused": func(d *json.Decoder) error {
			var e *errorDoc
			err := d.Decode(&e)
			if e != nil {
				c.refused = true
				c.add(levelWarning, "flags", "version.json", "nothing is translated: %s", e.text())
			}
			return err
		},
	})
	for _, text := range advice {
		if text = c.knownKind(text); text != "" {
			c.add(levelAdvice, "advice", "version.json", "%s", text)
		}
	}
	return ok
}

// transaction checks whether there is a transaction where the manifest names one.
func (c *versionCheck) transaction() {
	var e *errorDoc
	if c.scan("transaction", "transaction.json", members{"error": into(&e)}) && e != nil {
		c.add(levelError, "transaction", "transaction.json", "%s", e.text())
	}
}

// history checks the fragment reuse index.
func (c *versionCheck) history() {
	const path = "fri/history.json"
	type note struct {
		Record  *int
		Message string
	}
	spoiled := map[int]bool{} // records that an error names
	notes := func(level string) func(*json.Decoder) error {
		return each(func(n note) {
			if n.Record != nil && level == levelError {
				spoiled[*n.Record] = true
			}
			c.addFinding(finding{Level: level, Check: "history", Path: c.dir + path, Record: n.Record, Message: n.Message})
		})
	}
	flags := true
	c.scan("history", path, members{
		"flags_ok": into(&flags), "warnings": notes(levelWarning), "errors": notes(levelError),
		"transitions": each(func(r recordDoc) {
			c.records = append(c.records, recordDoc{Seq: r.Seq, Record: r.Record, ID: r.ID, Error: r.Error, RowMap: r.RowMap})
			if r.Record != nil && spoiled[*r.Record] {
				return // its checks say the same
			}
			for _, k := range r.Checks {
				if k.OK != nil && !*k.OK {
					c.addFinding(finding{Level: levelError, Check: "record", Path: c.dir + path, Record: r.Record, Message: "check " + k.Name + ": " + textOr(k.Detail, "failed")})
				}
			}
		}),
	})
	if !flags {
		c.add(levelError, "history", path, "flag 1024 (fragment_reuse_index) is not set as the history needs it, or not in both words")
	}
}

// changes checks what went with the version.
func (c *versionCheck) changes() {
	const path = "changes.json"
	type lost struct {
		Record   int
		NeededBy []struct{ Name string } `json:"needed_by"`
	}
	type back struct {
		Name string
		Seen uint64 `json:"last_seen_version"`
	}
	c.scan("changes", path, members{
		"fri.needed_but_gone": each(func(l lost) {
			names := make([]string, len(l.NeededBy))
			for i, n := range l.NeededBy {
				names[i] = n.Name
			}
			c.addFinding(finding{Level: levelError, Check: "needed_but_gone", Path: c.dir + path,
				Message: fmt.Sprintf("record %d of the version before is gone, although needed by %s", l.Record, capNames(names, neededByWidth))})
		}),
		"indices.came_back": each(func(b back) {
			c.add(levelWarning, "came_back", path, "index %q came back; it was last there in version %d", b.Name, b.Seen)
		}),
	})
}

// leftOut checks what cannot be shown of the version.
func (c *versionCheck) leftOut() {
	const path = "ERROR.json"
	if _, err := nodes.Resolve(c.v.ctx, c.v.root, c.dir+path); fault.Is(err, fault.NotFound) {
		return
	}
	c.scan("shown", path, members{"errors": each(func(e errorDoc) {
		if e.Kind == fault.Unsupported.String() || e.Kind == fault.Invalid.String() {
			return // a way of translating that there is not, or that was not asked for
		}
		c.add(levelError, "shown", path, "%s: %s", e.File, e.text())
	})})
}

// files checks that every file of the version is there, with the size that is recorded.
func (c *versionCheck) files() {
	const path = "scan/files.json"
	type file struct {
		Kind, Path string
		Bytes      *int64
		Recorded   *int64  `json:"recorded_bytes"`
		Found      *string `json:"found_uri"`
		Error      *errorDoc
	}
	say := func(level, check string, f file, format string, args ...any) {
		c.addFinding(finding{Level: level, Check: check, Path: f.Path, Message: fmt.Sprintf(format, args...)})
	}
	c.scan("files", path, members{"files": each(func(f file) {
		what := strings.ReplaceAll(f.Kind, "_", " ")
		switch {
		case f.Error != nil && f.Error.Kind == fault.NotFound.String():
			say(levelError, "missing_file", f, "the %s file is missing: %s", what, f.Error.text())
		case f.Error != nil:
			say(levelError, "file", f, "the %s file cannot be looked at: %s", what, f.Error.text())
		case f.Recorded != nil && f.Bytes != nil && *f.Recorded != *f.Bytes && f.Kind != "index_directory":
			say(levelError, "file_size", f, "the %s file has %d bytes; %d are recorded", what, *f.Bytes, *f.Recorded)
		case f.Found != nil:
			say(levelWarning, "base", f, "the %s file is not below the base that is recorded; it is at %s", what, *f.Found)
		}
	})})
}

// composed checks that what the history makes of the old addresses can be told.
func (c *versionCheck) composed() {
	const path = "fri/scan/composed.json"
	if _, err := nodes.Resolve(c.v.ctx, c.v.root, c.dir+path); fault.Is(err, fault.NotFound) {
		return
	}
	var o map[string]uint64
	if c.scan("composed", path, members{"outcomes": into(&o)}) && len(c.records) > 0 {
		c.outcomes("composed", path, "rows of the history's sources", o)
	}
}

// outcomes notes addresses that cannot be followed.
func (c *versionCheck) outcomes(check, path, what string, o map[string]uint64) {
	for _, k := range []string{"unresolved", "out_of_range"} {
		if n := o[k]; n > 0 {
			c.add(levelError, check, path, "%d %s are %s", n, what, k)
		}
	}
}

// rowsRead is how the reading of a record's mapping went.
type rowsRead struct{ err string }

// readRows reads the mappings of the version's records to their end, each once for all versions: blocks of labels and
// payloads of bitmaps are checked when their rows are read.
func (c *versionCheck) readRows() {
	if c.v.quick || c.refused {
		return
	}
	for _, r := range c.records {
		if r.Error != nil || r.ID == nil || c.v.ctx.Err() != nil {
			continue
		}
		key := *r.ID
		if r.RowMap != nil {
			key += "\x00" + r.RowMap.Path
		}
		path := fmt.Sprintf("fri/transitions/%04d/mapping.csv", r.Seq)
		read := c.v.rows[key]
		if read == nil {
			read = &rowsRead{}
			if err := c.v.readAll(c.dir + path); err != nil && c.v.ctx.Err() == nil {
				read.err = plainBelow(c.dir+path, err)
			}
			c.v.rows[key] = read
		}
		if read.err != "" {
			c.addFinding(finding{Level: levelError, Check: "mapping", Path: c.dir + path, Record: r.Record, Message: read.err})
		}
	}
}

// readAll reads a file of the tree to its end.
func (v *verifier) readAll(path string) error {
	r, err := openNode(v.ctx, v.root, path)
	if err != nil {
		return err
	}
	defer r.close()
	_, err = io.CopyBuffer(io.Discard, struct{ io.Reader }{r}, make([]byte, catBuffer))
	return err
}
