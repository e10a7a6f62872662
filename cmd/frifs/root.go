package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `frifs mounts a Lance dataset read-only and shows each of its versions as plain files: the
fragment reuse index as JSON, and each recorded rewrite as a CSV that maps old row addresses to
new ones. Everything is computed when it is read; nothing is written to the dataset.

The same files can be read without a mount: frifs ls, cat, stat and tree.

URI is a directory, or a URL such as s3://bucket/t.lance, gs://..., az://... or file:///data/t.lance.`

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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("frifs {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		newMountCmd(), newUmountCmd(), newRefreshCmd(), newServeCmd(),
		newLsCmd(), newCatCmd(), newStatCmd(), newTreeCmd(), newExportCmd(),
		newVersionsCmd(), newTranslateCmd(), newHistoryCmd(), newStatusCmd(), newDiffCmd(), newVerifyCmd(),
		newCacheCmd(), newDemoCmd(), newDoctorCmd(), newCompletionCmd(),
	)
	root.SetHelpCommand(newHelpCmd())
	root.SuggestionsMinimumDistance = suggestDistance
	words := otherWords()
	for _, c := range root.Commands() {
		c.SuggestFor = words[c.Name()]
	}
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// args wraps a check of the number of arguments so that its failure is a usage error. names is how they stand in the
// usage line.
func args(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		_, after, _ := strings.Cut(cmd.Use, " ")
		usage := "usage: " + cmd.CommandPath() + " " + after
		switch {
		case len(args) < least:
			name := strings.Trim(strings.Fields(names)[len(args)], "[].")
			return usagef("%s: %s is missing (%s)", cmd.Name(), name, usage)
		case most == 0 && len(args) > 0:
			return usagef("%s takes no arguments", cmd.Name())
		case most >= 0 && len(args) > most:
			return usagef("%s: unexpected argument %q (%s)", cmd.Name(), args[most], usage)
		}
		return nil
	}
}

// suggestDistance is how many letters a mistyped command may differ from one that is suggested.
const suggestDistance = 2

// otherWords are words that people try for a command.
func otherWords() map[string][]string {
	return map[string][]string{
		"mount":     {"mnt"},
		"ls":        {"list", "dir"},
		"cat":       {"read", "show", "print"},
		"stat":      {"info"},
		"refresh":   {"reload", "update", "poll"},
		"versions":  {"log"},
		"translate": {"map", "remap", "lookup"},
		"diff":      {"compare", "changes"},
		"export":    {"copy", "cp", "dump"},
		"doctor":    {"check"},
		"verify":    {"lint", "fsck", "validate"},
	}
}

// unknownCommand is the error for a command that does not exist, with those that may be meant.
func unknownCommand(root *cobra.Command, word string) error {
	var meant []string
	if word != "" { // every name begins with nothing
		meant = root.SuggestionsFor(word)
		slices.Sort(meant)
		meant = slices.Compact(meant) // near in letters, and one of otherWords
	}
	if word == "version" {
		meant = append([]string{"--version"}, meant...)
	}
	if len(meant) == 0 {
		return usagef("unknown command %q", word)
	}
	for i, m := range meant {
		meant[i] = "frifs " + m
	}
	return usagef("unknown command %q; did you mean %s?", word, strings.Join(meant, " or "))
}

// newHelpCmd is cobra's help, except that help about nothing known is an error.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command",
		Example: `  frifs help mount`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if len(args) == 0 {
				for _, c := range cmd.Root().Commands() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		Args: args(0, 1, "[COMMAND]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				return root.Help()
			}
			for _, c := range root.Commands() {
				if c.Name() == args[0] || c.HasAlias(args[0]) {
					c.InitDefaultHelpFlag()
					return c.Help()
				}
			}
			return unknownCommand(root, args[0])
		},
	}
}
