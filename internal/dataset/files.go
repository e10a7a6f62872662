package dataset

import (
	"context"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
)

// Location is a file or directory of a version.
type Location struct {
	Base  Base        // where it is read from
	Store store.Store // Base.Store
	Path  string      // relative to the store's root

	search *search // how to look for it elsewhere; nil: it can be nowhere else
}

// URI names the place, without credentials.
func (l Location) URI() string { return store.Join(l.Store.URI(), l.Path) }

func locate(b Base, elems ...string) Location {
	path := ""
	for _, e := range elems {
		path = store.Join(path, e)
	}
	return Location{Base: b, Store: b.Store, Path: path}
}

// orElsewhere locates a file by the base that is recorded for it, and notes how Find looks for it under others.
func (d *Dataset) orElsewhere(ctx context.Context, m *Manifest, id *uint32, under func(Base) (Location, error)) (Location, error) {
	b, err := d.Base(ctx, m, id)
	if err != nil {
		return Location{}, err
	}
	loc, err := under(b)
	loc.search = &search{d: d, m: m, base: id, under: under}
	return loc, err
}

// DataFile locates a data file: data/<path> below a dataset root, <path> itself below any other base. No request is made.
func (d *Dataset) DataFile(ctx context.Context, m *Manifest, f *pb.DataFile) (Location, error) {
	if err := innerPath("data file", f.GetPath(), m.where); err != nil {
		return Location{}, err
	}
	return d.orElsewhere(ctx, m, f.BaseId, func(b Base) (Location, error) {
		if b.DatasetRoot {
			return locate(b, dataDir, f.GetPath()), nil
		}
		return locate(b, f.GetPath()), nil
	})
}

// DeletionFileName is the name of a fragment's deletion file below _deletions, by docs/FORMAT.md, "Deletion files".
// An unknown file type is fault.Unsupported.
func DeletionFileName(f *Fragment) (string, error) {
	df := f.DeletionFile()
	var ext string
	switch df.GetFileType() {
	case 0:
		ext = ".arrow"
	case 1:
		ext = ".bin"
	default:
		return "", fault.New("dataset.DeletionFileName", "", fault.Unsupported, "fragment %d: deletion file type %d is not known", f.ID, df.GetFileType())
	}
	return strconv.FormatUint(f.RecordedID(), 10) + "-" + strconv.FormatUint(df.GetReadVersion(), 10) + "-" +
		strconv.FormatUint(df.GetId(), 10) + ext, nil
}

// DeletionFile locates the deletion file of a fragment that has one. Only a base that is a dataset root can hold it.
func (d *Dataset) DeletionFile(ctx context.Context, m *Manifest, f *Fragment) (Location, error) {
	const op = "dataset.DeletionFile"
	df := f.DeletionFile()
	if df == nil {
		return Location{}, fault.New(op, m.where, fault.NotFound, "fragment %d has no deletion file", f.ID)
	}
	name, err := DeletionFileName(f)
	if err != nil {
		return Location{}, fault.Wrap(op, m.where, err)
	}
	return d.orElsewhere(ctx, m, df.BaseId, func(b Base) (Location, error) {
		if !b.DatasetRoot {
			return Location{}, fault.New(op, m.where, fault.Corrupt, "the deletion file of fragment %d is put under %s, which is no dataset root", f.ID, b)
		}
		return locate(b, deletionsDir, name), nil
	})
}

// RowMap locates the file of a row map: _fri/<map_id>/stable_partition.lance below its base, whatever kind of base that
// is. baseID is the one of the mapping, nil for the dataset that is being read.
func (d *Dataset) RowMap(ctx context.Context, m *Manifest, mapID string, baseID *uint32) (Location, error) {
	if !plainName(mapID) {
		return Location{}, fault.New("dataset.RowMap", m.where, fault.Corrupt, "map_id %q is no single path element", mapID)
	}
	return d.orElsewhere(ctx, m, baseID, func(b Base) (Location, error) {
		return locate(b, "_fri", mapID, "stable_partition.lance"), nil
	})
}

// IndexDir is where the files of an index segment are.
type IndexDir struct {
	Location          // of the directory
	Recorded Base     // where the manifest says they are
	Moved    bool     // the directory was not there, but under Base
	Tried    []string // bases that were looked at and did not have it
}

// Note says, for people, that the directory was found elsewhere than recorded; "" if it was not.
func (i IndexDir) Note() string {
	if !i.Moved {
		return ""
	}
	return foundNote(i.Recorded, i.Base)
}

// recordedDir is the index directory that the manifest names.
func (d *Dataset) recordedDir(ctx context.Context, m *Manifest, x *Index) (Location, error) {
	if x.UUIDErr != nil {
		return Location{}, x.UUIDErr
	}
	b, err := d.Base(ctx, m, x.PB.BaseId)
	if err != nil {
		return Location{}, err
	}
	return indexUnder(b, x), nil
}

func indexUnder(b Base, x *Index) Location {
	if b.DatasetRoot {
		return locate(b, indicesDir, x.UUID)
	}
	return locate(b, x.UUID)
}

// IndexDir locates the directory of an index segment. Lance releases up to 12.0.0 recorded a wrong base for indices that
// a branch of a branch inherits: a directory that is missing under its base is looked for under the dataset's own root
// and then under every other base of the manifest, in their order, and the result says so. Requests are made only where
// the manifest has base paths. Errors: fault.NotFound if no base has it (naming those tried), and those of Base.
func (d *Dataset) IndexDir(ctx context.Context, m *Manifest, x *Index) (IndexDir, error) {
	const op = "dataset.IndexDir"
	rec, err := d.recordedDir(ctx, m, x)
	if err != nil {
		return IndexDir{}, fault.Wrap(op, m.where, err)
	}
	out := IndexDir{Location: rec, Recorded: rec.Base}
	if len(m.PB.GetBasePaths()) == 0 {
		return out, nil
	}
	switch ok, err := present(ctx, rec, x, true); {
	case err != nil:
		return IndexDir{}, fault.Wrap(op, rec.URI(), err)
	case ok:
		return out, nil
	}
	candidates, tried := d.otherBases(ctx, m, x.PB.BaseId)
	out.Tried = append([]string{rec.Base.String()}, tried...)
	for _, b := range candidates {
		loc := indexUnder(b, x)
		ok, err := present(ctx, loc, x, false)
		if err != nil {
			out.Tried = append(out.Tried, err.Error())
			continue
		}
		if ok {
			out.Location, out.Moved = loc, true
			return out, nil
		}
		out.Tried = append(out.Tried, b.String())
	}
	return IndexDir{}, fault.New(op, rec.URI(), fault.NotFound, "the directory of index %q is not there; tried: %s",
		x.Name, strings.Join(out.Tried, "; "))
}

// present reports whether the directory of an index has entries. Where it may not be listed the first file that the entry
// records tells; where the entry records none either, the answer is unknown.
func present(ctx context.Context, l Location, x *Index, unknown bool) (bool, error) {
	list, err := l.Store.List(ctx, l.Path)
	if fault.Is(err, fault.Denied) {
		files := x.PB.GetFiles()
		if len(files) == 0 || innerPath("index file", files[0].GetPath(), "") != nil {
			return unknown, nil //nolint:nilerr // what is denied is no failure: nobody can tell
		}
		_, err = l.Store.Stat(ctx, store.Join(l.Path, files[0].GetPath()))
		return err == nil, ignoreAbsent(err)
	}
	return len(list) > 0, ignoreAbsent(err)
}

func ignoreAbsent(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// IndexFile locates a file of an index segment (also the external content of the fragment reuse index) by the path that
// its directory gives it.
func (d *Dataset) IndexFile(ctx context.Context, m *Manifest, x *Index, name string) (Location, error) {
	if err := innerPath("index file", name, m.where); err != nil {
		return Location{}, err
	}
	dir, err := d.IndexDir(ctx, m, x)
	if err != nil {
		return Location{}, err
	}
	return locate(dir.Base, dir.Path, name), nil
}
