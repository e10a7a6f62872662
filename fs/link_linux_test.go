package fs

import (
	"os"
	"testing"
)

// TestLinksAreReadOnce walks a path through a link again and again: the kernel keeps where it leads, which never changes
// for one inode. (TestInvalidate has a name come to mean another link.)
func TestLinksAreReadOnce(t *testing.T) {
	s := start(t)
	for range 50 {
		if target, err := os.Readlink(s.path("link")); err != nil || target != "README.txt" {
			t.Fatalf("%q, %v", target, err)
		}
		if _, err := os.Stat(s.path("link")); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.freshCalls(t)["link.reads"]; n != 1 {
		t.Errorf("the link was read %d times, want once", n)
	}
}
