package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// catBuffer is how much is generated and written at a time.
const catBuffer = 512 << 10

func newCatCmd() *cobra.Command {
	var t target
	var offset, length int64
	cmd := &cobra.Command{
		Use:   "cat URI PATH...",
		Short: "Print files of the tree, without a mount",
		Long: `Prints files of the tree to stdout. PATH is from the root and may go through links.
A path that fails is named on stderr, and the others are printed all the same.
With --offset and --length only that range of bytes is made: any part of a huge file costs no more
than its length. A negative offset counts from the end of the file.`,
		Example: `  frifs cat /data/t.lance latest/fri/history.json | jq '.transitions[].kind'
  frifs cat --offset 1000000 --length 4096 /data/t.lance latest/fri/transitions/0001/mapping.csv
  frifs cat --version 12 /data/t.lance latest/version.json`,
		Args: args(2, -1, "URI PATH..."),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("length") && length < 0 {
				return usagef("--length: %d is negative", length)
			}
			src, err := t.source(cmd, args[0])
			if err != nil {
				return err
			}
			defer src.close()
			root := src.root
			src.warnOmissions(cmd.Context(), cmd.ErrOrStderr(), args[1])
			growPipe(cmd.OutOrStdout())
			var first error
			for _, path := range args[1:] {
				err := catFile(cmd.Context(), root, path, offset, length, cmd.OutOrStdout())
				if err == nil {
					continue
				}
				var out writeError
				if errors.As(err, &out) || cmd.Context().Err() != nil {
					return err
				}
				fmt.Fprintln(cmd.ErrOrStderr(), "frifs:", plain(err))
				if first == nil {
					first = printed{err}
				}
			}
			return first
		}),
	}
	t.flags(cmd)
	t.treeFlags(cmd)
	cmd.Flags().Int64Var(&offset, "offset", 0, "first byte; negative: from the end")
	cmd.Flags().Int64Var(&length, "length", -1, "number of bytes")
	cmd.Flags().Lookup("length").DefValue = "to the end" // -1 means nothing to a reader
	return cmd
}

// writeError is an error of the output, after which there is no sense in going on.
type writeError struct{ err error }

func (w writeError) Error() string { return w.err.Error() }
func (w writeError) Unwrap() error { return w.err }

// catFile writes length bytes from offset on (length < 0: all of the rest) of the file at path.
func catFile(ctx context.Context, root nodes.Dir, path string, offset, length int64, out io.Writer) error {
	n, err := nodes.Resolve(ctx, root, strings.Trim(path, "/"))
	if err != nil {
		return err
	}
	f, ok := n.(nodes.File)
	if !ok {
		return fault.Wrap("cat", path, errIsDir)
	}
	a, err := f.Attr(ctx)
	if err != nil {
		return err
	}
	if offset < 0 {
		offset = max(0, a.Size+offset)
	}
	end := a.Size
	if length >= 0 && length < end-offset {
		end = offset + length
	}
	if offset >= end {
		return nil
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	buf := make([]byte, min(catBuffer, end-offset))
	for offset < end {
		p := buf[:min(int64(len(buf)), end-offset)]
		k, err := h.ReadAt(ctx, p, offset)
		if k > 0 {
			if _, werr := out.Write(p[:k]); werr != nil {
				return writeError{werr}
			}
		}
		if err != nil {
			return err
		}
		if k < len(p) {
			return fault.New("cat", path, fault.Corrupt, "the file ends at byte %d; its size is %d", offset+int64(k), a.Size)
		}
		offset += int64(k)
	}
	return nil
}
