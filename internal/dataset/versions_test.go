package dataset

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
)

func TestParseVersionName(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version uint64
		scheme  Scheme
		class   string // of a name that is no version
	}{
		{"1.manifest", 1, V1, ""},
		{"0.manifest", 0, V1, ""},
		{"9999999999999999999.manifest", 9999999999999999999, V1, ""},
		{"18446744073709551614.manifest", 1, V2, ""},
		{"18446744073709551605.manifest", 10, V2, ""},
		{"00000000000000000000.manifest", 18446744073709551615, V2, ""},
		{"09223372036854775808.manifest", 9223372036854775807, V2, ""},
		{"18446744073709551616.manifest", 0, SchemeUnknown, ClassOther},
		{"99999999999999999999.manifest", 0, SchemeUnknown, ClassOther},
		{"123456789012345678901.manifest", 0, SchemeUnknown, ClassOther},
		{"01.manifest", 0, SchemeUnknown, ClassOther},
		{"+1.manifest", 0, SchemeUnknown, ClassOther},
		{"-1.manifest", 0, SchemeUnknown, ClassOther},
		{"1_0.manifest", 0, SchemeUnknown, ClassOther},
		{"0x1.manifest", 0, SchemeUnknown, ClassOther},
		{" 1.manifest", 0, SchemeUnknown, ClassOther},
		{"١.manifest", 0, SchemeUnknown, ClassOther},
		{".manifest", 0, SchemeUnknown, ClassOther},
		{"1.manifest.bak", 0, SchemeUnknown, ClassOther},
		{"1.Manifest", 0, SchemeUnknown, ClassOther},
		{"_latest.manifest", 0, SchemeUnknown, ClassOther},
		{"latest_version_hint.json", 0, SchemeUnknown, ClassHint},
		{"d9223372036854775900.manifest", 0, SchemeUnknown, ClassDetached},
		{"d.manifest", 0, SchemeUnknown, ClassOther},
		{"dx1.manifest", 0, SchemeUnknown, ClassOther},
		{"7.manifest#1", 0, SchemeUnknown, ClassTemp},
		{"7.manifest-5a2097ce-3586-4e75-8a10-760a300f4de7", 0, SchemeUnknown, ClassStaging},
		{"18446744073709551614.manifest-5a2097ce-3586-4e75-8a10-760a300f4de7", 0, SchemeUnknown, ClassStaging},
		{"d9223372036854775900.manifest#1", 0, SchemeUnknown, ClassTemp},
		{".tmpAb3xYz", 0, SchemeUnknown, ClassTemp},
		{".tmp_7.manifest_5a2097ce-3586-4e75-8a10-760a300f4de7", 0, SchemeUnknown, ClassTemp},
		{"", 0, SchemeUnknown, ClassOther},
	} {
		version, scheme := ParseVersionName(tt.name)
		if version != tt.version || scheme != tt.scheme {
			t.Errorf("%q: version %d by %v, want %d by %v", tt.name, version, scheme, tt.version, tt.scheme)
		}
		if scheme == SchemeUnknown && classOf(tt.name) != tt.class {
			t.Errorf("%q: class %q, want %q", tt.name, classOf(tt.name), tt.class)
		}
	}
}

func TestVersionNamesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "version")
		if got, scheme := ParseVersionName(v2Name(v)); got != v || scheme != V2 {
			t.Fatalf("%s gave %d by %v", v2Name(v), got, scheme)
		}
		v %= 1e19
		if got, scheme := ParseVersionName(fmt.Sprintf("%d.manifest", v)); got != v || scheme != V1 {
			t.Fatalf("V1 name of %d gave %d by %v", v, got, scheme)
		}
	})
}

func v2Name(version uint64) string { return fmt.Sprintf("%020d.manifest", ^uint64(0)-version) }

// list puts empty objects with these names into _versions and lists them.
func listNames(tb testing.TB, names ...string) *Listing {
	tb.Helper()
	mem := storetest.NewMem(nil)
	for _, n := range names {
		mem.Put(store.Join(versionsDir, n), nil)
	}
	d, err := Open(tb.Context(), mem, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := d.Versions(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func numbers(l *Listing) []uint64 {
	out := []uint64{}
	for _, v := range l.Versions {
		out = append(out, v.Version)
	}
	return out
}

func TestMixedNamesGapsAndDuplicates(t *testing.T) {
	l := listNames(t, "10.manifest", "2.manifest", v2Name(11), v2Name(7), v2Name(2), "9.manifest", "sub/1.manifest")
	if got, want := numbers(l), []uint64{2, 7, 9, 10, 11}; !reflect.DeepEqual(got, want) {
		t.Errorf("versions %d, want %d", got, want)
	}
	if l.V1 != 3 || l.V2 != 3 {
		t.Errorf("V1 %d, V2 %d, want 3 and 3", l.V1, l.V2)
	}
	if want := map[string]int{ClassDuplicate: 1, ClassOther: 1}; !reflect.DeepEqual(l.Ignored, want) {
		t.Errorf("ignored %v, want %v", l.Ignored, want)
	}
	two, ok := l.Find(2)
	if !ok || two.Scheme != V2 || two.Path() != "_versions/"+v2Name(2) {
		t.Errorf("version 2 is %+v, want the V2 name", two)
	}
	if _, ok := l.Find(3); ok {
		t.Error("version 3 is a gap")
	}
	if latest, ok := l.Latest(); !ok || latest.Version != 11 {
		t.Errorf("latest is %+v", latest)
	}
	if _, ok := listNames(t, "latest_version_hint.json").Latest(); ok {
		t.Error("a table without versions has a latest one")
	}
}

// users.md R46: the hint among the manifests is no manifest, and is not believed.
func TestR46HintIsIgnoredAndCounted(t *testing.T) {
	l := listNames(t, v2Name(1), v2Name(3), "latest_version_hint.json")
	if got, want := numbers(l), []uint64{1, 3}; !reflect.DeepEqual(got, want) || l.Ignored[ClassHint] != 1 {
		t.Errorf("versions %d, ignored %v", got, l.Ignored)
	}
}

// users.md R47: detached manifests are no versions.
func TestR47DetachedManifestsAreIgnoredAndCounted(t *testing.T) {
	l := listNames(t, v2Name(1), "d9223372036854775900.manifest", "d13.manifest")
	if got, want := numbers(l), []uint64{1}; !reflect.DeepEqual(got, want) || l.Ignored[ClassDetached] != 2 {
		t.Errorf("versions %d, ignored %v", got, l.Ignored)
	}
	if want := []string{"d13.manifest", "d9223372036854775900.manifest"}; !reflect.DeepEqual(l.Detached, want) {
		t.Errorf("detached %q, want %q", l.Detached, want)
	}
}

// users.md R48: staging names of an external commit store are no versions.
func TestR48StagingNamesAreIgnoredAndCounted(t *testing.T) {
	l := listNames(t, "1.manifest", "2.manifest-5a2097ce-3586-4e75-8a10-760a300f4de7", "2.manifest#1", ".tmpXyz123")
	if got, want := numbers(l), []uint64{1}; !reflect.DeepEqual(got, want) {
		t.Errorf("versions %d, want %d", got, want)
	}
	if want := map[string]int{ClassStaging: 1, ClassTemp: 2}; !reflect.DeepEqual(l.Ignored, want) {
		t.Errorf("ignored %v, want %v", l.Ignored, want)
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		objects map[string][]byte
		says    string // "" = opens
	}{
		{"nothing", nil, "not a Lance dataset"},
		{"data only", map[string][]byte{"data/x.lance": nil}, "not a Lance dataset"},
		{"very old", map[string][]byte{"_latest.manifest": nil, "data/x.lance": nil}, "_latest.manifest"},
		{"no version yet", map[string][]byte{"_versions/.tmpAbc": nil}, ""},
		{"both", map[string][]byte{"_versions/1.manifest": nil, "_latest.manifest": nil}, ""},
	} {
		d, err := Open(t.Context(), storetest.NewMem(tt.objects), Options{})
		if tt.says != "" {
			if !fault.Is(err, fault.NotFound) || !contains(err, tt.says) {
				t.Errorf("%s: %v, want not_found with %q", tt.name, err, tt.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		l, err := d.Versions(t.Context())
		if err != nil || l.LegacyLatest != (tt.objects["_latest.manifest"] == nil && len(tt.objects) == 2) {
			t.Errorf("%s: legacy latest %t, %v", tt.name, l.LegacyLatest, err)
		}
	}
}

// users.md R50: list and get are enough, and a denied look at an optional file is no failure.
func TestR50ReadOnlyCredentialsAreEnough(t *testing.T) {
	c := storetest.New(storetest.NewMem(map[string][]byte{"_versions/1.manifest": build(manifestParts{})}), 0)
	denied := fault.New("test", "", fault.Denied, "403")
	c.Fail("", "_latest.manifest", denied)
	c.Fail("", "_transactions", denied)
	d, err := Open(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Versions(t.Context())
	if err != nil || len(l.Versions) != 1 {
		t.Fatalf("versions %v, %v", l, err)
	}
	if _, err := d.Manifest(t.Context(), l.Versions[0]); err != nil {
		t.Error(err)
	}
}

func TestListingIsOneCallAndReadsNothing(t *testing.T) {
	mem := storetest.NewMem(nil)
	for v := uint64(1); v <= 20000; v++ {
		mem.Put("_versions/"+v2Name(v), nil)
	}
	c := storetest.New(mem, 0)
	d, err := Open(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Reset()
	l, err := d.Versions(t.Context())
	if err != nil || len(l.Versions) != 20000 || l.Versions[19999].Version != 20000 {
		t.Fatalf("%d versions, %v", len(l.Versions), err)
	}
	if c.Total("") != 1 || c.Total("List") != 1 {
		t.Errorf("calls: %v, want one List", c.Calls())
	}
}
