package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

const (
	tagsDir     = "_refs/tags"
	branchesDir = "_refs/branches"
	treeDir     = "tree"
	refSuffix   = ".json"

	maxRefBytes = 1 << 20 // of one ref file; the largest seen has a few hundred bytes
	maxRefDepth = 32      // path elements of a branch name
	maxRefDirs  = 1000    // directories that are listed in search of branches
)

// Ref is a tag or a branch by its name, as a listing of _refs shows it (docs/FORMAT.md, "Refs").
type Ref struct {
	Name   string       // decoded
	File   string       // of the JSON file, relative to the dataset's root; "" for a branch that has only a directory
	Object store.Object // of the file; zero where File is ""
}

// Key names the content of the ref's file.
func (r Ref) Key() string {
	if r.File == "" {
		return "no file"
	}
	return r.Object.Identity()
}

// listRefs lists the JSON files below dir, at most depth levels, ascending by name and each name once. A directory that
// does not exist holds none; one that may not be listed is the store's error.
func (d *Dataset) listRefs(ctx context.Context, dir string, depth int) ([]Ref, error) {
	var out []Ref
	type level struct {
		dir   string
		depth int
	}
	todo := []level{{dir, depth}}
	for n := 0; len(todo) > 0 && n < maxRefDirs; n++ {
		at := todo[0]
		todo = todo[1:]
		objects, err := d.st.List(ctx, at.dir)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, fault.Wrap("dataset.Refs", store.Join(d.URI(), at.dir), err)
		}
		for _, o := range objects {
			if o.Dir {
				if at.depth > 1 {
					todo = append(todo, level{o.Name, at.depth - 1})
				}
				continue
			}
			// Temporary files end in .tmp.<hex> or #1.
			if name, ok := strings.CutSuffix(strings.TrimPrefix(o.Name, dir+"/"), refSuffix); ok {
				out = append(out, Ref{Name: decodeRefName(name), File: o.Name, Object: o})
			}
		}
	}
	// Of two files for one name the one that is written as Lance does, in one path element, comes first and counts.
	slices.SortStableFunc(out, func(a, b Ref) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return strings.Count(a.File, "/") - strings.Count(b.File, "/")
	})
	return slices.CompactFunc(out, func(a, b Ref) bool { return a.Name == b.Name }), nil
}

// decodeRefName undoes the percent-encoding of a file name; a name that is not encoded so is taken as it is.
func decodeRefName(name string) string {
	if raw, err := url.PathUnescape(name); err == nil {
		return raw
	}
	return name
}

// readRef reads a ref's file into v, once for each content.
func readRef[V any](ctx context.Context, d *Dataset, ref Ref, parse func([]byte) (V, error)) (V, error) {
	const op = "dataset.Ref"
	var zero V
	where := store.Join(d.URI(), ref.File)
	v, err := d.cache.get(ctx, "ref|"+d.URI()+"|"+ref.Key(), func(ctx context.Context) (any, int64, error) {
		if ref.Object.Size > maxRefBytes {
			return nil, 0, fault.New(op, where, fault.TooLarge, "the file has %d bytes, more than %d", ref.Object.Size, maxRefBytes)
		}
		b, listed, err := d.readRefFile(ctx, ref)
		if err != nil {
			return nil, 0, fault.Wrap(op, where, err)
		}
		if len(b) > maxRefBytes {
			return nil, 0, fault.New(op, where, fault.TooLarge, "the file has more than %d bytes", maxRefBytes)
		}
		v, err := parse(b)
		if err != nil {
			return nil, 0, fault.New(op, where, fault.Corrupt, "%w", err)
		}
		if !listed {
			return v, -1, nil
		}
		return v, 256 + 2*int64(len(b)), nil
	})
	if err != nil {
		return zero, err
	}
	return v.(V), nil
}

// readRefFile reads the file as it was listed, or, where it was replaced since (listed is false then), as it is.
func (d *Dataset) readRefFile(ctx context.Context, ref Ref) (b []byte, listed bool, err error) {
	obj := ref.Object
	obj.Name = ref.File
	b, err = store.ReadObject(ctx, d.st, obj, 0, maxRefBytes+1)
	if fault.Is(err, fault.Stale) {
		b, err = d.st.ReadRange(ctx, ref.File, 0, maxRefBytes+1)
		return b, false, err
	}
	return b, true, err
}

// members are the members of a ref's JSON object. Lance writes camelCase keys, its specification has snake_case.
type members map[string]json.RawMessage

func parseMembers(b []byte) (members, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	var m members
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("the ref is no JSON object: %w", jsonCause(err))
	}
	if m == nil {
		return nil, errors.New("the ref is null, not a JSON object")
	}
	end := dec.InputOffset()
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is more behind the JSON object, which ends at byte %d", end)
	}
	return m, nil
}

// jsonCause names the byte of a syntax error.
func jsonCause(err error) error {
	var se *json.SyntaxError
	if errors.As(err, &se) {
		return fmt.Errorf("byte %d: %w", se.Offset, err)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty")
	}
	return err
}

// get returns the first of the keys that is there and not null.
func (m members) get(keys ...string) (json.RawMessage, bool) {
	for _, k := range keys {
		if v, ok := m[k]; ok && string(v) != "null" {
			return v, true
		}
	}
	return nil, false
}

// number reads an unsigned number that must be there.
func (m members) number(keys ...string) (uint64, error) {
	v, ok := m.get(keys...)
	if !ok {
		return 0, fmt.Errorf("%q is missing", keys[0])
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no version number: %s", keys[0], shorten(v))
	}
	return n, nil
}

// branch reads the name of a branch, "" for the main line.
func (m members) branch(keys ...string) (string, error) {
	v, ok := m.get(keys...)
	if !ok {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		return "", fmt.Errorf("%q is no branch name: %s", keys[0], shorten(v))
	}
	if s == MainBranch {
		s = ""
	}
	return s, nil
}

// time reads a time that may be missing: RFC 3339, or seconds. What cannot be understood is taken as not recorded.
func (m members) time(keys ...string) *time.Time {
	v, ok := m.get(keys...)
	if !ok {
		return nil
	}
	var s string
	if json.Unmarshal(v, &s) == nil {
		if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
			t = t.UTC()
			return &t
		}
		return nil
	}
	const last = 253402300800 // the year 10000
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && n >= 0 && n < last {
		t := time.Unix(n, 0).UTC()
		return &t
	}
	return nil
}

// size reads a count that may be missing.
func (m members) size(keys ...string) *uint64 {
	if n, err := m.number(keys...); err == nil {
		return &n
	}
	return nil
}

func shorten(b []byte) string {
	if len(b) > 60 {
		return string(b[:60]) + "..."
	}
	return string(b)
}
