package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/internal/store"
)

func newCacheCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Look at the disk cache, or clear it",
		Long: `With --cache-dir, what came from an object store is kept on disk, so that the next command or mount
need not fetch it again. Each block is named by the object it is part of, e-tag included, and has a
checksum: a table that was replaced is never served from it, and a broken block is fetched anew.
Several processes may share the directory.`,
		Example: `  frifs cache info /var/cache/frifs
  frifs cache clear /var/cache/frifs`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("cache: unknown command %q; there are info and clear", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCacheInfoCmd(), newCacheClearCmd())
	return cmd
}

func newCacheInfoCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "info DIR",
		Short:   "Say how much the disk cache holds",
		Example: `  frifs cache info /var/cache/frifs`,
		Args:    args(1, 1, "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := store.InspectDiskCache(args[0])
			if err != nil {
				return explainPath(args[0], err)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "directory  %s\nblocks     %d\nbytes      %d\n", u.Dir, u.Blocks, u.Bytes)
			if u.Blocks > 0 {
				fmt.Fprintf(out, "last used  %s to %s\n", u.Oldest.UTC().Format(time.RFC3339), u.Newest.UTC().Format(time.RFC3339))
			}
			return nil
		},
	}
}

func newCacheClearCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "clear DIR",
		Short:   "Remove all blocks of the disk cache",
		Long:    "Removes all blocks of the disk cache in DIR, and nothing else. Mounts that use it go on.",
		Example: `  frifs cache clear /var/cache/frifs`,
		Args:    args(1, 1, "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := store.ClearDiskCache(args[0])
			if err != nil {
				return explainPath(args[0], err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "frifs: removed %d blocks, %d bytes, from %s\n", u.Blocks, u.Bytes, u.Dir)
			return nil
		},
	}
}
