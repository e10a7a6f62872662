package integration

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// TestWhatTheKernelKeeps counts how often the kernel has to ask for a name and its attributes.
func TestWhatTheKernelKeeps(t *testing.T) {
	for _, tc := range []struct {
		flags string // separated by spaces
		asked bool   // again at each look
	}{
		{"", false},
		{"--entry-timeout 0s --attr-timeout 0s", true},
		{"-o entry_timeout=0s,attr_timeout=1h", true},
	} {
		t.Run(tc.flags, func(t *testing.T) {
			m := mountDataset(t, "tagged/chain", append(strings.Fields(tc.flags), "--debug-fuse")...)
			const looks = 5
			for range looks {
				if _, err := os.Stat(m.path("versions/12/version.json")); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = os.Stat(m.path("versions/none")) // the last line to wait for
			eventually(t, 10*time.Second, func() error {
				if !strings.Contains(m.logs.String(), `"none"`) {
					return errors.New("the log does not come")
				}
				return nil
			})
			n := strings.Count(m.logs.String(), `"version.json"`) // one line for each LOOKUP
			if tc.asked && n < looks || !tc.asked && n != 1 {
				t.Errorf("the kernel looked the name up %d times in %d looks:\n%s", n, looks, m.logs)
			}
		})
	}
}

func TestNumbersThatMakeNoSense(t *testing.T) {
	table, mnt := testdata.Dataset(t, "legacy/basic"), t.TempDir()
	for _, args := range []string{
		"--entry-timeout -1s", "--attr-timeout -1ns", "--inode-limit 0", "--inode-limit -5", "--ready-timeout 0s", "--op-timeout 0s",
		"--poll-interval 1ns", "--entry-timeout soon", "-o attr_timeout=-2s", "--max-read-ahead x", "--uid root", "--log-level loud",
	} {
		flag := strings.Fields(args)[0]
		if flag == "-o" {
			flag = "--attr-timeout"
		}
		r := command(t, "", exe, append(append([]string{"mount"}, strings.Fields(args)...), table, mnt)...)
		if r.code != 2 || !strings.Contains(r.stderr, flag) || !strings.Contains(r.stderr, "--help") || r.stdout != "" {
			t.Errorf("%s: exit %d, %q, %q", args, r.code, r.stdout, r.stderr)
		}
	}
	if left, err := os.ReadDir(filepath.Clean(mnt)); err != nil || len(left) > 0 {
		t.Errorf("mounted all the same: %v, %v", left, err)
	}
}
