package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// helperLink makes a link to the binary under the name that mount(8) calls.
func helperLink(t *testing.T, dir string) string {
	t.Helper()
	link := filepath.Join(dir, "mount.frifs")
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestMountHelper(t *testing.T) {
	needFUSE(t)
	dir, mnt := openDir(t)
	helper := helperLink(t, dir)
	logOpt := "log_file=" + filepath.Join(dir, "log")
	table := testdata.Dataset(t, "tagged/chain")
	run := func(args ...string) (int, string) {
		cmd := exec.Command(helper, args...)
		// As systemd calls it: almost no environment, and no PATH.
		cmd.Env = []string{"HOME=" + dir}
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	code, out := run(table, mnt, "-s", "-n", "-o", "rw,_netdev,nofail,x-systemd.automount,x-systemd.requires=network.target,version=12,allow_other,uid=4242,"+logOpt)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if got := sh(t, mnt, "ls versions; stat -c %u README.txt"); got != "12\n4242" {
		t.Errorf("the options did not arrive: %q", got)
	}
	frifs(t, "umount", mnt)
	if code, out := run(table, mnt, "-f", "-o", logOpt); code != 0 || isMounted(t, mnt) {
		t.Errorf("-f: exit %d: %s", code, out)
	}
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"unknown option", []string{table, mnt, "-o", "colour=red"}, 1, `no option "colour"`},
		{"no value", []string{table, mnt, "-o", "version"}, 1, "version needs a value"},
		{"bad value", []string{table, mnt, "-o", "version=x"}, 1, "not a version number"},
		{"no directory", []string{table}, 1, "usage: mount.frifs"},
		{"unknown flag", []string{table, mnt, "-z"}, 1, "no option -z"},
		{"no table", []string{filepath.Join(dir, "none"), mnt, "-o", logOpt}, 32, "does not exist"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if code, out := run(tc.args...); code != tc.code || !strings.Contains(out, tc.says) {
				t.Errorf("exit %d: %s", code, out)
			}
		})
	}
}

// TestFstab has mount(8) mount a line of an fstab, in a mount namespace of its own whose /sbin has the helper.
func TestFstab(t *testing.T) {
	needFUSE(t)
	needTool(t, "unshare", "mount")
	if os.Geteuid() != 0 {
		missing(t, "only root can have a mount namespace of its own")
	}
	dir, mnt := openDir(t)
	helper := helperLink(t, dir)
	table := testdata.Dataset(t, "tagged/chain")
	fstab := filepath.Join(dir, "fstab")
	line := table + " " + mnt + " frifs noauto,_netdev,nofail,ro,x-systemd.idle-timeout=60,version=7,log_file=" + dir + "/log 0 0\n"
	if err := os.WriteFile(fstab, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	script := `
		for d in /sbin /usr/sbin; do [ -L $d ] || sbin=$d; done
		mkdir -p up/u up/w
		mount -t tmpfs none up && mkdir up/u up/w
		mount -t overlay -o lowerdir=$sbin,upperdir=$PWD/up/u,workdir=$PWD/up/w none $sbin || exit 77
		cp -d ` + helper + ` $sbin/mount.frifs
		mount --fstab fstab mnt
		cat mnt/latest/version.json
		findmnt -n -o FSTYPE,OPTIONS mnt >&2
		umount mnt
		[ -z "$(ls mnt)" ]`
	r := command(t, "", "unshare", "-m", "--propagation", "private", "bash", "-c", "set -e; cd \"$0\"; "+script, dir)
	if r.code == 77 {
		missing(t, "this machine has no overlay filesystem: %s", r.stderr)
	}
	if r.code != 0 || r.stdout != frifs(t, "cat", "--version", "7", table, "latest/version.json") {
		t.Errorf("exit %d: %q %s", r.code, r.stdout, r.stderr)
	}
	if !strings.Contains(r.stderr, "fuse.frifs") || !strings.Contains(r.stderr, "ro,") {
		t.Errorf("mounted as %q", r.stderr)
	}
}

// TestMountAll has mount(8) mount all lines of an fstab in a mount namespace, by each of the types that lead to frifs.
func TestMountAll(t *testing.T) {
	needFUSE(t)
	needTool(t, "unshare", "mount", "mount.fuse3")
	if os.Geteuid() != 0 {
		missing(t, "only root can have a mount namespace of its own")
	}
	dir, _ := openDir(t)
	table := testdata.Dataset(t, "tagged/chain")
	lines := table + " " + dir + "/m1 frifs ro,_netdev,nofail,nosuid,nodev,x-systemd.automount,x-systemd.requires=network-online.target,version=7,log_file=" + dir + "/log1 0 0\n" +
		table + " " + dir + "/m2 fuse.frifs defaults,uid=4242,log_file=" + dir + "/log2 0 0\n" +
		"frifs#" + table + " " + dir + "/m3 fuse allow_other,file_mode=0440,log_file=" + dir + "/log3 0 0\n"
	if err := os.WriteFile(filepath.Join(dir, "fstab"), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	script := `
		for d in /sbin /usr/sbin; do [ -L $d ] || sbin=$d; done
		mkdir up m1 m2 m3; mount -t tmpfs none up && mkdir up/u up/w
		mount -t overlay -o lowerdir=$sbin,upperdir=$PWD/up/u,workdir=$PWD/up/w none $sbin || exit 77
		ln -s "$1" $sbin/mount.frifs; ln -s "$1" $sbin/frifs
		mount --bind fstab /etc/fstab
		trap 'umount -l m1 m2 m3 2> /dev/null || true' EXIT
		mount -a 2> err || { cat err >&2; exit 1; }
		ls m1/versions; stat -c %u m2/README.txt; stat -c %a m3/README.txt
		findmnt -n -o FSTYPE m1; findmnt -n -o FSTYPE m2; findmnt -n -o FSTYPE m3
		mount m1 2>&1 | grep -o 'already mounted'; mount -o remount,rw m1 2>&1 | grep -o 'cannot be changed'
		umount -a -t fuse.frifs; ls m1 m2 m3 | grep -c README || true`
	r := command(t, "", "unshare", "-m", "--propagation", "private", "bash", "-c", "set -e; cd \"$0\"; "+script, dir, exe)
	if r.code == 77 {
		missing(t, "this machine has no overlay filesystem: %s", r.stderr)
	}
	want := "7\n4242\n440\nfuse.frifs\nfuse.frifs\nfuse.frifs\nalready mounted\ncannot be changed\n0\n"
	if r.code != 0 || r.stdout != want {
		t.Errorf("exit %d: %q, want %q; %s", r.code, r.stdout, want, r.stderr)
	}
}

// TestSystemdUnit has systemd read the unit, and runs its command line as systemd would.
func TestSystemdUnit(t *testing.T) {
	unit := read(t, filepath.Join(root, "contrib/systemd/frifs@.service"))
	dir, mnt := openDir(t)
	// What the unit names must exist for systemd to find nothing wrong.
	env := filepath.Join(dir, "x.env")
	unit = strings.ReplaceAll(strings.ReplaceAll(unit, "/usr/bin/frifs", exe), "/etc/frifs/%i.env", env)
	file := filepath.Join(dir, "frifs@.service")
	if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(env, []byte("URI="+testdata.Dataset(t, "tagged/chain")+"\nMOUNTPOINT="+mnt+"\nOPTIONS=\"--version 9\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		r := command(t, "", "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", filepath.Join(dir, "frifs@x.service"))
		if r.code != 0 || strings.Contains(r.stderr, "frifs@") {
			t.Errorf("systemd-analyze: exit %d: %s", r.code, r.stderr)
		}
	}
	needFUSE(t)
	line := func(key string) string {
		for _, l := range strings.Split(unit, "\n") {
			if v, ok := strings.CutPrefix(l, key+"="); ok {
				return strings.TrimPrefix(v, "-")
			}
		}
		t.Fatalf("the unit has no %s", key)
		return ""
	}
	m := start(t, mnt, "bash", "-c", "set -a; . "+env+"; exec "+line("ExecStart"))
	m.ready()
	if got := sh(t, mnt, "ls versions"); got != "9" {
		t.Errorf("versions: %q", got)
	}
	// Stopping goes on although a file is in use.
	f, err := os.Open(m.path("README.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "set -a; . "+env+"; "+line("ExecStop"))
	if isMounted(t, mnt) {
		t.Error("still mounted after ExecStop")
	}
	f.Close()
	if !m.ended(15 * 1e9) {
		t.Error("the process goes on after the last file was closed")
	}
}
