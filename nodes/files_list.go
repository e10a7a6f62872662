package nodes

import (
	"context"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
)

// fileKind is what a file of a version is.
type fileKind uint8

const (
	fileManifest fileKind = iota
	fileTransaction
	fileData
	fileOverlay
	fileBlobDir // the directory with the blobs of a data file, where it has some
	fileDeletion
	fileIndex
	fileIndexDir // the directory of an index whose files are not recorded
	fileDetails
	fileRowMap
	fileManagedBlobs // the directory with blobs that many versions share
)

func (k fileKind) String() string {
	return [...]string{"manifest", "transaction", "data", "overlay", "blob_directory", "deletion", "index", "index_directory", "fri_details", "row_map", "managed_blob_directory"}[k]
}

// fileItem names one file of a version by its place in the manifest or the history: item b of object a.
type fileItem struct {
	kind fileKind
	a, b int32
}

// fileList is every file that a version needs, in manifest order.
type fileList struct {
	n     version
	l     *loaded
	h     *history
	items []fileItem
	bases map[int64]resolvedBase // by base id, -1 = none
}

type resolvedBase struct {
	base dataset.Base
	err  error
}

// place is where a file is and what is recorded about it.
type place struct {
	path     string // relative to the base, by the rules of docs/FORMAT.md, "Base paths"
	base     *uint32
	store    store.Store
	uri      string
	size     *uint64 // recorded, in bytes
	fragment *uint64
	index    string // uuid
	err      error
}

// fileList collects the files of the version. The history is looked at for row maps; one that cannot be used names none.
func (n version) fileList(ctx context.Context) (*fileList, error) {
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	f := &fileList{n: n, l: l, h: h, bases: map[int64]resolvedBase{}}
	add := func(k fileKind, a, b int) { f.items = append(f.items, fileItem{k, int32(a), int32(b)}) }
	add(fileManifest, 0, 0)
	if l.m.PB.GetTransactionFile() != "" {
		add(fileTransaction, 0, 0)
	}
	blobs := l.m.BlobFields()
	for i, fr := range l.m.Fragments() {
		for k := range fr.NumFiles() {
			add(fileData, i, k)
			if blobs == nil {
				continue
			}
			if d := fr.File(k); hasSidecars(d, blobs) {
				add(fileBlobDir, i, k)
			}
		}
		for k := range fr.NumOverlays() {
			add(fileOverlay, i, k)
		}
		if fr.HasDeletionFile() {
			add(fileDeletion, i, 0)
		}
	}
	for i, ix := range l.m.Indices {
		if ix == l.fri.entry || ix.Name == dataset.MemWalIndexName {
			continue
		}
		for k := range ix.PB.GetFiles() {
			add(fileIndex, i, k)
		}
		if len(ix.PB.GetFiles()) == 0 && recognise(ix).Class == fri.NotFRI {
			add(fileIndexDir, i, 0)
		}
	}
	if l.fri.content.External != nil {
		add(fileDetails, 0, 0)
	}
	if l.managedBlobs() {
		add(fileManagedBlobs, 0, 0)
	}
	for i, t := range h.h.Transitions {
		if t.Usable() && t.Partition != nil {
			add(fileRowMap, i, 0)
		}
	}
	f.base(ctx, nil)
	for _, b := range l.m.PB.GetBasePaths() {
		id := b.GetId()
		f.base(ctx, &id)
	}
	return f, nil
}

func baseKey(id *uint32) int64 {
	if id == nil {
		return -1
	}
	return int64(*id)
}

func (f *fileList) base(ctx context.Context, id *uint32) {
	b, err := f.n.t.ds.Base(ctx, f.l.m, id)
	f.bases[baseKey(id)] = resolvedBase{b, err}
}

// under fills in where a file below a base is; inRoot is its path below a dataset root, plain its path below any other.
func (f *fileList) under(p *place, id *uint32, inRoot, plain string) {
	p.base, p.path = id, inRoot
	b, ok := f.bases[baseKey(id)]
	if !ok {
		_, b.err = f.n.t.ds.Base(context.Background(), f.l.m, id)
	}
	if p.err = b.err; p.err != nil {
		return
	}
	if !b.base.DatasetRoot {
		p.path = plain
	}
	if p.err = store.CheckName(p.path); p.err != nil {
		return
	}
	p.store, p.uri = b.base.Store, store.Join(b.base.URI, p.path)
}

// place resolves item i without asking the store.
func (f *fileList) place(i int) place {
	it := f.items[i]
	var p place
	recorded := func(size uint64) {
		if size != 0 {
			p.size = &size
		}
	}
	switch it.kind {
	case fileManifest:
		recorded(uint64(f.l.m.Ref.Object.Size))
		f.under(&p, nil, f.l.m.Ref.Path(), "")
	case fileTransaction:
		name := "_transactions/" + f.l.m.PB.GetTransactionFile()
		f.under(&p, nil, name, name)
	case fileData, fileOverlay:
		fr := f.l.m.Fragments()[it.a]
		id := fr.RecordedID()
		p.fragment = &id
		d := &pb.DataFile{}
		if it.kind == fileData {
			d = fr.File(int(it.b))
		} else if o := fr.Overlay(int(it.b)).GetDataFile(); o != nil {
			d = o
		}
		recorded(d.GetFileSizeBytes())
		f.under(&p, d.BaseId, "data/"+d.GetPath(), d.GetPath())
	case fileBlobDir:
		fr := f.l.m.Fragments()[it.a]
		id := fr.RecordedID()
		p.fragment = &id
		d := fr.File(int(it.b))
		dir, _ := dataset.Sidecars(d.GetPath(), d, f.l.m.BlobFields())
		f.under(&p, d.BaseId, "data/"+dir, dir)
	case fileManagedBlobs:
		f.under(&p, nil, dataset.ManagedBlobsDir, "")
	case fileDeletion:
		fr := f.l.m.Fragments()[it.a]
		id := fr.RecordedID()
		p.fragment = &id
		name, err := dataset.DeletionFileName(fr)
		if err != nil {
			p.err = err
			return p
		}
		f.under(&p, fr.DeletionFile().BaseId, "_deletions/"+name, "_deletions/"+name)
	case fileIndex, fileIndexDir:
		ix := f.l.m.Indices[it.a]
		p.index = segmentName(ix)
		name := p.index
		if it.kind == fileIndex {
			file := ix.PB.GetFiles()[it.b]
			recorded(file.GetSizeBytes())
			name += "/" + file.GetPath()
		}
		f.under(&p, ix.PB.BaseId, "_indices/"+name, name)
	case fileDetails:
		ext := f.l.fri.content.External
		p.index = segmentName(f.l.fri.entry)
		name := p.index + "/" + ext.Path
		f.under(&p, f.l.fri.entry.PB.BaseId, "_indices/"+name, name)
	case fileRowMap:
		part := f.h.h.Transitions[it.a].Partition
		recorded(part.SizeBytes)
		name := "_fri/" + part.MapID + "/stable_partition.lance"
		f.under(&p, part.BaseID, name, name)
	}
	return p
}

func (e *enc) placeMembers(k fileKind, p place) {
	e.K("kind").Str(k.String())
	e.K("path").Str(p.path)
	e.K("base_id").OptUint32(p.base)
	e.K("uri").OptStr(p.uri)
	e.K("recorded_bytes").OptUint(p.size)
	e.K("fragment").OptUint(p.fragment)
	e.K("index_uuid").OptStr(p.index)
}

// filesJSON is files.json: every file this version needs, from the manifest and the history alone.
func (n version) filesJSON(ctx context.Context) (*document, error) {
	f, err := n.fileList(ctx)
	if err != nil {
		return nil, err
	}
	j := newJSONDoc()
	f.head(j)
	j.ArrayOf("files", len(f.items), func(e *enc, i int) {
		p := f.place(i)
		e.Obj(func() {
			e.placeMembers(f.items[i].kind, p)
			e.K("error").Err(p.err)
		})
	})
	return j.Done(), nil
}

func (f *fileList) head(j *jsonDoc) {
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(f.n.number())
		e.K("root").Str(f.n.t.ds.URI())
	})
	bases := f.l.m.PB.GetBasePaths()
	j.ArrayOf("bases", len(bases), func(e *enc, i int) {
		id := bases[i].GetId()
		b := f.bases[baseKey(&id)]
		e.Obj(func() {
			e.K("id").Uint(uint64(id))
			e.K("recorded").Str(withoutCredentials(bases[i].GetPath()))
			e.K("uri").OptStr(b.base.URI)
			e.K("is_dataset_root").Bool(bases[i].GetIsDatasetRoot())
			e.K("error").Err(b.err)
			e.K("moved").OptBool(when(b.err == nil, b.base.Moved))
		})
	})
}
