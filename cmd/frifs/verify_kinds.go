package main

import (
	"strconv"
	"strings"

	"github.com/frifs/frifs/nodes"
)

// knownKind makes certain what a piece of advice says for one kind of vector index only. It is "" where the index is of
// another kind, and text as it is where nobody can tell.
func (c *versionCheck) knownKind(text string) string {
	before, rest, ok := strings.Cut(text, nodes.IfHNSW)
	if !ok {
		return text
	}
	name, err := strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(before, "index "), ": "))
	if err != nil {
		return text
	}
	var doc struct {
		Name     string
		Segments []struct{ UUID, Directory string }
	}
	dir := c.dir + "indices/" + nodes.EncodeName(name)
	if err := readJSON(c.v.ctx, c.v.root, dir+"/index.json", &doc); err != nil || doc.Name != name {
		return text
	}
	known := len(doc.Segments) > 0
	for _, s := range doc.Segments {
		kind := c.v.kindOf(s.UUID, dir+"/"+s.Directory+"/segment.json")
		if strings.Contains(kind, "HNSW") {
			return before + "it is an " + kind + " index: " + rest
		}
		known = known && kind != ""
	}
	if known {
		return ""
	}
	return text
}

// kindOf is what kind of vector index the files of a segment hold; "" where they do not say. A segment never changes, so
// the first version to ask does it for all.
func (v *verifier) kindOf(uuid, path string) string {
	if kind, ok := v.kinds.Load(uuid); ok {
		return kind.(string)
	}
	var doc struct {
		Layout *struct{ Facts struct{ Kind string } }
	}
	if err := readJSON(v.ctx, v.root, path, &doc); err != nil || doc.Layout == nil {
		return ""
	}
	v.kinds.Store(uuid, doc.Layout.Facts.Kind)
	return doc.Layout.Facts.Kind
}
