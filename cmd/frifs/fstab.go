package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/frifs/frifs/fault"
)

// mountHelper reports whether the program was called as mount(8) calls it: by the name mount.frifs (mount -t frifs) or
// mount.fuse.frifs.
func mountHelper(argv0 string) bool {
	name := filepath.Base(argv0)
	return name == "mount.frifs" || name == "mount.fuse.frifs"
}

// calledByMountFuse reports whether the arguments are those of mount.fuse3, which mount(8) calls for the type fuse.frifs
// and for the source frifs#SPEC: SPEC DIR -o OPTIONS, without a command.
func calledByMountFuse(args []string) bool {
	if len(args) < 4 || args[2] != "-o" || strings.HasPrefix(args[0], "-") {
		return false
	}
	for _, c := range newRoot().Commands() {
		if c.Name() == args[0] || c.HasAlias(args[0]) {
			return false
		}
	}
	return true
}

// readWrite is the option that mount(8) hands on wherever fstab does not say ro.
const readWrite = "rw"

// withoutReadWrite is a list of options without the rw that need not come from the user.
func withoutReadWrite(list string) string {
	list = strings.ReplaceAll(","+list+",", ","+readWrite+",", ",")
	return strings.Trim(list, ",")
}

// Exit codes of mount(8).
const (
	mountUsage  = 1
	mountFailed = 32
)

// usualPath is where programs are looked for if the environment does not say: mount(8) and systemd may give none, and
// fusermount3 has to be found.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// runMountHelper mounts in the background, as a line of fstab says: SPEC DIR [-sfnvrwN] [-t TYPE] [-o OPTIONS].
func runMountHelper(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if os.Getenv("PATH") == "" {
		_ = os.Setenv("PATH", usualPath) // the worst that follows is that fusermount3 is not found
	}
	flags, fake, err := helperArgs(args)
	if err != nil {
		report(newRoot(), err, stderr)
		return mountUsage
	}
	if fake {
		return 0
	}
	root := newRoot()
	root.SetArgs(flags)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	switch report(cmd, err, stderr) {
	case 0:
		return 0
	case fault.Invalid.ExitCode():
		if errors.As(err, &usage) {
			return mountUsage
		}
	}
	return mountFailed
}

// helperArgs turns the arguments of mount(8) into those of frifs. fake: everything but the mount is asked for.
func helperArgs(args []string) (flags []string, fake bool, err error) {
	flags = []string{"mount", "--daemon"}
	var names []string
	value := func(i *int, what string) (string, error) {
		if *i++; *i >= len(args) {
			return "", usagef("%s needs a value", what)
		}
		return args[*i], nil
	}
	for i := 0; i < len(args); i++ { //nolint:intrange // value moves i on
		a := args[i]
		switch {
		case a == "-o":
			v, err := value(&i, a)
			if err != nil {
				return nil, false, err
			}
			flags = append(flags, "-o", withoutReadWrite(v))
		case a == "-t", a == "-N":
			if _, err := value(&i, a); err != nil {
				return nil, false, err
			}
		case strings.HasPrefix(a, "-o"):
			flags = append(flags, "-o", withoutReadWrite(a[2:]))
		case len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "sfnvrw") == "":
			fake = fake || strings.Contains(a, "f")
		case len(a) > 1 && a[0] == '-':
			return nil, false, usagef("there is no option %s; mount.frifs takes SPEC DIR [-sfnvrw] [-o OPTIONS]", a)
		default:
			names = append(names, a)
		}
	}
	if len(names) != 2 {
		return nil, false, usageError{errors.New("usage: mount.frifs SPEC DIR [-sfnvrw] [-o OPTIONS]")}
	}
	return append(append(flags, "--"), names...), fake, nil
}
