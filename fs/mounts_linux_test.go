package fs

import (
	"os"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
)

func TestFindMount(t *testing.T) {
	table := `22 1 0:21 / /proc rw,relatime shared:12 - proc proc rw
31 22 0:50 / /mnt/with\040space ro,nosuid - fuse.frifs /data/a\040b ro,user_id=0
32 22 0:51 / /mnt/x rw - ext4 /dev/sda1 rw
33 22 0:52 / /mnt/x ro - fuse.frifs s3://bucket/t ro
garbage
`
	for _, tc := range []struct {
		path, fstype, source, dev string
		ok                        bool
	}{
		{"/mnt/with space", "fuse.frifs", "/data/a b", "0:50", true},
		{"/mnt/x", "fuse.frifs", "s3://bucket/t", "0:52", true},
		{"/mnt", "", "", "", false},
	} {
		e, ok := findMount(strings.NewReader(table), func(at string) bool { return at == tc.path })
		if ok != tc.ok || e.fstype != tc.fstype || e.source != tc.source || e.dev != tc.dev {
			t.Errorf("%s: got %+v, %v", tc.path, e, ok)
		}
	}
}

func TestPlace(t *testing.T) {
	table := `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
31 22 254:0 /data/t.lance /bound rw - ext4 /dev/vda rw
32 22 254:0 /data /mnt/with\040space rw - ext4 /dev/vda rw
33 22 0:60 / /tmp rw - tmpfs none rw
34 33 254:0 / /tmp/root rw - ext4 /dev/vda rw
35 22 0:61 / /bound/over rw - tmpfs none rw
36 22 0:62 / /bound/over rw - tmpfs none rw
`
	for path, want := range map[string]string{
		"/":                           "254:0:/",
		"/data/t.lance":               "254:0:/data/t.lance",
		"/bound":                      "254:0:/data/t.lance",
		"/bound/sub/x":                "254:0:/data/t.lance/sub/x",
		"/boundary":                   "254:0:/boundary",
		"/mnt/with space/t.lance/sub": "254:0:/data/t.lance/sub",
		"/tmp/x":                      "0:60:/x",
		"/tmp/root/data":              "254:0:/data",
		"/bound/over/x":               "0:62:/x",
	} {
		if got := placeIn(strings.NewReader(table), path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if got := placeIn(strings.NewReader(""), "/x"); got != "/x" {
		t.Errorf("without a table: %s", got)
	}
}

func TestMayMountOn(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name string
		mode os.FileMode
		uid  int
		ok   bool
	}{
		{"one's own", 0o755, os.Getuid(), true},
		{"one's own, shared", 0o777 | os.ModeSticky, os.Getuid(), true},
		{"shared by others", 0o777 | os.ModeSticky, os.Getuid() + 1, false},
		{"root", 0o555 | os.ModeSticky, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := os.Chmod(dir, tc.mode); err != nil {
				t.Fatal(err)
			}
			fi, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkMayMountOn(dir, fi, tc.uid); (err == nil) != tc.ok || err != nil && !fault.Is(err, fault.Denied) {
				t.Errorf("got %v", err)
			}
		})
	}
}
