package main

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fs"
)

func newDoctorCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine lacks to mount, and how to get it",
		Long: `Looks at what a mount needs on this machine. Exit code 0: mounting should work; 3: something
that is needed is missing. Nothing is mounted and nothing is changed.`,
		Example: `  frifs doctor`,
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var b strings.Builder
			missing := 0
			fmt.Fprintf(&b, "frifs %s\n", release())
			for _, c := range fs.Doctor() {
				mark := "ok     "
				switch {
				case !c.OK && c.Needed:
					mark = "MISSING"
					missing++
				case !c.OK:
					mark = "note   "
				}
				fmt.Fprintf(&b, "%s  %s: %s\n", mark, c.Name, c.Detail)
				if !c.OK {
					fmt.Fprintf(&b, "         %s\n", c.Fix)
				}
			}
			for _, tool := range []string{"jq", "awk"} {
				if _, err := exec.LookPath(tool); err != nil {
					fmt.Fprintf(&b, "note     %s is not installed: the examples in README.md and frifs demo use it\n", tool)
				}
			}
			if missing == 0 {
				b.WriteString("\nMounting should work: frifs mount URI MOUNTPOINT\n")
			} else {
				b.WriteString("\nMounting will not work. Without a mount: frifs ls, cat, stat and tree show the same files.\n")
			}
			if _, err := fmt.Fprint(cmd.OutOrStdout(), b.String()); err != nil {
				return err
			}
			if missing > 0 {
				return findings{}
			}
			return nil
		},
	}
}
