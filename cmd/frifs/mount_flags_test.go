package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestHelperArgs(t *testing.T) {
	tests := []struct {
		args, want string // separated by spaces
		fake       bool
		err        string
	}{
		{"/t /m", "mount --daemon -- /t /m", false, ""},
		{"/t /m -o ro,version=3", "mount --daemon -o ro,version=3 -- /t /m", false, ""},
		{"/t /m -oro", "mount --daemon -o ro -- /t /m", false, ""},
		{"/t /m -o rw,version=3,rw", "mount --daemon -o version=3 -- /t /m", false, ""},
		{"/t /m -o rwx,rw,base=1=rw", "mount --daemon -o rwx,base=1=rw -- /t /m", false, ""},
		{"-sn -t frifs /t /m -v -N 3 -o a -o b", "mount --daemon -o a -o b -- /t /m", false, ""},
		{"/t /m -f", "mount --daemon -- /t /m", true, ""},
		{"/t /m -rw", "mount --daemon -- /t /m", false, ""},
		{"/t", "", false, "usage"},
		{"/t /m /x", "", false, "usage"},
		{"/t /m -o", "", false, "-o needs a value"},
		{"/t /m --version 3", "", false, "no option --version"},
	}
	for _, tc := range tests {
		got, fake, err := helperArgs(strings.Fields(tc.args))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %v, want %q", tc.args, err, tc.err)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != tc.want || fake != tc.fake {
			t.Errorf("%s: got %q, %v, %v", tc.args, got, fake, err)
		}
	}
	for name, want := range map[string]bool{"/sbin/mount.frifs": true, "mount.fuse.frifs": true, "frifs": false, "/x/mount.frifs/frifs": false} {
		if mountHelper(name) != want {
			t.Errorf("%s: is the helper: %v", name, !want)
		}
	}
}

func TestCallsOfMountFuse(t *testing.T) {
	for args, want := range map[string]bool{
		"/data/t.lance /mnt/t -o rw,dev,suid":   true,
		"s3://b/t.lance /mnt/t -o ro":           true,
		"mount /data/t.lance -o ro":             false,
		"ls /data/t.lance -o ro":                false,
		"unmount /mnt/t -o lazy":                false,
		"/data/t.lance /mnt/t":                  false,
		"--version /mnt/t -o x":                 false,
		"/data/t.lance /mnt/t --version 3 -o x": false,
	} {
		if got := calledByMountFuse(strings.Fields(args)); got != want {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
}

func TestPlacesThatTheMountHides(t *testing.T) {
	dir := t.TempDir()
	mp := filepath.Join(dir, "mnt")
	for _, d := range []string{mp, filepath.Join(dir, "mnt2")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(mp, link); err != nil {
		t.Fatal(err)
	}
	for place, bad := range map[string]bool{
		filepath.Join(mp, "x"):              true,
		filepath.Join(mp, "sub/x"):          true,
		filepath.Join(link, "x"):            true,
		mp:                                  true,
		filepath.Join(dir, "mnt2/x"):        false,
		filepath.Join(dir, "mnt/../mnt2"):   false,
		filepath.Join(dir, "x"):             false,
		"-":                                 false,
		"":                                  false,
		filepath.Join(dir, "none/mnt", "x"): false,
	} {
		for _, m := range []mountFlags{{accessLog: place}, {pidFile: place}, {logs: logFlags{file: place}}, {target: target{cacheDir: place}}} {
			err := m.checkPlaces(mp)
			var usage usageError
			if (err != nil) != bad || bad && !errors.As(err, &usage) {
				t.Errorf("%s: %v", place, err)
			}
		}
	}
}

func TestOptionsOfFstab(t *testing.T) {
	given := func(list string) (map[string]string, error) {
		cmd := newMountCmd()
		m := &mountFlags{}
		err := m.apply(cmd, []string{list})
		got := map[string]string{}
		cmd.Flags().Visit(func(f *pflag.Flag) { got[f.Name] = f.Value.String() })
		return got, err
	}
	tests := []struct {
		list string
		want map[string]string
		err  string
	}{
		{"defaults,ro,user,_netdev,x-systemd.automount,X-mount.mkdir,comment=x,,nofail", map[string]string{}, ""},
		{"allow_other,uid=7,nonempty", map[string]string{"allow-other": "true", "uid": "7", "allow-non-empty": "true"}, ""},
		{`rebase=/a\,b=/c,version=3`, map[string]string{"rebase": "[/a,b=/c]", "version": "3"}, ""},
		{"omit-index=FM,omit_index=a=b", map[string]string{"omit-index": "[FM,a=b]"}, ""},
		{"force=false,file_mode=0440", map[string]string{"force": "false", "file-mode": "0440"}, ""},
		{"options=x", nil, "no option"},
		{"remount,ro", nil, "mount it again"},
		{"rw,entry_timeout=1h", map[string]string{"entry-timeout": "1h0m0s"}, ""},
		{"help", nil, "no option"},
		{"uid", nil, "needs a value"},
		{"uid=-1", nil, "not the number of a user"},
		{"dir_mode=0999", nil, "no permissions in octal"},
		{"file_mode=0", nil, "no permissions in octal"},
		{"force=perhaps", nil, "force=perhaps"},
	}
	for _, tc := range tests {
		got, err := given(tc.list)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %v, want %q", tc.list, err, tc.err)
			}
			continue
		}
		if err != nil || len(got) != len(tc.want) {
			t.Errorf("%s: got %v, %v; want %v", tc.list, got, err, tc.want)
		}
		for k, v := range tc.want {
			if strings.ReplaceAll(got[k], `"`, "") != v {
				t.Errorf("%s: %s is %q, want %q", tc.list, k, got[k], v)
			}
		}
	}
	t.Setenv("FRIFS_TEST_ENV", "")
	if _, err := given("env.FRIFS_TEST_ENV=a b"); err != nil || os.Getenv("FRIFS_TEST_ENV") != "a b" {
		t.Errorf("env.NAME: %q, %v", os.Getenv("FRIFS_TEST_ENV"), err)
	}
}

func TestFlagsOfTheServingProcess(t *testing.T) {
	cmd := newMountCmd()
	args := []string{"--daemon", "--ready-timeout", "5s", "--pid-file", "p", "--cache-dir", "c", "--access-log", "-", "--log-file", "l",
		"--memory", "64MiB", "--version", "3", "--omit-index", "a,b", "--omit-index", "c", "--allow-other", "--file-mode", "0440", "-o", "uid=3", "/t", "/m"}
	if err := cmd.Flags().Parse(args); err != nil {
		t.Fatal(err)
	}
	m := &mountFlags{}
	if err := m.apply(cmd, []string{"uid=3"}); err != nil {
		t.Fatal(err)
	}
	got, err := m.daemonFlags(cmd.Flags(), "/var/log/x")
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--log-file=/var/log/x", "--access-log=-", "--allow-other=true", "--cache-dir=" + filepath.Join(wd, "c"), "--file-mode=0440",
		"--memory=64MiB", "--omit-index=a,b", "--omit-index=c", "--pid-file=" + filepath.Join(wd, "p"), "--uid=3", "--version=3"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// They mean the same to a command that reads them.
	again := newMountCmd()
	if err := again.Flags().Parse(got); err != nil {
		t.Error(err)
	}
}

func TestDoctorOfDirectories(t *testing.T) {
	dir := t.TempDir()
	if c := checkCacheDir(filepath.Join(dir, "new")); !c.OK && c.Needed {
		t.Errorf("a directory that can be made: %+v", c)
	}
	file := filepath.Join(dir, "file")
	for text, ok := range map[string]bool{
		"PRUNEFS=\"NFS afs fuse.frifs\"\n":         true,
		"PRUNE_BIND_MOUNTS=yes\nPRUNEFS = \"NFS\"": false,
		"": false,
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if c := checkCrawlers(file); c.OK != ok || (!ok && !strings.Contains(c.Fix, "PRUNEFS")) {
			t.Errorf("%q: %+v", text, c)
		}
	}
	if c := checkCrawlers(filepath.Join(dir, "none")); c.Name != "" {
		t.Errorf("without updatedb: %+v", c)
	}
	if c := checkCacheDir(file); c.OK || !c.Needed || c.Fix == "" {
		t.Errorf("a file: %+v", c)
	}
}

func TestTreeFlags(t *testing.T) {
	for _, args := range [][]string{
		{"ls", "--omit-index", "", "/x"},
		{"ls", "--for-reader", "new", "/x"},
		{"export", "--jobs", "0", "/x", "y", "z"},
	} {
		if r := frifs(t, "", args...); r.code != 2 {
			t.Errorf("%q: exit %d, %q", args, r.code, r.stderr)
		}
	}
	if r := frifs(t, "", "ls", "--cache-dir", "/proc/none", "/x"); r.code != 1 || !strings.Contains(r.stderr, "--cache-dir") {
		t.Errorf("a cache directory that cannot be: exit %d, %q", r.code, r.stderr)
	}
	var out strings.Builder
	if code := runMountHelper(context.Background(), []string{"/x"}, nil, &out, &out); code != mountUsage {
		t.Errorf("mount.frifs with one argument: exit %d: %s", code, out.String())
	}
}
