package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

func newStatCmd() *cobra.Command {
	var t target
	format := newChoice("text", "json")
	cmd := &cobra.Command{
		Use:   "stat URI [PATH]",
		Short: "Show what stat would say of a file of the tree",
		Long: `Shows type, exact size, mode, time and inode number of a file, directory or link of the tree.
A link at the end of PATH is shown itself; a tag whose version was cleaned up is said to dangle.
For a file that has to be scanned for its size this waits up to --op-timeout.`,
		Example: `  frifs stat /data/t.lance latest/fri/transitions/0001/mapping.csv
  frifs stat --format json /data/t.lance latest
  frifs stat /data/t.lance tags/v1`,
		Args: args(1, 2, "URI [PATH]"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
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
			n, err := nodes.ResolveNoFollow(ctx, root, path)
			if err != nil {
				return err
			}
			a, err := n.Attr(ctx)
			if err != nil {
				return err
			}
			s := statOutput{
				Path: path, Type: typeName(n.Type()), Size: a.Size, Mode: fmt.Sprintf("%04o", a.Perm),
				Modified: a.Mtime.UTC().Format(time.RFC3339Nano), Inode: fmt.Sprint(a.Ino),
			}
			if l, ok := n.(nodes.Link); ok {
				target, err := l.Target(ctx)
				if err != nil {
					return err
				}
				s.Target = &target
				if _, err := nodes.Resolve(ctx, root, path); fault.Is(err, fault.NotFound) {
					why := plain(err)
					s.Dangling = &why
				}
			}
			if f, ok := n.(nodes.File); ok {
				c := className(f.Class())
				s.Class = &c
			}
			return s.print(cmd, format.word)
		}),
	}
	t.flags(cmd)
	t.treeFlags(cmd)
	cmd.Flags().Var(format, "format", "`form` of the output: text or json")
	return cmd
}

// statOutput is what stat prints. The inode is a string in JSON, since it can exceed 2^53.
type statOutput struct {
	Path     string  `json:"path"`
	Type     string  `json:"type"`
	Size     int64   `json:"size"`
	Mode     string  `json:"mode"`
	Modified string  `json:"modified"`
	Inode    string  `json:"inode"`
	Class    *string `json:"cost_class"`
	Target   *string `json:"target"`
	Dangling *string `json:"dangling"` // why the target is not there; null where it is
}

func (s statOutput) print(cmd *cobra.Command, format string) error {
	out := cmd.OutOrStdout()
	if format == "json" {
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", b)
		return err
	}
	var b strings.Builder
	path := s.Path
	if path == "" {
		path = "."
	}
	fmt.Fprintf(&b, "path:     %s\ntype:     %s\nsize:     %d\nmode:     %s\nmodified: %s\ninode:    %s\n",
		path, s.Type, s.Size, s.Mode, s.Modified, s.Inode)
	if s.Class != nil {
		fmt.Fprintf(&b, "cost:     %s\n", *s.Class)
	}
	if s.Target != nil {
		fmt.Fprintf(&b, "target:   %s\n", *s.Target)
	}
	if s.Dangling != nil {
		fmt.Fprintf(&b, "dangling: %s\n", *s.Dangling)
	}
	_, err := fmt.Fprint(out, b.String())
	return err
}

func typeName(t nodes.Type) string {
	switch t {
	case nodes.TypeDir:
		return "directory"
	case nodes.TypeFile:
		return "file"
	case nodes.TypeLink:
		return "link"
	}
	return "unknown"
}

func className(c nodes.Class) string {
	switch c {
	case nodes.C0:
		return "C0"
	case nodes.C1:
		return "C1"
	}
	return "C2"
}
