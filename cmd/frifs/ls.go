package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/nodes"
)

func newLsCmd() *cobra.Command {
	var t target
	var long, recursive bool
	cmd := &cobra.Command{
		Use:   "ls URI [PATH]",
		Short: "List a directory of the tree, without a mount",
		Long: `Lists the names in a directory of the tree, one a line, in byte order. PATH is from the root
and may go through links. A listing costs no more than the names; -l looks up the size of each file.`,
		Example: `  frifs ls /data/t.lance
  frifs ls -l /data/t.lance latest/fri
  frifs ls -R /data/t.lance latest/indices
  frifs ls --for-reader 2.0.1 -R /data/t.lance latest/remapped.lance/_indices`,
		Args: args(1, 2, "URI [PATH]"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			s, err := t.source(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.close()
			root, path := s.root, ""
			if len(args) > 1 {
				path = strings.Trim(args[1], "/")
			}
			s.warnOmissions(ctx, cmd.ErrOrStderr(), path)
			n, err := nodes.Resolve(ctx, root, path)
			if err != nil {
				return err
			}
			out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
			l := lister{ctx: ctx, out: out, err: cmd.ErrOrStderr(), long: long, recursive: recursive}
			l.list(n, path, true)
			if err := out.Flush(); err != nil {
				return err
			}
			return l.first
		}),
	}
	t.flags(cmd)
	t.treeFlags(cmd)
	cmd.Flags().BoolVarP(&long, "long", "l", false, "mode, size, time, and where links lead")
	cmd.Flags().BoolVarP(&recursive, "recursive", "R", false, "the directories below too; links are not followed")
	return cmd
}

// lister prints directories. Errors of single names are printed and do not end the listing.
type lister struct {
	ctx             context.Context
	out             *bufio.Writer
	err             io.Writer
	long, recursive bool
	first           error // the first error, already printed
}

func (l *lister) fail(path string, err error) {
	_ = l.out.Flush() // keep the order of what is seen on a terminal
	fmt.Fprintf(l.err, "frifs: %s: %s\n", path, plainBelow(path, err))
	if l.first == nil {
		l.first = printed{err}
	}
}

func (l *lister) list(n nodes.Node, path string, top bool) {
	dir, ok := n.(nodes.Dir)
	if !ok {
		e := nodes.Entry{Name: path, Type: n.Type()}
		if l.long {
			a, err := n.Attr(l.ctx)
			if err != nil {
				l.fail(path, err)
				return
			}
			e.Attr = &a
		}
		l.line(e, n)
		return
	}
	entries, err := dir.Entries(l.ctx)
	if err != nil {
		l.fail(path, err)
		return
	}
	if l.recursive {
		if !top {
			l.out.WriteByte('\n')
		}
		shown := path
		if shown == "" {
			shown = "."
		}
		l.out.WriteString(shown)
		l.out.WriteString(":\n")
	}
	children := make([]nodes.Node, len(entries))
	for i, e := range entries {
		if l.ctx.Err() != nil {
			return
		}
		needNode := l.recursive && e.Type == nodes.TypeDir || l.long && (e.Attr == nil || e.Type == nodes.TypeLink)
		if needNode {
			ch, err := dir.Lookup(l.ctx, e.Name)
			if err == nil && l.long && (e.Attr == nil || e.Type == nodes.TypeFile) {
				var a nodes.Attr
				if a, err = ch.Attr(l.ctx); err == nil {
					e.Attr = &a
				}
			}
			if err != nil {
				l.fail(joinPath(path, e.Name), err)
			}
			children[i] = ch
		}
		l.line(e, children[i])
	}
	if !l.recursive {
		return
	}
	for i, e := range entries {
		if e.Type == nodes.TypeDir && children[i] != nil && l.ctx.Err() == nil {
			l.list(children[i], joinPath(path, e.Name), false)
		}
	}
}

// line prints one name. An attribute that cannot be had is a question mark, as with ls.
func (l *lister) line(e nodes.Entry, n nodes.Node) {
	if !l.long {
		l.out.WriteString(e.Name)
		l.out.WriteByte('\n')
		return
	}
	size, mode, when := "?", typeLetter(e.Type)+"?????????", "?"
	if a := e.Attr; a != nil {
		size = fmt.Sprint(a.Size)
		mode = typeLetter(e.Type) + permString(a.Perm)
		when = a.Mtime.UTC().Format("2006-01-02T15:04:05Z")
	}
	fmt.Fprintf(l.out, "%s %14s %s %s", mode, size, when, e.Name)
	if link, ok := n.(nodes.Link); ok {
		target, err := link.Target(l.ctx)
		if err != nil {
			target = "?"
		}
		l.out.WriteString(" -> " + target)
	}
	l.out.WriteByte('\n')
}

func typeLetter(t nodes.Type) string {
	switch t {
	case nodes.TypeDir:
		return "d"
	case nodes.TypeLink:
		return "l"
	case nodes.TypeFile:
		return "-"
	}
	return "?"
}

func permString(perm uint32) string {
	b := []byte("rwxrwxrwx")
	for i := range b {
		if perm&(1<<(8-i)) == 0 {
			b[i] = '-'
		}
	}
	return string(b)
}

func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

var errIsDir = errors.New("is a directory")
