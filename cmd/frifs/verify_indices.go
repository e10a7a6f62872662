package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/frifs/frifs/fault"
)

// indices checks every index of the version.
func (c *versionCheck) indices() {
	names, err := c.v.names(c.dir + "indices")
	if err != nil {
		if !fault.Is(err, fault.NotFound) && c.v.ctx.Err() == nil {
			c.addFinding(c.v.failure("index", c.dir+"indices", err))
		}
		return
	}
	for _, name := range names {
		if c.v.ctx.Err() != nil {
			return
		}
		if name != "ERROR.json" {
			c.index("indices/" + name)
		}
	}
}

// index checks one logical index: what its entries say, and what is in its files.
func (c *versionCheck) index(dir string) {
	path := dir + "/index.json"
	var directories []string
	c.scan("index", path, members{
		"warnings": each(func(text string) { c.add(levelWarning, "index", path, "%s", text) }),
		"covered_twice": func(d *json.Decoder) error {
			var ids []json.RawMessage
			err := d.Decode(&ids)
			if len(ids) > 0 {
				c.add(levelWarning, "coverage", path, "more than one segment answers for %s", plural(uint64(len(ids)), "fragment", "fragments"))
			}
			return err
		},
		"segments": each(func(s struct {
			Directory string
			Bitmap    string `json:"bitmap_state"`
		}) {
			directories = append(directories, s.Directory)
			if s.Bitmap == "undecodable" {
				c.add(levelError, "coverage", dir+"/"+s.Directory+"/segment.json", "the fragment bitmap does not decode")
			}
		}),
	})
	if c.v.quick {
		return
	}
	for _, d := range directories {
		if names, err := c.v.names(c.dir + dir + "/" + d + "/scan"); err == nil && slices.Contains(names, "summary.json") {
			c.segment(dir + "/" + d + "/scan/summary.json")
		}
	}
}

// segment checks the addresses in the files of a segment.
func (c *versionCheck) segment(path string) {
	type file struct {
		Path  string
		Error *errorDoc
	}
	var entries, masked *uint64
	var outcomes map[string]uint64
	var whole int
	ok := c.scan("index_files", path, members{
		"entries": into(&entries), "masked": into(&masked), "outcomes": into(&outcomes),
		"whole_fragments_unresolved": each(func(struct{ Live bool }) { whole++ }),
		"files": each(func(f file) {
			if f.Error != nil {
				c.add(levelError, "index_files", path, "%s: %s", f.Path, f.Error.text())
			}
		}),
	})
	if !ok {
		return
	}
	what := fmt.Sprintf("of %s entries of the index files", knownNumber(entries))
	c.outcomes("addresses", path, what, outcomes)
	if n := outcomes["dangling"]; n > 0 {
		c.add(levelWarning, "addresses", path, "%d %s name rows of fragments that are gone", n, what)
	}
	if whole > 0 {
		c.add(levelError, "addresses", path, "sets name %s as a whole, and what became of the rows cannot be told", plural(uint64(whole), "fragment", "fragments"))
	}
}
