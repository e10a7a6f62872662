package serve

import (
	"context"
	"net/url"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// maxLinks bounds how many links one path may go through.
const maxLinks = 40

// request is the path of a request: names of the tree, and whether a slash stood at the end.
type request struct {
	names []string
	dir   bool
	plain bool // written as this server writes it: no empty segments
}

// parsePath splits the path of a URL at its slashes and undoes the percent-encoding of each segment. Empty segments
// are left out.
func parsePath(u *url.URL) (request, error) {
	escaped := u.EscapedPath()
	rest, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return request{}, fault.New("serve", escaped, fault.Invalid, "the path of a request begins with a slash")
	}
	q := request{dir: rest == "" || strings.HasSuffix(rest, "/"), plain: true}
	rest = strings.TrimSuffix(rest, "/")
	if rest == "" {
		q.plain = len(escaped) == 1
		return q, nil
	}
	for segment := range strings.SplitSeq(rest, "/") {
		name, err := url.PathUnescape(segment)
		switch {
		case err != nil:
			return request{}, fault.New("serve", escaped, fault.Invalid, "%w", err)
		case name == "":
			q.plain = false
			continue
		case name == "." || name == "..":
			return request{}, fault.New("serve", escaped, fault.Invalid, "a path does not go up or stay: %q", name)
		case strings.ContainsAny(name, "/\x00"):
			return request{}, fault.New("serve", escaped, fault.NotFound, "no name holds a slash or a zero byte; the %% of a name is written %%25")
		}
		q.names = append(q.names, name)
	}
	return q, nil
}

// escapePath is the path of a URL for names of the tree.
func escapePath(names []string, dir bool) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(n))
	}
	if dir || len(names) == 0 {
		b.WriteByte('/')
	}
	return b.String()
}

// place is where a path leads: a node that is no link, its real path, and the directory that holds it.
type place struct {
	node   nodes.Node
	names  []string // without links
	parent nodes.Dir
	linked bool // the path went through a link
}

// find walks names from the root, through links.
func find(ctx context.Context, root nodes.Dir, names []string) (place, error) {
	type step struct {
		dir  nodes.Dir
		name string
	}
	at := place{node: root, parent: root}
	var above []step // the directories on the way, each with the name below it
	todo, links := names, 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".": // of a link's target
			continue
		case "..":
			if len(above) == 0 {
				return place{}, fault.New("serve", strings.Join(names, "/"), fault.NotFound, "a link leads out of the tree")
			}
			at.node = above[len(above)-1].dir
			above = above[:len(above)-1]
			continue
		}
		dir, ok := at.node.(nodes.Dir)
		if !ok {
			return place{}, fault.New("serve", strings.Join(names, "/"), fault.NotFound, "%q is below a file", name)
		}
		n, err := dir.Lookup(ctx, name)
		if err != nil {
			return place{}, err
		}
		l, ok := n.(nodes.Link)
		if !ok {
			above = append(above, step{dir, name})
			at.node = n
			continue
		}
		if links++; links > maxLinks {
			return place{}, fault.New("serve", strings.Join(names, "/"), fault.Invalid, "more than %d links", maxLinks)
		}
		target, err := l.Target(ctx)
		if err != nil {
			return place{}, err
		}
		at.linked = true
		todo = append(strings.Split(target, "/"), todo...)
	}
	for _, s := range above {
		at.names = append(at.names, s.name)
		at.parent = s.dir
	}
	return at, nil
}

// path is the place's path in the tree, without a leading slash.
func (p place) path() string { return strings.Join(p.names, "/") }
