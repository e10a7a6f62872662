package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// machine is a mount namespace in which a user who is not root may mount, made for one script: its /dev/fuse, fuse.conf
// and passwd are its own, so that nothing of the real machine changes.
type machine struct {
	t   *testing.T
	dir string // everybody may look into it; the user's home, with the table t.lance and directories mnt and mnt2
}

// newMachine skips unless this process is root and may make such a namespace.
func newMachine(t *testing.T) *machine {
	t.Helper()
	needFUSE(t)
	needTool(t, "unshare", "setpriv", "mknod")
	if os.Geteuid() != 0 {
		missing(t, "only root can become another user")
	}
	dir, _ := openDir(t)
	m := &machine{t, dir}
	sh(t, dir, `cp "$1" frifs; cp -r "$2" t.lance; chmod -R a+rX .; mkdir home dev
		mkdir home/mnt home/mnt2
		mknod dev/fuse c 10 229; chmod 666 dev/fuse
		{ cat /etc/passwd; echo "frifsuser:x:4711:4711::$0/home:/bin/sh"; } > passwd
		chown -R 4711:4711 home; chmod 644 passwd; : > fuse.conf`, exe, testdata.Dataset(t, "tagged/chain"))
	if r := m.run(`echo up`); r.stdout != "up\n" {
		missing(t, "no namespace for another user can be made: exit %d: %s", r.code, r.stderr)
	}
	return m
}

// run has the user run a script in his home. frifs and its mounts are gone after it. $F is the program, $T the table.
func (m *machine) run(script string) result {
	m.t.Helper()
	body := `set -e
		mount --bind dev/fuse /dev/fuse
		mount --bind fuse.conf /etc/fuse.conf
		mount --bind passwd /etc/passwd
		[ -z "$3" ] || eval "$3"
		export F=$1/frifs T=$1/t.lance HOME=$1/home XDG_STATE_HOME=
		set +e
		setpriv --reuid 4711 --regid 4711 --clear-groups bash -c "cd; set -u; $2"
		code=$?
		for d in home/mnt home/mnt2; do umount -l $d 2> /dev/null; done
		exit $code`
	before, script, cut := strings.Cut(script, "\n---\n")
	if !cut {
		before, script = "", before
	}
	return command(m.t, "", "unshare", "-m", "--propagation", "private", "bash", "-c", `cd "$1"; `+body, "x", m.dir, script, before)
}

// TestAnotherUserMounts does by fusermount3 what root does by mount(2).
func TestAnotherUserMounts(t *testing.T) {
	m := newMachine(t)
	for _, tc := range []struct{ name, script, out string }{
		{"mount and umount", `$F mount --daemon --pid-file pid $T mnt 2> /dev/null; cat mnt/latest/version.json | head -c 1
			stat -c ' %u:%g %a' mnt/README.txt; grep -c ' '$HOME/mnt' fuse.frifs ro,nosuid,nodev,.*user_id=4711' /proc/self/mounts
			ls .local/state/frifs | wc -l; $F umount mnt; ls mnt | wc -l`, "{ 4711:4711 444\n1\n1\n0\n"},
		{"signals", `$F mount $T mnt 2> log & until [ -e mnt/README.txt ]; do sleep 0.05; done
			kill -TERM $!; wait $!; echo $?; ls mnt | wc -l`, "0\n0\n"},
		{"a stale mount", `$F mount --daemon --pid-file pid $T mnt 2> /dev/null; kill -9 $(cat pid)
			while ls mnt > /dev/null 2>&1; do sleep 0.05; done
			$F mount --daemon $T mnt 2>&1 | grep -c 'a stale mount lies here.*fusermount3 -u.*--force'
			$F mount --daemon --force --pid-file pid $T mnt 2> /dev/null; ls mnt | head -1; kill -9 $(cat pid)
			while ls mnt > /dev/null 2>&1; do sleep 0.05; done
			$F umount mnt; echo $?; ls mnt | wc -l`, "1\nREADME.txt\n0\n0\n"},
		{"in use", `$F mount --daemon $T mnt 2> /dev/null; exec 5< mnt/README.txt; $F umount mnt 2>&1 | grep -c 'busy: used by bash.*--lazy'
			$F umount --lazy mnt; echo $?; ls mnt | wc -l; head -c 4 <&5; exec 5<&-`, "1\n0\n0\nThis"},
		{"a second mount", `$F mount --daemon $T mnt 2> /dev/null; $F mount --force $T mnt 2>&1 | grep -c 'already mounted'; $F umount mnt`, "1\n"},
		{"without HOME", `unset HOME; $F mount --daemon $T ~+/mnt 2> /dev/null; ls mnt | head -1; ls .local/state/frifs | head -1 | grep -c mnt; $F umount mnt`, "README.txt\n1\n"},
		{"doctor", `$F doctor | grep -c '^MISSING'; $F doctor | grep -A1 'access for other' | tail -1`,
			"0\n         add the line user_allow_other to /etc/fuse.conf if other users should\n"},
		{"not permitted to share", `for f in --allow-other --allow-root; do $F mount $f $T mnt 2>&1; echo $?; done | grep -c 'user_allow_other\|^1$'`, "4\n"},
		{"not writable", `mkdir -p ro; chmod 555 ro; $F mount $T ro 2>&1 | grep -c 'choose a directory of yours'; $F mount $T /var/tmp --allow-non-empty 2>&1 | grep -c 'sticky'`, "1\n1\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mt := &machine{t, m.dir}
			if r := mt.run(tc.script); r.stdout != tc.out {
				t.Errorf("got %q, want %q; exit %d: %s", r.stdout, tc.out, r.code, r.stderr)
			}
		})
	}
}

// TestOthersAndTheMountOfAUser looks at a user's mount as root and as somebody else.
func TestOthersAndTheMountOfAUser(t *testing.T) {
	m := newMachine(t)
	const look = `for who in 0 4711 4712; do setpriv --reuid $who --regid $who --clear-groups cat home/mnt/README.txt > /dev/null 2> err && echo $who || grep -o 'Permission denied' err; done`
	for _, tc := range []struct{ flag, out string }{
		{"", "Permission denied\n4711\nPermission denied\n"},
		{"--allow-root", "0\n4711\nPermission denied\n"},
		{"--allow-other", "0\n4711\n4712\n"},
	} {
		t.Run(tc.flag, func(t *testing.T) {
			mt := &machine{t, m.dir}
			// The user mounts first, then root runs what looks.
			r := mt.run(`echo user_allow_other > fuse.conf
				export HOME=$1/home XDG_STATE_HOME=; (cd home && setpriv --reuid 4711 --regid 4711 --clear-groups $1/frifs mount --daemon ` + tc.flag + ` $1/t.lance mnt 2> /dev/null) || echo no mount
				` + look + `; umount home/mnt
---
true`)
			if r.stdout != tc.out || r.code != 0 {
				t.Errorf("got %q, want %q; exit %d: %s", r.stdout, tc.out, r.code, r.stderr)
			}
		})
	}
}

// TestWhatAMachineLacks takes away what a user needs to mount.
func TestWhatAMachineLacks(t *testing.T) {
	m := newMachine(t)
	for _, tc := range []struct{ name, before, says, doctor string }{
		{"right to the device", `chmod 600 dev/fuse`, "may be used by root only", "chmod 666 /dev/fuse"},
		{"device", `: > none; mount --bind none /dev/fuse`, "not a character device", "modprobe fuse"},
		{"setuid", `cp $(command -v fusermount3) fm; chmod 755 fm; mount --bind fm $(command -v fusermount3)`, "is not setuid root", "chmod u+s"},
		{"helper", `: > none; chmod 644 none; for f in fusermount3 fusermount; do ! p=$(command -v $f) || mount --bind none $(readlink -f $p); done`,
			"fusermount3 is not installed", "apt install fuse3"},
		{"more mounts", `echo 'mount_max = 0' > fuse.conf`, "mount_max", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mt := &machine{t, m.dir}
			r := mt.run(tc.before + "\n---\n" + `$F mount --daemon $T mnt; echo $?; $F doctor; ls mnt`)
			if !strings.Contains(r.stderr, tc.says) || !strings.HasPrefix(r.stdout, "1\n") || !strings.Contains(r.stdout, tc.doctor) {
				t.Errorf("want %q and %q; got %q, %q", tc.says, tc.doctor, r.stderr, r.stdout)
			}
			if tc.doctor != "" && (!strings.Contains(r.stdout, "MISSING") || !strings.Contains(r.stderr, tc.doctor)) {
				t.Errorf("the command that mends it is not said: %q, %q", r.stdout, r.stderr)
			}
			sh(t, m.dir, `chmod 666 dev/fuse; : > fuse.conf`)
		})
	}
	if _, err := os.Stat(filepath.Join(m.dir, "home/mnt/README.txt")); err == nil {
		t.Error("left mounted")
	}
}
