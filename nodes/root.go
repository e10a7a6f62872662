package nodes

import (
	"context"
	"slices"
	"strconv"

	"github.com/frifs/frifs/fault"
)

// Root returns the root directory of the tree.
func (t *Tree) Root() Dir {
	return &dir{base: base{ino: t.inode("", "root"), mtime: t.start}, volatile: true, list: t.rootList, find: t.rootFind}
}

// rootNames are the entries of a tree's root. latest is there only if there is a version, README.txt and .frifs only at
// the root of the mount, tags and branches only where refs are: at the root of a dataset that is shown whole.
func (t *Tree) rootNames(v *view) []string {
	names := []string{"dataset.json"}
	if t.path == "" {
		names = append(names, ".frifs", "README.txt")
	}
	if v.hi > v.lo {
		names = append(names, "latest")
	}
	if main, _ := t.ds.Main(); main == nil {
		names = append(names, "tags")
		if t.pin == nil {
			names = append(names, "branches")
		}
	} else if t.path == "" {
		names = append(names, "tags")
	}
	if t.pin == nil && len(v.listing.DetachedRefs) > 0 {
		names = append(names, "detached")
	}
	return append(names, "versions")
}

// rootList lists the root.
func (t *Tree) rootList(ctx context.Context) (*listing, error) {
	if t.db != nil {
		return t.databaseList(ctx)
	}
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	out := &listing{}
	for _, name := range t.rootNames(v) {
		if name == "dataset.json" {
			out.add(name, t.live.name(name))
			continue
		}
		out.add(name, t.rootNode(v, name))
	}
	return out, nil
}

// rootNode makes an entry of the root.
func (t *Tree) rootNode(v *view, name string) Node {
	switch name {
	case ".frifs":
		return t.frifsDir()
	case "README.txt":
		return t.readme()
	case "detached":
		return t.detachedDir()
	case "tags":
		return t.tagsDir()
	case "branches":
		return t.branchesDir()
	case "latest":
		return t.latest(v)
	}
	return t.versionsDir(v)
}

func (t *Tree) rootFind(ctx context.Context, name string) (Node, error) {
	if t.db != nil {
		return t.databaseFind(ctx, name)
	}
	switch name {
	case "dataset.json":
		f, err := t.live.file(ctx, name, t.datasetJSON)
		if err != nil {
			return nil, err
		}
		return f, nil
	case "diff":
		return t.diffDir(), nil
	case ".frifs", "README.txt":
		if t.path == "" {
			return t.rootNode(nil, name), nil
		}
		return nil, notFound("", name)
	}
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	if slices.Contains(t.rootNames(v), name) {
		return t.rootNode(v, name), nil
	}
	if name == "latest" {
		return nil, fault.New("lookup", "latest", fault.NotFound, "there is no version: _versions holds no manifest with a valid name")
	}
	return nil, notFound("", name)
}

// versionsDir is versions/. Its modification time is that of the newest manifest.
func (t *Tree) versionsDir(v *view) *versionsDir {
	d := &versionsDir{base: base{ino: t.inode("versions", "versions"), path: "versions", mtime: t.start}, t: t, v: v}
	for _, r := range v.refs[v.lo:v.hi] {
		if r.Object.Modified.After(d.mtime) || d.mtime.Equal(t.start) {
			d.mtime = r.Object.Modified
		}
	}
	return d
}

// latest is the link to the highest version, also where its manifest is damaged.
func (t *Tree) latest(v *view) *link {
	r := v.refs[v.hi-1]
	target := "versions/" + strconv.FormatUint(r.Version, 10)
	return &link{base: base{ino: t.inode("latest", target), path: "latest", mtime: r.Object.Modified}, target: target}
}

func (t *Tree) readme() *bytesFile {
	return &bytesFile{base: base{ino: t.inode("README.txt", readmeText), path: "README.txt", mtime: t.start}, data: []byte(readmeText)}
}

// readmeText is README.txt: how to read the mount, in one screen.
const readmeText = `This is a Lance dataset, shown by frifs as plain files. Nothing here can be written; nothing is
written to the dataset. Everything is computed when it is read.

  dataset.json                  the dataset: uri, versions, branches, tags, flags
  latest                        link to the newest version
  tags/<tag>                    link to the version that the tag names; it dangles where that was cleaned up
  branches/<name>/              a branch, laid out as here; a / in its name is written %2F
  detached/<N>/                 a version that stands outside the history, laid out like one of versions/
  tables/<name>/                in a database, in place of all that: a dataset, laid out as here
  versions/<N>/version.json     what happened in version N, and what it means ("advice")
               manifest.json    the whole manifest, decoded
               changes.json     what changed since the version before
               fragments.csv    one line per fragment
               files.json       every file that the version needs
               fri/             the fragment reuse index: which rewrites are recorded, and where rows went
                 history.json   the rewrites
                 status.json    which of them are still needed, by whom, since when
                 transitions/0001/mapping.csv    old row address -> new row address, one line per old row
                 scan/composed.csv               every address of the fragments that were rewritten ->
                                                 where it is in version N
                 scan/needed.json                which rewrites the addresses in the index files need
               indices/<name>/  index.json, and per segment (<uuid>/)
                 segment.json   its metadata, and what its files hold
                 stored/        its files, byte for byte
                 remapped/      the same files with each row address translated to where the row is in
                                version N; a row that is gone has a placeholder, fragment 4294967294
                 scan/addresses.csv              every stored address, and what became of it
                 scan/summary.json               counts of them; whether they need the rewrites
               remapped.lance/  a whole dataset: version N with the remapped indices and no reuse index;
                                open it with any Lance, or copy it
  diff/<A>..<B>/changes.json    what changed from version A to B; not listed, ask for it by name
  .frifs/                       how this mount is doing: status.json, errors.jsonl, metrics; and what no
                                version names any more: orphans.json

A row address is fragment * 2^32 + offset. Outcomes: same, moved, deleted_now (still there, but a
deletion file names it), dropped (deleted before a rewrite), dangling (its fragment is gone and no
record says where to), out_of_range, unresolved (a record that is needed cannot be used). An entry of
an index is covered where its index answers for the fragment that its row is in now; readers ignore
the others. ERROR.json in a directory says what cannot be shown there, and why. Listing is cheap;
files below scan/, and remapped files of bitmap-like indices, may have to be worked out before their
size is known.

  jq '.transitions[] | {seq, kind, rows}' latest/fri/history.json
  awk -F, '$1 == 4294967298' latest/fri/scan/composed.csv
  jq .advice latest/version.json
  jq '{needs_fri, outcomes, masked}' latest/indices/*/*/scan/summary.json
`
