package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/internal/testdata"
)

// What is wrong with a dataset is no fault of the machine, and ls and cat are named only where they work.
func TestDoctorTellsMachineFromDataset(t *testing.T) {
	good := testdata.Dataset(t, "tagged/chain")
	broken := testdata.Copy(t, "tagged/chain")
	if err := os.Truncate(manifestOf(t, broken, 29), 100); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, uri    string
		state        readable
		says, denies string // of the verdicts on any machine
	}{
		{"sound", good, allReadable, "ount", "dataset"},
		{"newest broken", broken, newestBroken, "ERROR.json", "cannot be opened"},
		{"none", filepath.Join(t.TempDir(), "none"), unreadable, "cannot be opened", "frifs ls"},
		{"no dataset", t.TempDir(), unreadable, "cannot be opened", "frifs ls"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var tg target
			cmd := &cobra.Command{}
			tg.flags(cmd)
			tg.treeFlags(cmd)
			cmd.SetContext(t.Context())
			c, got := tg.checkDataset(cmd, tc.uri)
			if got != tc.state || c.OK == got.bad() || c.OK != (c.Fix == "") {
				t.Errorf("%+v, state %d; want %d", c, got, tc.state)
			}
			for _, machine := range []bool{true, false} {
				said := doctorSays(machine, got)
				if !strings.Contains(said, tc.says) || strings.Contains(said, tc.denies) ||
					strings.Contains(said, "will not work") == machine {
					t.Errorf("machine %v: %q", machine, said)
				}
			}
			r := frifs(t, "", "doctor", tc.uri)
			if tc.state.bad() && r.code != 3 || !strings.Contains(r.stdout, tc.says) || strings.Contains(r.stdout[strings.LastIndex(r.stdout, "\n\n"):], tc.denies) {
				t.Errorf("exit %d: %s", r.code, r.stdout)
			}
		})
	}
}
