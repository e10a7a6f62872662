package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// warnOmissions says on stderr which --omit-index name no index of what is shown: of the version that path goes through,
// else of the newest. A manifest that cannot be read is for others to tell.
func (s *source) warnOmissions(ctx context.Context, stderr io.Writer, path string) {
	number := versionInPath(path)
	unused, err := s.tree.UnusedOmissions(ctx, number)
	if err != nil {
		return
	}
	of := "the newest version shown"
	if number != nil {
		of = "version " + strconv.FormatUint(*number, 10)
	}
	for _, name := range unused {
		fmt.Fprintf(stderr, "frifs: warning: --omit-index: %s has no index of the name or type %q; other versions may (frifs ls URI versions/N/indices)\n", of, name)
	}
}

// versionInPath is the number in a path such as versions/12/remapped.lance; nil where there is none.
func versionInPath(path string) *uint64 {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 || parts[0] != "versions" {
		return nil
	}
	n, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}
