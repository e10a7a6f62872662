package nodes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
)

// view is the retained versions as one listing of _versions showed them. It is immutable once made.
type view struct {
	listing *dataset.Listing
	refs    []dataset.VersionRef // all retained versions, ascending
	lo, hi  int                  // refs[lo:hi] is what the tree shows
	order   []int32              // positions in refs[lo:hi] in byte order of the decimal numbers

	once    sync.Once
	entries []Entry // of versions/, made by once; shared, never changed

	chainOnce sync.Once
	chain     []string // chain[i] names the identities of refs[0..i]; made by chainOnce
}

// chainKey names the manifests up to position i: the content key of what depends on older versions.
func (v *view) chainKey(i int) string {
	v.chainOnce.Do(func() {
		v.chain = make([]string, len(v.refs))
		var sum [sha256.Size]byte
		var buf []byte
		for i, r := range v.refs {
			buf = append(append(buf[:0], sum[:]...), r.Object.Identity()...)
			sum = sha256.Sum256(buf)
			v.chain[i] = string(sum[:8])
		}
	})
	return v.chain[i]
}

// view returns the retained versions as they were when they were last looked at.
func (t *Tree) view(ctx context.Context) (*view, error) { return t.versions.get(ctx) }

// newView makes the view of a listing.
func (t *Tree) newView(l *dataset.Listing) *view {
	v := &view{listing: l, refs: l.Versions, hi: len(l.Versions)}
	if t.pin != nil {
		v.lo = sort.Search(len(v.refs), func(i int) bool { return v.refs[i].Version >= *t.pin })
		v.hi = v.lo
		if v.lo < len(v.refs) && v.refs[v.lo].Version == *t.pin {
			v.hi++
		}
	}
	v.order = byteOrder(v.refs[v.lo:v.hi])
	return v
}

// byteOrder sorts positions by the decimal digits of the versions, as strings would sort: by the number with zeros
// appended to 20 digits, a prefix first.
func byteOrder(refs []dataset.VersionRef) []int32 {
	type key struct {
		hi, lo uint64 // version * 10^(20-digits), in 128 bits
		i      int32
	}
	keys := make([]key, len(refs))
	for i, r := range refs {
		scale := uint64(1e19)
		for n := r.Version; n >= 10; n /= 10 {
			scale /= 10
		}
		hi, lo := bits.Mul64(r.Version, scale)
		keys[i] = key{hi, lo, int32(i)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo), cmp.Compare(a.i, b.i))
	})
	out := make([]int32, len(refs))
	for i, k := range keys {
		out[i] = k.i
	}
	return out
}

// find returns the position of a version that is shown.
func (v *view) find(version uint64) (int, bool) {
	i := v.lo + sort.Search(v.hi-v.lo, func(i int) bool { return v.refs[v.lo+i].Version >= version })
	return i, i < v.hi && v.refs[i].Version == version
}

// resolvePin finds the version that the selectors name.
func (t *Tree) resolvePin(ctx context.Context) error {
	v, err := t.view(ctx)
	if err != nil {
		return err
	}
	switch {
	case t.cfg.Version != nil:
		if _, ok := v.find(*t.cfg.Version); !ok {
			named := ""
			if t.cfg.Tag != "" {
				named = ", which the tag " + strconv.Quote(t.cfg.Tag) + " names,"
			}
			return fault.New("nodes.New", t.cfg.URI, fault.NotFound, "version %d%s is not retained; there are %s", *t.cfg.Version, named, v.span())
		}
		t.pin = t.cfg.Version
	case !t.cfg.AsOf.IsZero():
		i, err := t.asOf(ctx, v, t.cfg.AsOf)
		if err != nil {
			return err
		}
		t.pin = &v.refs[i].Version
	case t.cfg.Branch != "":
		if len(v.refs) == 0 {
			return fault.New("nodes.New", t.cfg.URI, fault.NotFound, "there is no version")
		}
		t.pin = &v.refs[len(v.refs)-1].Version
	default:
		return nil
	}
	t.versions.freeze(t.newView(v.listing))
	return nil
}

// span says in words which versions there are.
func (v *view) span() string {
	if len(v.refs) == 0 {
		return "none"
	}
	return strconv.Itoa(len(v.refs)) + ", from " + strconv.FormatUint(v.refs[0].Version, 10) + " to " +
		strconv.FormatUint(v.refs[len(v.refs)-1].Version, 10)
}

// asOf finds the highest version whose manifest time is not after at. Manifest times are no order, so it walks down from
// the newest; versions that cannot be read or have no time do not match.
func (t *Tree) asOf(ctx context.Context, v *view, at time.Time) (int, error) {
	const batch = 16
	oldest := "" // in words
	for hi := len(v.refs); hi > 0; hi -= min(batch, hi) {
		lo := hi - min(batch, hi)
		match := make([]bool, hi-lo)
		times := make([]string, hi-lo)
		errs := make([]error, hi-lo)
		var wg sync.WaitGroup
		for i := lo; i < hi; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				m, err := t.ds.Manifest(ctx, v.refs[i])
				if err != nil {
					errs[i-lo] = err
					return
				}
				ts, ok := m.Timestamp()
				match[i-lo] = ok && !ts.After(at)
				if ok {
					times[i-lo] = ts.UTC().Format(timeLayout)
				}
			}()
		}
		wg.Wait()
		for i := hi - 1; i >= lo; i-- {
			if err := errs[i-lo]; err != nil && !lasting(err) {
				return 0, err
			}
			if match[i-lo] {
				return i, nil
			}
			if times[i-lo] != "" {
				oldest = "; version " + strconv.FormatUint(v.refs[i].Version, 10) + " is of " + times[i-lo]
			}
		}
	}
	return 0, fault.New("nodes.New", t.cfg.URI, fault.NotFound, "no version is as old as %s; there are %s%s", at.UTC().Format(timeLayout), v.span(), oldest)
}
