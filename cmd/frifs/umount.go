package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
)

func newUmountCmd() *cobra.Command {
	var lazy bool
	cmd := &cobra.Command{
		Use:     "umount MOUNTPOINT",
		Aliases: []string{"unmount"},
		Short:   "Unmount a frifs mount",
		Long: `Unmounts a frifs mount, whoever serves it, also one whose server is gone. A mount that is in
use stays; its users are named. --lazy takes it out of the tree all the same: it ends when the last
file in it is closed.`,
		Example: `  frifs umount /mnt/t
  frifs umount --lazy /mnt/t`,
		Args: args(1, 1, "MOUNTPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := fs.Unmount(args[0], lazy)
			var busy *fs.BusyError
			if errors.As(err, &busy) {
				return fault.New("umount", "", fault.Unavailable, "%w; stop its users, or use --lazy", busy)
			}
			if fault.Is(err, fault.Invalid) { // nothing of ours is mounted there
				return explainPath(args[0], err)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&lazy, "lazy", false, "take the mount away even if it is in use")
	return cmd
}
