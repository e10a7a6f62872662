package main

import (
	"github.com/spf13/cobra"
)

const rootHelp = `frifs mounts a Lance dataset read-only and shows each of its versions as plain files: the
fragment reuse index as JSON, and each recorded rewrite as a CSV that maps old row addresses to
new ones. Everything is computed when it is read; nothing is written to the dataset.

The same files can be read without a mount: frifs ls, cat, stat and tree.

URI is a directory, or a URL such as file:///data/t.lance.`

const rootExample = `  frifs mount /data/t.lance /mnt/t          # then: ls /mnt/t, jq . /mnt/t/latest/fri/history.json
  frifs cat /data/t.lance latest/fri/history.json
  frifs translate /data/t.lance 1:17 1:18
  frifs demo`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "frifs",
		Short:         "Mount a Lance dataset and see where its rows went",
		Long:          rootHelp,
		Example:       rootExample,
		Version:       release(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("frifs {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		newMountCmd(), newUmountCmd(),
		newLsCmd(), newCatCmd(), newStatCmd(), newTreeCmd(),
		newVersionsCmd(), newTranslateCmd(), newHistoryCmd(), newStatusCmd(),
		newDemoCmd(), newDoctorCmd(), newCompletionCmd(),
	)
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// args wraps a check of the number of arguments so that its failure is a usage error. names is how they stand in the
// usage line.
func args(least, most int, names string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s: %d given, %d needed", names, len(args), least)
		case most >= 0 && len(args) > most:
			return usagef("%s: unexpected argument %q", names, args[most])
		}
		return nil
	}
}
