package fs

import (
	"strings"
	"testing"
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
		e, ok := findMount(strings.NewReader(table), tc.path)
		if ok != tc.ok || e.fstype != tc.fstype || e.source != tc.source || e.dev != tc.dev {
			t.Errorf("%s: got %+v, %v", tc.path, e, ok)
		}
	}
}
