package fs

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fault"
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
	return []Check{
		checkOS(), checkKernel(), checkContainer(root), checkFuseDevice(root), checkHelper(root),
		checkAllowOther(root), checkReadAheadRight(), checkPassthrough(root),
	}
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

// fuseConf is the configuration of fusermount3.
const fuseConf = "/etc/fuse.conf"

// allowsOther reports whether the configuration lets users who are not root share their mounts.
func allowsOther(conf string) bool {
	f, err := os.Open(conf)
	if err != nil {
		return false
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if strings.TrimSpace(sc.Text()) == "user_allow_other" {
			return true
		}
	}
	return false
}

// checkAllowed refuses what fusermount3 would refuse with fewer words.
func checkAllowed(opt Options, root bool, conf string) error {
	if (!opt.AllowOther && !opt.AllowRoot) || root || allowsOther(conf) {
		return nil
	}
	return fault.New("fs.Mount", "", fault.Denied,
		"only root may share mounts with other users unless %s says so: add the line user_allow_other to it as root, or mount without --allow-other and --allow-root", conf)
}

func checkAllowOther(root bool) Check {
	c := Check{Name: "access for other users", Detail: "user_allow_other in /etc/fuse.conf"}
	if root {
		c.OK, c.Detail = true, "root may share its mounts"
		return c
	}
	if c.OK = allowsOther(fuseConf); c.OK {
		return c
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

// checkContainer looks for what containers withhold. They keep the right to mount from root; another user mounts by
// fusermount3, which needs it too.
func checkContainer(root bool) Check {
	c := Check{Name: "right to mount", Needed: root && runtime.GOOS == "linux", OK: true, Detail: "not in a container"}
	if runtime.GOOS != "linux" {
		c.Detail = "decided by " + runtime.GOOS
		return c
	}
	if in := container("/"); in != "" {
		c.Detail = "in a container (" + in + ")"
	}
	if !root {
		c.Detail += "; mounting by fusermount3"
		return c
	}
	if c.OK = mayMount("/"); !c.OK {
		c.Detail += ", without the capability SYS_ADMIN"
		c.Fix = "start the container with: --device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined (Kubernetes: securityContext.privileged: true, or a FUSE device plugin)"
	}
	return c
}

// container names the kind of container that the system below root is, "" for none that is known.
func container(root string) string {
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}
	switch {
	case there(".dockerenv"):
		return "Docker"
	case there("run/.containerenv"):
		return "Podman"
	}
	b, err := os.ReadFile(filepath.Join(root, "proc/1/cgroup"))
	if err != nil {
		return ""
	}
	for _, kind := range []struct{ word, name string }{
		{"kubepods", "Kubernetes"}, {"libpod", "Podman"}, {"/docker", "Docker"}, {"/lxc", "LXC"},
	} {
		if strings.Contains(string(b), kind.word) {
			return kind.name
		}
	}
	return ""
}

// mayMount reports whether this process has the capability to mount; true where that cannot be known.
func mayMount(root string) bool {
	const sysAdmin = 21
	b, err := os.ReadFile(filepath.Join(root, "proc/self/status"))
	if err != nil {
		return true
	}
	_, after, ok := strings.Cut(string(b), "CapEff:")
	if !ok {
		return true
	}
	line, _, _ := strings.Cut(after, "\n")
	caps, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err != nil || caps&(1<<sysAdmin) != 0
}

// checkKernel looks at the release of the kernel. FUSE in Linux 4.20 and later reads 1 MiB at a time.
func checkKernel() Check {
	c := Check{Name: "kernel", OK: true}
	k := kernel()
	if c.Detail = k.release; c.Detail == "" {
		c.Detail = "unknown release"
	}
	if k.before(4, 20) {
		c.OK = false
		c.Detail += ": reads come in pieces of 128 KiB at most, so big files are read slower"
		c.Fix = "Linux 4.20 or later reads 1 MiB at a time"
	}
	return c
}

// checkPassthrough says whether the kernel may read local files without asking the mount.
func checkPassthrough(root bool) Check {
	c := Check{Name: "passthrough of local files", Detail: "the kernel reads data files by itself"}
	switch {
	case kernel().major == 0 || kernel().before(6, 9):
		c.Detail, c.Fix = "the kernel is older than 6.9: data files are copied by the mount", "nothing needs to be done; newer kernels read local data files several times faster"
	case !root:
		c.Detail, c.Fix = "mounts of root only: data files are copied by the mount", "nothing needs to be done; mounted by root, local data files are read several times faster"
	default:
		c.OK = true
	}
	return c
}

// kernelRelease is the release of the running kernel; the zero value is one that is not known.
type kernelRelease struct {
	release      string
	major, minor int
}

// before reports whether the release is known to be older than major.minor. A kernel that is not Linux is no kernel of
// ours to judge.
func (k kernelRelease) before(major, minor int) bool {
	return k.major > 0 && (k.major < major || (k.major == major && k.minor < minor))
}

// parseKernel reads a release such as "6.18.44-generic".
func parseKernel(release string) kernelRelease {
	k := kernelRelease{release: release}
	first, rest, _ := strings.Cut(release, ".")
	second := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	major, err := strconv.Atoi(first)
	if err != nil {
		return k
	}
	if minor, err := strconv.Atoi(second); err == nil {
		k.major, k.minor = major, minor
	}
	return k
}
