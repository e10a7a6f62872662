package fs

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// Check is one thing that a mount needs or gains from.
type Check struct {
	Name   string // what was looked at
	OK     bool
	Needed bool   // without it there is no mount
	Detail string // what was found
	Fix    string // what to do where it is not OK
}

// Doctor looks at what this machine offers for mounting. It opens no device and mounts nothing.
func Doctor() []Check {
	root := os.Geteuid() == 0
	checks := []Check{checkOS(), checkFuseDevice(root), checkHelper(root)}
	checks = append(checks, checkAllowOther(root), checkReadAheadRight())
	return checks
}

func checkOS() Check {
	c := Check{Name: "operating system", OK: true, Needed: true, Detail: runtime.GOOS + "/" + runtime.GOARCH}
	switch runtime.GOOS {
	case "linux":
	case "darwin":
		c.Detail += "; mounting needs macFUSE and is not tested"
	default:
		c.OK, c.Fix = false, "frifs mounts on Linux; frifs ls, cat and the other commands work everywhere"
	}
	return c
}

func checkFuseDevice(root bool) Check {
	c := Check{Name: "FUSE device", Needed: true, Detail: deviceFile}
	if runtime.GOOS == "darwin" {
		c.OK, c.Detail = true, "not used on macOS"
		return c
	}
	fi, err := os.Stat(deviceFile)
	switch {
	case err != nil:
		c.Detail = deviceFile + " does not exist"
		c.Fix = "load the module with: modprobe fuse; in a container start it with: --device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined"
	case fi.Mode()&os.ModeCharDevice == 0:
		c.Detail = deviceFile + " is not a character device"
		c.Fix = "remove it and load the module with: modprobe fuse"
	case !root && fi.Mode().Perm()&0o006 != 0o006 && !writable(deviceFile):
		c.Detail = deviceFile + " may be used by root only (mode " + fi.Mode().Perm().String() + ")"
		c.Fix = "as root run: chmod 666 /dev/fuse"
	default:
		c.OK = true
		c.Detail += " " + fi.Mode().Perm().String()
	}
	return c
}

func checkHelper(root bool) Check {
	c := Check{Name: "mount helper", Needed: !root}
	if runtime.GOOS == "darwin" {
		c.OK, c.Detail, c.Needed = true, "not used on macOS", false
		return c
	}
	p, err := helper()
	if err != nil {
		c.Detail = "fusermount3 is not installed"
		c.Fix = "install the package fuse3 (apt install fuse3, dnf install fuse3, apk add fuse3)"
		if root {
			c.Detail += "; root mounts without it"
		}
		return c
	}
	c.Detail = p
	if fi, err := os.Stat(p); err == nil && !root && fi.Mode()&os.ModeSetuid == 0 {
		c.Detail += " is not setuid root"
		c.Fix = "as root run: chmod u+s " + p
		return c
	}
	c.OK = true
	return c
}

func checkAllowOther(root bool) Check {
	c := Check{Name: "access for other users", Detail: "user_allow_other in /etc/fuse.conf"}
	if root {
		c.OK, c.Detail = true, "root may share its mounts"
		return c
	}
	f, err := os.Open("/etc/fuse.conf")
	if err == nil {
		defer f.Close()
		for sc := bufio.NewScanner(f); sc.Scan(); {
			if strings.TrimSpace(sc.Text()) == "user_allow_other" {
				c.OK = true
				return c
			}
		}
	}
	c.Detail += " is not set: only you will see your mounts"
	c.Fix = "add the line user_allow_other to /etc/fuse.conf if other users should"
	return c
}

func checkReadAheadRight() Check {
	c := Check{Name: "read-ahead", Detail: "1 MiB can be set", OK: true}
	if !canRaiseReadAhead() {
		c.OK = false
		c.Detail = "128 KiB only: raising it needs root and a writable /sys (reading big files is about a third slower)"
		c.Fix = "nothing needs to be done; after mounting, root may write 1024 to /sys/class/bdi/<major:minor>/read_ahead_kb"
	}
	return c
}
