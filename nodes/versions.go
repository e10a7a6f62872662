package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/frifs/frifs/fault"
)

// versionsDir is versions/: listed from names alone, no manifest is read.
type versionsDir struct {
	base
	t *Tree
	v *view
}

var _ Dir = (*versionsDir)(nil)

// Type implements Node.
func (d *versionsDir) Type() Type { return TypeDir }

// Volatile implements Dir.
func (d *versionsDir) Volatile() bool { return true }

func (d *versionsDir) attr() Attr {
	return Attr{Type: TypeDir, Perm: permDir, Mtime: d.mtime, Ino: d.ino}
}

func (d *versionsDir) peek() (Attr, bool) { return d.attr(), true }

// Attr implements Node: that of the versions as they are known now, since the node may be kept for long.
func (d *versionsDir) Attr(context.Context) (Attr, error) {
	if v := d.t.versions.known(); v != nil && v != d.v {
		return d.t.versionsDir(v).attr(), nil
	}
	return d.attr(), nil
}

func (d *versionsDir) at(v *view, i int) version {
	return version{t: d.t, v: v, i: i, path: "versions/" + strconv.FormatUint(v.refs[i].Version, 10)}
}

// Entries implements Dir: the versions as they are now.
func (d *versionsDir) Entries(ctx context.Context) ([]Entry, error) {
	v, err := d.t.view(ctx)
	if err != nil {
		return nil, err
	}
	return d.entriesOf(v), nil
}

func (d *versionsDir) entriesOf(v *view) []Entry {
	v.once.Do(func() {
		v.entries = make([]Entry, len(v.order))
		attrs := make([]Attr, len(v.order))
		digits := make([]byte, 0, 8*len(v.order))
		ends := make([]int, len(v.order))
		for k, i := range v.order {
			digits = strconv.AppendUint(digits, v.refs[v.lo+int(i)].Version, 10)
			ends[k] = len(digits)
		}
		names, from := string(digits), 0
		var buf []byte
		for k, i := range v.order {
			name := names[from:ends[k]]
			from = ends[k]
			at := v.lo + int(i)
			buf = v.appendDirKey(buf[:0], d.t.cfg.URI, at, name)
			attrs[k] = Attr{Type: TypeDir, Perm: permDir, Mtime: v.refs[at].Object.Modified, Ino: hashInode(buf)}
			v.entries[k] = Entry{Name: name, Type: TypeDir, Ino: attrs[k].Ino, Attr: &attrs[k]}
		}
	})
	return slices.Clone(v.entries)
}

// Lookup implements Dir.
func (d *versionsDir) Lookup(ctx context.Context, name string) (Node, error) {
	v, err := d.t.view(ctx)
	if err != nil {
		return nil, err
	}
	num, err := strconv.ParseUint(name, 10, 64)
	if err != nil || strconv.FormatUint(num, 10) != name {
		return nil, notFound(d.path, name)
	}
	i, ok := v.find(num)
	if !ok {
		return nil, d.t.notShown(v, num)
	}
	return d.at(v, i).dir(), nil
}

// notShown says why there is no directory for a version.
func (t *Tree) notShown(v *view, num uint64) error {
	path := t.path + "versions/" + strconv.FormatUint(num, 10)
	if _, ok := v.listing.Find(num); ok {
		return fault.New("lookup", path, fault.NotFound, "no such entry: another version is selected")
	}
	return fault.New("lookup", path, fault.NotFound, "no such entry: version %d is not retained; there are %s", num, v.span())
}

// version is one retained version in one view. It holds no data of the manifest: load gets it.
type version struct {
	t    *Tree
	v    *view
	i    int    // position in v.refs
	path string // of its directory in the tree
}

// number is the version's number, by its file name.
func (n version) number() uint64 { return n.v.refs[n.i].Version }

// key is the content key of files that depend on this manifest only. It tells the datasets of a mount apart.
func (n version) key() string { return n.t.scope + n.v.refs[n.i].Object.Identity() }

// chainKey is the content key of files that depend on all older retained versions too.
func (n version) chainKey() string { return n.v.chainKey(n.i) }

// windowKey is the content key of files that depend on up to w retained versions before this one.
func (n version) windowKey(w int) string {
	h := sha256.New()
	for _, r := range n.v.refs[max(0, n.i-w) : n.i+1] {
		h.Write(appendPart(nil, r.Object.Identity()))
	}
	return string(h.Sum(nil)[:8])
}

// now is the version as the tree shows it now: what files say of older versions is about those that are retained now,
// while the node of a directory may be kept for long. It is n where n is shown no more.
func (n version) now() version {
	v := n.t.versions.known()
	if v == nil || v == n.v {
		return n
	}
	if i, ok := v.find(n.number()); ok && sameRef(v.refs[i], n.v.refs[n.i]) {
		return version{t: n.t, v: v, i: i, path: n.path}
	}
	return n
}

// gone reports whether the version is shown no more: cleaned up, or another one has its number.
func (n version) gone() bool {
	v := n.t.versions.known()
	if v == nil || v == n.v || strings.HasPrefix(n.path, "detached/") {
		return false
	}
	i, ok := v.find(n.number())
	return !ok || !sameRef(v.refs[i], n.v.refs[n.i])
}

// dirIno is the inode of the version's directory: it stays the same as long as the manifest does. Files in it that look
// at older versions tell those apart themselves.
func (n version) dirIno() uint64 {
	return hashInode(n.v.appendDirKey(nil, n.t.cfg.URI, n.i, strconv.FormatUint(n.number(), 10)))
}

// appendDirKey appends what the inode of the directory of the version at position i is made of: dataset, path and
// identity of the manifest.
func (v *view) appendDirKey(b []byte, uri string, i int, name string) []byte {
	o := &v.refs[i].Object
	b = appendPart(appendPart(b, uri), "versions")
	b = appendPart(appendPart(appendPart(b, name), o.Name), o.ETag)
	b = binary.LittleEndian.AppendUint64(b, uint64(o.Size))
	return binary.LittleEndian.AppendUint64(b, uint64(o.Modified.UnixNano()))
}

// older returns the retained version before this one.
func (n version) older() (version, bool) {
	if n.i == 0 {
		return version{}, false
	}
	return n.sibling(n.i - 1), true
}

// sibling returns the retained version at position i of the same view.
func (n version) sibling(i int) version {
	return version{t: n.t, v: n.v, i: i, path: "versions/" + strconv.FormatUint(n.v.refs[i].Version, 10)}
}

// base makes the identity of a file or directory below the version, with a content key.
func (n version) base(rel, key string, mtime time.Time) base {
	p := n.path + "/" + rel
	return base{ino: n.t.inode(p, key), path: p, mtime: mtime}
}

// doc makes a document file below the version that depends on this manifest only.
func (n version) doc(l *loaded, rel string, class Class, build func(context.Context) (*document, error)) *docFile {
	return &docFile{base: n.base(rel, n.key(), l.mtime), t: n.t, class: class, build: build}
}

// dir is the version's directory.
func (n version) dir() *dir {
	return &dir{
		base: base{ino: n.dirIno(), path: n.path, mtime: n.v.refs[n.i].Object.Modified},
		list: n.list,
	}
}

// versionFiles are the names in a version's directory that a damaged manifest makes impossible.
func versionFiles() []string {
	return []string{"version.json", "manifest.json", "transaction.json", "changes.json", "fragments.csv", "files.json", "scan", "fri", "indices", lanceName}
}

func (n version) list(ctx context.Context) (*listing, error) {
	n = n.now()
	out := &listing{}
	l, err := n.load(ctx)
	if err != nil {
		if !lasting(err) {
			return nil, err
		}
		var es problems
		for _, f := range versionFiles() {
			es.add(f, err)
			out.bar(f, err)
		}
		out.add("ERROR.json", n.errorFile("", n.v.refs[n.i].Object.Modified, es))
		return out, nil
	}
	out.add("version.json", n.doc(l, "version.json", C1, n.versionJSON))
	out.add("manifest.json", n.doc(l, "manifest.json", C0, n.manifestJSON))
	out.add("transaction.json", n.doc(l, "transaction.json", C1, n.transactionJSON))
	changes := n.doc(l, "changes.json", C1, n.changesJSON)
	changes.ino = n.t.inode(changes.path, n.windowKey(changesWindow))
	out.add("changes.json", changes)
	out.add("fragments.csv", n.doc(l, "fragments.csv", C0, n.fragmentsCSV))
	out.add("files.json", n.doc(l, "files.json", C1, n.filesJSON))
	out.add("scan", n.scanDir(l))
	out.add("fri", n.friDir(l))
	if len(l.logical) > 0 {
		out.add("indices", n.indicesDir(l))
	}
	var es problems
	if l.refusal != nil {
		out.leaveOut(&es, lanceName, l.refusal)
	} else {
		out.add(lanceName, n.lanceDir(l))
		es = n.lanceLeftOut(l)
	}
	if len(es) > 0 {
		out.add("ERROR.json", n.errorFile("", l.mtime, es))
	}
	return out, nil
}

// scanDir is versions/<N>/scan/.
func (n version) scanDir(l *loaded) *dir {
	return &dir{base: n.base("scan", n.key(), l.mtime), list: func(ctx context.Context) (*listing, error) {
		l, err := n.load(ctx)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		out.add("files.json", n.doc(l, "scan/files.json", C2, n.scanFilesJSON))
		return out, nil
	}}
}

// problem is one thing that is impossible for a version, as ERROR.json shows it.
type problem struct {
	file string // relative to the directory that holds ERROR.json
	err  error
}

type problems []problem

func (ps *problems) add(file string, err error) { *ps = append(*ps, problem{file, err}) }

// leaveOut records that name is impossible in this listing.
func (l *listing) leaveOut(es *problems, name string, err error) {
	l.bar(name, err)
	es.add(name, err)
}

// errorFile is the ERROR.json of the directory at rel below the version ("" = the version's own).
func (n version) errorFile(rel string, mtime time.Time, es problems) *docFile {
	if rel != "" {
		rel += "/"
	}
	es = slices.Clone(es)
	return &docFile{base: n.base(rel+"ERROR.json", n.key(), mtime), t: n.t, class: C0,
		build: func(context.Context) (*document, error) { return errorJSON(es), nil }}
}
