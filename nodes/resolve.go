package nodes

import (
	"context"
	"strings"

	"github.com/frifs/frifs/fault"
)

// maxLinks bounds how many links one path may go through.
const maxLinks = 40

// Resolve walks path from root, through links, and returns the node it names. The path is slash-separated; a leading
// slash and empty or "." elements are ignored, ".." goes up and stays at the root. Errors: fault.NotFound, the error of
// a directory on the way, fault.Invalid for a file used as a directory or too many links.
func Resolve(ctx context.Context, root Dir, path string) (Node, error) {
	return walkPath(ctx, root, path, true)
}

// ResolveNoFollow is Resolve, but a link at the end of the path is returned itself.
func ResolveNoFollow(ctx context.Context, root Dir, path string) (Node, error) {
	return walkPath(ctx, root, path, false)
}

func walkPath(ctx context.Context, root Dir, path string, follow bool) (Node, error) {
	var (
		dirs  = []Dir{root}
		todo  = strings.Split(path, "/")
		links = 0
		at    Node
	)
	at = root
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if name == "" || name == "." {
			continue
		}
		here, ok := at.(Dir)
		if !ok {
			return nil, fault.New("lookup", path, fault.NotFound, "%q is below a file", name)
		}
		if name == ".." {
			if len(dirs) > 1 {
				dirs = dirs[:len(dirs)-1]
			}
			at = dirs[len(dirs)-1]
			continue
		}
		next, err := here.Lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		if l, ok := next.(Link); ok && (follow || hasElements(todo)) {
			if links++; links > maxLinks {
				return nil, fault.New("lookup", path, fault.Invalid, "more than %d links", maxLinks)
			}
			target, err := l.Target(ctx)
			if err != nil {
				return nil, err
			}
			todo = append(strings.Split(target, "/"), todo...)
			at = here
			continue
		}
		if d, ok := next.(Dir); ok {
			dirs = append(dirs, d)
		}
		at = next
	}
	return at, nil
}

func hasElements(names []string) bool {
	for _, n := range names {
		if n != "" && n != "." {
			return true
		}
	}
	return false
}
