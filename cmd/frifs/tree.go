package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/nodes"
)

func newTreeCmd() *cobra.Command {
	var t target
	depth := 3
	cmd := &cobra.Command{
		Use:   "tree URI [PATH]",
		Short: "Draw the tree, without a mount",
		Long: `Draws the names below a directory of the tree. Links are shown and not followed. Nothing but
listings is read.`,
		Example: `  frifs tree /data/t.lance
  frifs tree --depth 5 /data/t.lance latest/fri
  frifs tree --depth 0 --version 12 /data/t.lance`,
		Args: args(1, 2, "URI [PATH]"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			if depth < 0 {
				return usagef("--depth: %d is negative", depth)
			}
			src, err := t.source(cmd, args[0])
			if err != nil {
				return err
			}
			defer src.close()
			root, path := src.root, ""
			if len(args) > 1 {
				path = strings.Trim(args[1], "/")
			}
			src.warnOmissions(cmd.Context(), cmd.ErrOrStderr(), path)
			return drawTree(cmd.Context(), root, path, depth, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	t.flags(cmd)
	t.treeFlags(cmd)
	cmd.Flags().IntVar(&depth, "depth", depth, "levels to draw; 0 for all")
	return cmd
}

// drawTree draws depth levels (0: all) below path.
func drawTree(ctx context.Context, root nodes.Dir, path string, depth int, stdout, stderr io.Writer) error {
	n, err := nodes.Resolve(ctx, root, path)
	if err != nil {
		return err
	}
	d := drawing{ctx: ctx, out: bufio.NewWriterSize(stdout, 64<<10), err: stderr, depth: depth}
	shown := path
	if shown == "" {
		shown = "."
	}
	fmt.Fprintln(d.out, shown)
	if dir, ok := n.(nodes.Dir); ok {
		d.below(dir, path, "", 1)
		fmt.Fprintf(d.out, "\n%d directories, %d files, %d links\n", d.dirs, d.files, d.links)
	}
	if err := d.out.Flush(); err != nil {
		return err
	}
	return d.first
}

type drawing struct {
	ctx                context.Context
	out                *bufio.Writer
	err                io.Writer
	depth              int
	dirs, files, links int
	first              error
}

func (d *drawing) below(dir nodes.Dir, path, indent string, level int) {
	if d.depth > 0 && level > d.depth {
		return
	}
	entries, err := dir.Entries(d.ctx)
	if err != nil {
		d.fail(path, err)
		return
	}
	for i, e := range entries {
		if d.ctx.Err() != nil {
			return
		}
		branch, more := "├── ", "│   "
		if i == len(entries)-1 {
			branch, more = "└── ", "    "
		}
		d.out.WriteString(indent + branch + e.Name)
		switch e.Type {
		case nodes.TypeDir:
			d.dirs++
			d.out.WriteByte('\n')
			if d.depth > 0 && level == d.depth {
				continue
			}
			ch, err := dir.Lookup(d.ctx, e.Name)
			if err != nil {
				d.fail(joinPath(path, e.Name), err)
				continue
			}
			if sub, ok := ch.(nodes.Dir); ok {
				d.below(sub, joinPath(path, e.Name), indent+more, level+1)
			}
			continue
		case nodes.TypeLink:
			d.links++
			if ch, err := dir.Lookup(d.ctx, e.Name); err == nil {
				if l, ok := ch.(nodes.Link); ok {
					if target, err := l.Target(d.ctx); err == nil {
						d.out.WriteString(" -> " + target)
					}
				}
			}
		default:
			d.files++
		}
		d.out.WriteByte('\n')
	}
}

func (d *drawing) fail(path string, err error) {
	_ = d.out.Flush()
	fmt.Fprintf(d.err, "frifs: %s: %s\n", path, plainBelow(path, err))
	if d.first == nil {
		d.first = printed{err}
	}
}
