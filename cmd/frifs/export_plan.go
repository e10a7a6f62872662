package main

import (
	"context"
	"path"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// exportItem is one file, directory or link to be made at rel ("" is DEST itself).
type exportItem struct {
	rel    string
	node   nodes.Node
	size   int64      // of a file, -1 while unknown
	attr   nodes.Attr // of a directory, if have
	have   bool
	target string // of a link
}

// exportPlan is everything to be made. dirs stand before what is in them.
type exportPlan struct {
	files, dirs, links []exportItem
}

// maxFollowed bounds how deep links that lead out of what is exported may be nested.
const maxFollowed = 16

// planner walks the tree. Names only are read: what a listing does not say of a file is found when it is copied.
type planner struct {
	e    *export
	out  *exportPlan
	made map[string]string // rel to the target of a link, or "" for a file or directory
	wait []pendingLink
}

// pendingLink is a link whose fate depends on the rest of the plan.
type pendingLink struct {
	item   exportItem
	from   string // path in the tree, through links, of the directory that holds it
	bound  string // rel that it may not leave to be kept
	nested int
	above  []uint64 // inodes of the directories that hold it
}

// plan lists what is to be made of n, the node at e.path.
func (e *export) plan(ctx context.Context, n nodes.Node) (*exportPlan, error) {
	p := &planner{e: e, out: &exportPlan{}, made: map[string]string{}}
	p.add(ctx, n, "", e.path, "", 0, nil)
	for len(p.wait) > 0 && ctx.Err() == nil {
		// Links are settled when all else is known; following one adds more.
		wait := p.wait
		p.wait = nil
		for _, l := range wait {
			p.made[l.item.rel] = l.item.target
		}
		var follow []pendingLink
		for _, l := range wait {
			if p.inside(l) {
				p.out.links = append(p.out.links, l.item)
			} else {
				follow = append(follow, l)
			}
		}
		for _, l := range follow {
			delete(p.made, l.item.rel)
			p.follow(ctx, l)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return p.out, nil
}

// add plans n at rel. from is its path in the tree, above are the inodes of the directories that hold it.
func (p *planner) add(ctx context.Context, n nodes.Node, rel, from, bound string, nested int, above []uint64) {
	switch n := n.(type) {
	case nodes.Dir:
		p.addDir(ctx, n, rel, from, bound, nested, above)
	case nodes.Link:
		target, err := n.Target(ctx)
		if err != nil {
			p.e.told.fail(from, err)
			return
		}
		p.wait = append(p.wait, pendingLink{exportItem{rel: rel, node: n, target: target}, parentPath(from), bound, nested, above})
	case nodes.File:
		p.made[rel] = ""
		p.out.files = append(p.out.files, exportItem{rel: rel, node: n, size: -1})
	}
}

func (p *planner) addDir(ctx context.Context, d nodes.Dir, rel, from, bound string, nested int, above []uint64) {
	for _, ino := range above {
		if ino == d.Ino() {
			p.e.told.fail(from, fault.New("export", from, fault.Invalid, "a link leads back to a directory above it"))
			return
		}
	}
	item := exportItem{rel: rel, node: d}
	if a, err := d.Attr(ctx); err == nil {
		item.attr, item.have = a, true
	} else {
		p.e.told.fail(from, err)
	}
	p.made[rel] = ""
	p.out.dirs = append(p.out.dirs, item)
	entries, err := d.Entries(ctx)
	if err != nil {
		p.e.told.fail(from, err)
		return
	}
	above = append(above[:len(above):len(above)], d.Ino())
	for _, en := range entries {
		if ctx.Err() != nil {
			return
		}
		at := joinPath(from, en.Name)
		ch, err := d.Lookup(ctx, en.Name)
		if err != nil {
			p.e.told.fail(at, err)
			continue
		}
		files := len(p.out.files)
		p.add(ctx, ch, joinPath(rel, en.Name), at, bound, nested, above)
		if len(p.out.files) == files+1 && en.Type == nodes.TypeFile && en.Attr != nil && ch.Ino() == en.Ino {
			p.out.files[files].size = en.Attr.Size
		}
	}
}

// inside reports whether a link leads, within its bound, to something that is planned.
func (p *planner) inside(l pendingLink) bool {
	at := parentPath(l.item.rel)
	todo := strings.Split(l.item.target, "/")
	if strings.HasPrefix(l.item.target, "/") {
		return false
	}
	for hops := 0; len(todo) > 0; {
		elem := todo[0]
		todo = todo[1:]
		switch elem {
		case "", ".":
			continue
		case "..":
			if at == l.bound {
				return false
			}
			at = parentPath(at)
			continue
		}
		next := joinPath(at, elem)
		target, ok := p.made[next]
		if !ok {
			return false
		}
		if target == "" {
			at = next
			continue
		}
		if hops++; hops > maxFollowed {
			return false
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return true
}

// follow plans what a link leads to in its place.
func (p *planner) follow(ctx context.Context, l pendingLink) {
	at := joinPath(l.from, path.Base(l.item.rel))
	if l.nested >= maxFollowed {
		p.e.told.fail(at, fault.New("export", at, fault.Invalid, "more than %d links in links", maxFollowed))
		return
	}
	n, err := nodes.Resolve(ctx, p.e.src.root, joinPath(l.from, l.item.target))
	if fault.Is(err, fault.NotFound) {
		// It dangles in the tree, and so it does in the copy.
		p.made[l.item.rel] = l.item.target
		p.out.links = append(p.out.links, l.item)
		return
	}
	if err != nil {
		p.e.told.fail(at, err)
		return
	}
	p.add(ctx, n, l.item.rel, at, l.item.rel, l.nested+1, l.above)
}

// parts are the names under which files of the plan may be half-written.
func (plan *exportPlan) parts() map[string]bool {
	names := make(map[string]bool, len(plan.files))
	for _, it := range plan.files {
		names[it.rel] = true
	}
	return names
}

func parentPath(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}
