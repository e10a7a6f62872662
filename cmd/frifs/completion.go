package main

import (
	"github.com/spf13/cobra"
)

func newCompletionCmd() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for a shell",
		Long: `Prints a script that completes commands and flags of frifs, for the shell that is named. The
script for bash needs the package bash-completion, and works in shells started after that.`,
		Example: `  frifs completion bash > /etc/bash_completion.d/frifs
  source <(frifs completion zsh)
  frifs completion fish > ~/.config/fish/completions/frifs.fish`,
		Args:      args(1, 1, "SHELL"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return usagef("no completion for the shell %q; there is bash, zsh, fish and powershell", args[0])
		},
	}
}
