package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fs"
)

func newDoctorCmd() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "doctor [URI]",
		Short: "Say what this machine lacks to mount, and how to get it",
		Long: `Looks at what a mount needs on this machine, and, with URI, whether that dataset can be read.
Exit code 0: mounting should work, and the dataset can be read; 3: something that is needed is
missing, or the dataset or its newest version cannot be read. The last line says which of the two.
Nothing is mounted and nothing is changed.`,
		Example: `  frifs doctor
  frifs doctor --cache-dir /var/cache/frifs /data/t.lance`,
		Args: args(0, 1, "[URI]"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			cache := checkCacheDir(t.cacheDir)
			checks := append(fs.Doctor(), cache, checkCrawlers("/etc/updatedb.conf"))
			var b strings.Builder
			d := notAsked
			if len(args) > 0 {
				t.cacheDir = "" // it has been looked at, and is not to be made
				if f := cmd.Flags().Lookup("cache-size"); f != nil {
					f.Changed = false // which needs a directory
				}
				var c fs.Check
				c, d = t.checkDataset(cmd, args[0])
				checks = append(checks, c)
			}
			missing := printChecks(&b, checks)
			machine := missing == 0 || missing == 1 && d.bad()
			b.WriteString("\n" + doctorSays(machine, d))
			if _, err := fmt.Fprint(cmd.OutOrStdout(), b.String()); err != nil {
				return err
			}
			if missing > 0 {
				return findings{}
			}
			return nil
		}),
	}
	t.flags(cmd)
	t.treeFlags(cmd)
	return cmd
}

// readable is how far a dataset can be read.
type readable int

const (
	notAsked     readable = iota // no URI was given
	allReadable                  // down to the newest version
	newestBroken                 // it opens, but the version that latest means does not
	unreadable                   // it does not open
)

// bad reports whether something is wrong with the dataset.
func (d readable) bad() bool { return d == newestBroken || d == unreadable }

// doctorSays is the verdict on this machine and on the dataset, each by itself.
func doctorSays(machine bool, d readable) string {
	const noMount = "Mounting will not work on this machine as it is."
	const same = " Without a mount: frifs ls, cat, stat and tree show the same files."
	switch {
	case machine && d == newestBroken:
		return "This machine can mount, and a mount of this dataset shows what can be read of it: the version that\n" +
			"cannot holds an ERROR.json with the reason. The same without a mount: frifs ls, cat, stat and tree.\n"
	case machine && d == unreadable:
		return "This machine can mount, but not this dataset: it cannot be opened, with a mount or without.\n"
	case machine:
		return "Mounting should work: frifs mount URI MOUNTPOINT\n"
	case d == newestBroken:
		return noMount + same + "\nBesides, a version of this dataset cannot be read: ERROR.json in its place says why.\n"
	case d == unreadable:
		return noMount + " Besides, this dataset cannot be opened, with a mount or without.\n"
	}
	return "Mounting will not work." + same + "\n"
}

// printChecks writes a line per check, two where something is to be done, and returns how many needed ones failed.
func printChecks(b *strings.Builder, checks []fs.Check) (missing int) {
	fmt.Fprintf(b, "frifs %s\n", release())
	for _, c := range checks {
		mark := "ok     "
		switch {
		case c.Name == "":
			continue // does not matter here
		case !c.OK && c.Needed:
			mark = "MISSING"
			missing++
		case !c.OK:
			mark = "note   "
		}
		fmt.Fprintf(b, "%s  %s: %s\n", mark, c.Name, c.Detail)
		if !c.OK && c.Fix != "" {
			fmt.Fprintf(b, "         %s\n", c.Fix)
		}
	}
	for _, tool := range []string{"jq", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			fmt.Fprintf(b, "note     %s is not installed: the examples in README.md and frifs demo use it\n", tool)
		}
	}
	return missing
}

// lowCache is how much free space makes a note on the directory for translated index files.
const lowCache = 1 << 30

// checkCacheDir looks at the directory for translated index files.
func checkCacheDir(dir string) fs.Check {
	c := fs.Check{Name: "cache directory", Detail: dir}
	if dir == "" {
		dir = os.TempDir()
		c.Detail = dir + " (the default; --cache-dir names another)"
	}
	exists, err := checkNewDir(dir)
	if err != nil {
		c.Needed, c.Detail = true, dir+" cannot be written to: "+plain(err)
		c.Fix = "name a directory that can with --cache-dir, or as root run: install -d -o " + strconv.Itoa(os.Geteuid()) + " " + dir
		return c
	}
	if !exists {
		c.Detail += " (not there yet: it will be made)"
	}
	free, ok := freeSpace(dir)
	if ok && free < lowCache {
		c.Detail += ", " + sizeText(free) + " free"
		c.Fix = "large translated index files may not fit; name a directory with more space with --cache-dir"
		return c
	}
	if c.OK = true; ok {
		c.Detail += ", " + sizeText(free) + " free"
	}
	return c
}

// checkCrawlers looks whether the nightly updatedb walks mounts of ours; no check where there is no updatedb.
func checkCrawlers(conf string) fs.Check {
	b, err := os.ReadFile(conf)
	if err != nil {
		return fs.Check{}
	}
	c := fs.Check{Name: "updatedb", OK: true, Detail: "passes over mounts of frifs"}
	for _, line := range strings.Split(string(b), "\n") {
		if name, list, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "PRUNEFS" {
			for _, w := range strings.Fields(strings.Trim(strings.TrimSpace(list), `"`)) {
				if w == "fuse.frifs" || w == "fuse" {
					return c
				}
			}
		}
	}
	c.OK, c.Detail = false, "will walk mounts of frifs that it may see"
	c.Fix = "add fuse.frifs to PRUNEFS in " + conf
	return c
}
