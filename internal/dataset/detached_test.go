package dataset

import "testing"

// TestDetachedVersionsAreVersions: their numbers are taken as they are, and only those that are numbers.
func TestDetachedVersionsAreVersions(t *testing.T) {
	l := listNames(t, "1.manifest", "d9223372036854775818.manifest", "d99999999999999999999.manifest", "d9223372036854775819.manifest-5a2097ce-3586-4e75-8a10-760a300f4de7")
	if len(l.Detached) != 2 || len(l.DetachedRefs) != 1 || l.Ignored[ClassStaging] != 1 {
		t.Fatalf("%+v", l)
	}
	if r := l.DetachedRefs[0]; r.Version != 1<<63+10 || r.Path() != "_versions/d9223372036854775818.manifest" {
		t.Errorf("%+v", r)
	}
}
