package serve

import (
	"bufio"
	"context"
	_ "embed" // page.html
	"encoding/json"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/frifs/frifs/nodes"
)

// maxTargets is how many links of a directory are read to show where they lead: a directory of links (tags) may need a
// request to the store for each.
const maxTargets = 16

//go:embed page.html
var pageText string

// pages renders directories.
type pages struct{ html *template.Template }

func newPages() pages { return pages{template.Must(template.New("page").Parse(pageText))} }

// line is an entry of a directory, and where it leads if it is a link and that was looked at.
type line struct {
	nodes.Entry
	target string
}

// href is the entry's reference relative to its directory. "./" keeps a colon in the name from being taken for the end of
// a scheme.
func (l line) href() string {
	ref := "./" + url.PathEscape(l.Name)
	if l.Type == nodes.TypeDir {
		ref += "/"
	}
	return ref
}

// list makes the lines of a directory: what the listing has at hand.
func (h *handler) list(ctx context.Context, dir nodes.Dir) ([]line, error) {
	return run(ctx, h.workers, h.opt.MetadataTimeout, func(ctx context.Context) ([]line, error) {
		es, err := dir.Entries(ctx)
		if err != nil {
			return nil, err
		}
		lines, links := make([]line, len(es)), 0
		for i, e := range es {
			lines[i].Entry = e
			if e.Type != nodes.TypeLink {
				continue
			}
			if links++; links > maxTargets {
				continue
			}
			if n, err := dir.Lookup(ctx, e.Name); err == nil {
				if l, ok := n.(nodes.Link); ok {
					lines[i].target, _ = l.Target(ctx) // a link without a target is shown as one
				}
			}
		}
		return lines, nil
	}, nil)
}

// directory answers with the page of a directory, or its listing as JSON.
func (h *handler) directory(w *response, r *http.Request, o opened, dir nodes.Dir) {
	lines, err := h.list(r.Context(), dir)
	if err != nil {
		h.fail(w, r, "list", o.path(), err)
		return
	}
	head := w.Header()
	head.Set("Cache-Control", "no-cache")
	head.Set("Vary", "Accept")
	head.Set("Content-Type", "text/html; charset=utf-8")
	asJSON := wantsJSON(r)
	if asJSON {
		head.Set("Content-Type", "application/json")
	}
	if r.Method == http.MethodHead {
		return
	}
	out := bufio.NewWriterSize(struct{ io.Writer }{w}, 64<<10)
	if asJSON {
		err = writeJSON(out, escapePath(o.names, true), lines)
	} else {
		err = h.writeHTML(out, o, lines)
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil && w.failed == nil {
		w.failed = err
	}
}

type crumb struct{ Name, Href string }

type pageHead struct {
	Path, Title string
	Crumbs      []crumb
	Up          bool
}

type pageRow struct{ Name, Mark, Href, Target, Bytes, Time string }

type pageFoot struct {
	Count   int
	Release string
}

// writeHTML writes row by row: a directory may hold millions of names.
func (h *handler) writeHTML(out io.Writer, o opened, lines []line) error {
	head := pageHead{Path: "/" + o.path(), Title: h.opt.Title, Up: len(o.names) > 0}
	for i, name := range o.names {
		c := crumb{Name: name}
		if i < len(o.names)-1 {
			c.Href = escapePath(o.names[:i+1], true)
		}
		head.Crumbs = append(head.Crumbs, c)
	}
	if err := h.pages.html.ExecuteTemplate(out, "head", head); err != nil {
		return err
	}
	row := h.pages.html.Lookup("row")
	for _, l := range lines {
		v := pageRow{Name: l.Name, Href: l.href(), Target: l.target}
		if l.Type == nodes.TypeDir {
			v.Mark = "/"
		}
		if l.Attr != nil {
			if l.Type == nodes.TypeFile {
				v.Bytes = strconv.FormatInt(l.Attr.Size, 10)
			}
			v.Time = l.Attr.Mtime.UTC().Format(time.DateTime)
		}
		if err := row.Execute(out, v); err != nil {
			return err
		}
	}
	return h.pages.html.ExecuteTemplate(out, "foot", pageFoot{len(lines), h.opt.Release})
}

// jsonEntry is an entry in a listing as JSON. What is not known is null.
type jsonEntry struct {
	Name     string     `json:"name"`
	Type     string     `json:"type"` // "directory", "file" or "link"
	Href     string     `json:"href"` // relative to the directory
	Target   *string    `json:"target"`
	Size     *int64     `json:"size"` // bytes, of a file
	Modified *time.Time `json:"modified"`
}

// writeJSON writes {"path", "entries": [...]}, an entry per line.
func writeJSON(out *bufio.Writer, path string, lines []line) error {
	p, err := json.Marshal(path)
	if err != nil {
		return err
	}
	out.WriteString("{\n  \"path\": ")
	out.Write(p)
	out.WriteString(",\n  \"entries\": [")
	for i, l := range lines {
		e := jsonEntry{Name: l.Name, Type: "file", Href: l.href()}
		switch l.Type {
		case nodes.TypeDir:
			e.Type = "directory"
		case nodes.TypeLink:
			e.Type = "link"
			if l.target != "" {
				e.Target = &l.target
			}
		case nodes.TypeFile, nodes.TypeUnknown:
		}
		if l.Attr != nil {
			t := l.Attr.Mtime.UTC()
			e.Modified = &t
			if l.Type == nodes.TypeFile {
				e.Size = &l.Attr.Size
			}
		}
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		out.Write(b)
	}
	if len(lines) > 0 {
		out.WriteString("\n  ")
	}
	out.WriteString("]\n}\n")
	return nil
}
