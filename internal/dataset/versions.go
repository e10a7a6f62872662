package dataset

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// Scheme is how a manifest's file name carries its version.
type Scheme uint8

// The naming schemes of docs/FORMAT.md, "Versions".
const (
	SchemeUnknown Scheme = iota
	V1                   // the number
	V2                   // 20 digits, counting down from the largest u64, so that the newest sorts first
)

// String is "v1" or "v2".
func (s Scheme) String() string {
	switch s {
	case V1:
		return "v1"
	case V2:
		return "v2"
	}
	return "unknown"
}

// The classes of names in _versions that are no version.
const (
	ClassHint      = "hint"      // latest_version_hint.json
	ClassStaging   = "staging"   // N.manifest-<uuid> of an external commit store: not known to be committed
	ClassTemp      = "temp"      // .tmp..., N.manifest#1: written before a rename or link
	ClassDetached  = "detached"  // dN.manifest: a version outside the history
	ClassDuplicate = "duplicate" // a V1 name whose version also has a V2 name
	ClassOther     = "other"
)

const manifestSuffix = ".manifest"

// VersionRef names one version by its manifest file.
type VersionRef struct {
	Version uint64
	Name    string // file name in _versions
	Object  store.Object
	Scheme  Scheme
}

// Path is the name of the manifest relative to the dataset's root.
func (r VersionRef) Path() string { return store.Join(versionsDir, r.Name) }

// Listing is what one look into _versions gave.
type Listing struct {
	Versions     []VersionRef   // ascending, each number once; numbers need not be contiguous
	Detached     []string       // file names of detached versions, in byte order
	DetachedRefs []VersionRef   // the same; the number has bit 63 set
	Ignored      map[string]int // class → how many names
	V1, V2       int            // manifests by naming scheme, a duplicate included
	LegacyLatest bool           // _latest.manifest stood beside _versions when the dataset was opened
}

// Latest returns the highest version.
func (l *Listing) Latest() (VersionRef, bool) {
	if len(l.Versions) == 0 {
		return VersionRef{}, false
	}
	return l.Versions[len(l.Versions)-1], true
}

// Find returns a version by number.
func (l *Listing) Find(version uint64) (VersionRef, bool) {
	i := sort.Search(len(l.Versions), func(i int) bool { return l.Versions[i].Version >= version })
	if i < len(l.Versions) && l.Versions[i].Version == version {
		return l.Versions[i], true
	}
	return VersionRef{}, false
}

// Versions lists the versions from names alone, with one List and no other call. Each call asks the store anew.
// Errors are the store's.
func (d *Dataset) Versions(ctx context.Context) (*Listing, error) {
	objects, err := d.st.List(ctx, versionsDir)
	if err != nil {
		return nil, fault.Wrap("dataset.Versions", d.URI(), err)
	}
	l := classify(objects)
	l.LegacyLatest = d.legacyLatest
	return l, nil
}

// classify sorts the objects of _versions into versions and the rest.
func classify(objects []store.Object) *Listing {
	l := &Listing{Ignored: map[string]int{}, Versions: make([]VersionRef, 0, len(objects))}
	for _, o := range objects {
		name := o.Name[strings.LastIndexByte(o.Name, '/')+1:]
		version, scheme := ParseVersionName(name)
		if o.Dir {
			l.Ignored[ClassOther]++
			continue
		}
		switch scheme {
		case V1:
			l.V1++
		case V2:
			l.V2++
		default:
			class := classOf(name)
			if class == ClassDetached {
				l.Detached = append(l.Detached, name)
				if n, err := strconv.ParseUint(name[1:len(name)-len(manifestSuffix)], 10, 64); err == nil {
					l.DetachedRefs = append(l.DetachedRefs, VersionRef{n, name, o, SchemeUnknown})
				}
			}
			l.Ignored[class]++
			continue
		}
		l.Versions = append(l.Versions, VersionRef{version, name, o, scheme})
	}
	slices.Reverse(l.Versions) // V2 names come newest first: with those alone this is all there is to sort
	order := func(a, b VersionRef) int {
		if a.Version != b.Version {
			return cmp.Compare(a.Version, b.Version)
		}
		return cmp.Compare(b.Scheme, a.Scheme)
	}
	if !slices.IsSortedFunc(l.Versions, order) {
		slices.SortStableFunc(l.Versions, order)
	}
	// A migration from V1 to V2 names may stand half way: of two names for one number the V2 one counts.
	kept := l.Versions[:0]
	for _, v := range l.Versions {
		if len(kept) > 0 && kept[len(kept)-1].Version == v.Version {
			l.Ignored[ClassDuplicate]++
			continue
		}
		kept = append(kept, v)
	}
	l.Versions = kept
	return l
}

// ParseVersionName reads a file name of _versions by the strict patterns: V1 is 1 to 19 digits without padding, V2
// exactly 20 digits that fit a u64. Anything else gives SchemeUnknown.
func ParseVersionName(name string) (uint64, Scheme) {
	digits, ok := strings.CutSuffix(name, manifestSuffix)
	if !ok || !isDigits(digits) || len(digits) > 20 {
		return 0, SchemeUnknown
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case err != nil:
		return 0, SchemeUnknown
	case len(digits) == 20:
		return ^uint64(0) - n, V2
	case len(digits) > 1 && digits[0] == '0':
		return 0, SchemeUnknown
	}
	return n, V1
}

// classOf classifies a name that is no version.
func classOf(name string) string {
	switch {
	case name == "latest_version_hint.json":
		return ClassHint
	case strings.HasPrefix(name, ".tmp"):
		return ClassTemp
	}
	if number, ok := strings.CutPrefix(name, "d"); ok {
		if digits, ok := strings.CutSuffix(number, manifestSuffix); ok && isDigits(digits) {
			return ClassDetached
		}
	}
	if i := strings.Index(name, manifestSuffix); i > 0 && isDigits(strings.TrimPrefix(name[:i], "d")) {
		switch tail := name[i+len(manifestSuffix):]; {
		case strings.HasPrefix(tail, "-"):
			return ClassStaging
		case strings.HasPrefix(tail, "#"):
			return ClassTemp
		}
	}
	return ClassOther
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
