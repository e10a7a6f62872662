package indexfile

import (
	"iter"
	"sort"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
)

type (
	fieldDescriptor = protoreflect.FieldDescriptor
	value           = protoreflect.Value
)

// DataNames gives other names, relative to data/, to data files of a remapped dataset; those that keep theirs are not
// in it.
type DataNames map[dataKey]string

// dataKey is a data file as the manifest names it: a path below a base.
type dataKey struct {
	base int64 // -1 = the dataset's own root
	path string
}

func keyOf(d *pb.DataFile) dataKey {
	k := dataKey{-1, d.GetPath()}
	if d.BaseId != nil {
		k.base = int64(d.GetBaseId())
	}
	return k
}

// other is the name that a data file gets, "" if it keeps its own.
func (n DataNames) other(d *pb.DataFile) string {
	if len(n) == 0 {
		return ""
	}
	return n[keyOf(d)]
}

// NameData finds the data files that cannot keep their names below one data/ directory: of two bases with a file of the
// same name the second in manifest order gets another one, and so does a path that leads out of the directory. Where the
// manifest has no bases and no such path, it is empty.
func NameData(m *dataset.Manifest) DataNames {
	names := DataNames{}
	bases, odd := false, false
	for _, f := range m.Fragments() {
		for d := range dataFiles(f) {
			bases, odd = bases || d.BaseId != nil, odd || !plainPath(d.GetPath())
		}
	}
	if !bases && !odd {
		return names
	}
	taken := map[string]bool{}
	given := map[dataKey]bool{}
	for pass := range 2 { // plain names first, so that no invented one takes theirs
		for _, f := range m.Fragments() {
			for d := range dataFiles(f) {
				k := keyOf(d)
				name := k.path
				switch {
				case given[k]:
					continue
				case pass == 0 && (!plainPath(k.path) || taken[k.path]):
					continue
				case pass == 1:
					name = freeName(k, taken)
					names[k] = name
				}
				taken[name], given[k] = true, true
			}
		}
	}
	return names
}

func plainPath(p string) bool { return p != "" && store.CheckName(p) == nil }

// freeName invents a name: that of the base before the file's own.
func freeName(k dataKey, taken map[string]bool) string {
	dir, file := "", "invalid.lance"
	if plainPath(k.path) {
		if i := strings.LastIndexByte(k.path, '/'); i >= 0 {
			dir, file = k.path[:i+1], k.path[i+1:]
		} else {
			file = k.path
		}
	}
	prefix := "base-"
	if k.base >= 0 {
		prefix = "base" + strconv.FormatInt(k.base, 10) + "-"
	}
	for n := 1; ; n++ {
		name := dir + prefix + file
		if n > 1 {
			name = dir + prefix + strconv.Itoa(n) + "-" + file
		}
		if !taken[name] {
			return name
		}
	}
}

// Kept is a file of a remapped dataset that is one of the original's, byte for byte: a data file, a deletion file, or a
// file that a fragment names by its path below the root. Or it is a directory of such files, which the manifest does not
// name: the one with the blobs of a data file.
type Kept struct {
	Path string // relative to the remapped dataset's root
	Size uint64 // as recorded, in bytes; 0 = unknown

	of       *dataset.Fragment
	n        int32 // data file: its position among all of the fragment's; else one of the constants below
	sidecars bool
}

// Sidecars reports whether it is the directory with the blobs of the data file Data, which may have none.
func (k *Kept) Sidecars() bool { return k.sidecars }

const (
	keptDeletion = -1
	keptExternal = -2
)

// Data is the data file, nil if it is another kind of file. It is decoded by each call.
func (k *Kept) Data() *pb.DataFile {
	n := int32(0)
	for d := range dataFiles(k.of) {
		if n == k.n {
			return d
		}
		n++
	}
	return nil
}

// Deletion is the fragment whose deletion file it is, nil if it is another kind of file.
func (k *Kept) Deletion() *dataset.Fragment {
	if k.n != keptDeletion {
		return nil
	}
	return k.of
}

// KeptFiles lists the files of a version that a remapped dataset has, in byte order of their paths, each once. Files
// that have no possible name (deletion files of an unknown type) are not in it, nor are those whose names would be taken
// for other parts of a dataset.
func KeptFiles(m *dataset.Manifest, names DataNames) []Kept {
	var out []Kept
	add := func(k Kept) {
		for rest := k.Path; ; {
			elem, tail, more := strings.Cut(rest, "/")
			if len(elem) > 255 {
				return // no file system has it
			}
			if !more {
				break
			}
			rest = tail
		}
		out = append(out, k)
	}
	blobs := m.BlobFields()
	for _, f := range m.Fragments() {
		n := int32(0)
		for d := range dataFiles(f) {
			name := d.GetPath()
			if other := names.other(d); other != "" {
				name = other
			}
			add(Kept{Path: "data/" + name, Size: d.GetFileSizeBytes(), of: f, n: n})
			if dir, ok := dataset.Sidecars(name, d, blobs); ok {
				add(Kept{Path: "data/" + dir, of: f, n: n, sidecars: true})
			}
			n++
		}
		if f.HasDeletionFile() {
			if name, err := dataset.DeletionFileName(f); err == nil {
				add(Kept{Path: "_deletions/" + name, of: f, n: keptDeletion})
			}
		}
		for _, p := range f.ExternalFiles() {
			if plainPath(p) && !reserved(p) {
				add(Kept{Path: p, of: f, n: keptExternal})
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	n := 0
	for i := range out {
		if n == 0 || out[n-1].Path != out[i].Path {
			out[n] = out[i]
			n++
		}
	}
	return out[:n]
}

// reserved reports whether a path below the root lies where a remapped dataset has files of its own.
func reserved(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return first == "_versions" || first == "_indices"
}

// dataFiles decodes the data files of a fragment one after the other, those of overlays last.
func dataFiles(f *dataset.Fragment) iter.Seq[*pb.DataFile] {
	return func(yield func(*pb.DataFile) bool) {
		for _, d := range f.Files() {
			if !yield(d) {
				return
			}
		}
		for _, o := range f.Overlays() {
			if o.GetDataFile() != nil && !yield(o.GetDataFile()) {
				return
			}
		}
	}
}
