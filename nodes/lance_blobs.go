package nodes

import (
	"context"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
)

// optional reports whether the manifest does not say if there is any such file.
func (k fileKind) optional() bool { return k == fileBlobDir || k == fileManagedBlobs }

// managedBlobs reports whether the table may have blobs below _blobs.
func (l *loaded) managedBlobs() bool {
	return l.m.PB.GetReaderFeatureFlags()&dataset.FlagManagedBlobs != 0
}

func hasSidecars(d *pb.DataFile, blobs map[int32]bool) bool {
	_, ok := dataset.Sidecars(d.GetPath(), d, blobs)
	return ok
}

// sidecarDir is the directory with the blobs of a data file in remapped.lance. It is empty where the file holds its
// blobs itself.
func (n version) sidecarDir(l *loaded, k *indexfile.Kept) *dir {
	return n.blobDir(l, k.Path, func(ctx context.Context, l *loaded) (dataset.Location, error) {
		loc, err := n.t.ds.DataFile(ctx, l.m, k.Data())
		if err != nil {
			return loc, err
		}
		if len(l.m.PB.GetBasePaths()) > 0 { // the blobs are where the data file is
			if at, ferr := loc.Find(ctx); ferr == nil {
				loc = at.Location
			}
		}
		sub, ok := strings.CutSuffix(loc.Path, ".lance")
		if !ok {
			return loc, fault.New("nodes.Blobs", loc.URI(), fault.NotFound, "a data file of this name has no directory for blobs")
		}
		loc.Path = sub
		return loc, nil
	})
}

// managedBlobDir is _blobs/ in remapped.lance: what is there, of whatever version.
func (n version) managedBlobDir(l *loaded) *dir {
	return n.blobDir(l, dataset.ManagedBlobsDir, func(context.Context, *loaded) (dataset.Location, error) {
		return dataset.Location{Store: n.t.ds.Store(), Path: dataset.ManagedBlobsDir}, nil
	})
}

// blobDir is a directory at rel below remapped.lance with the files of blobs that the store lists at a place: one
// request, and none for a file.
func (n version) blobDir(l *loaded, rel string, where func(context.Context, *loaded) (dataset.Location, error)) *dir {
	rel = lanceName + "/" + rel
	d := n.copyDir(l, rel)
	d.list = func(ctx context.Context) (*listing, error) {
		l, err := n.load(ctx)
		if err != nil {
			return nil, err
		}
		at, err := where(ctx, l)
		if err == nil {
			var files []storedFile
			if files, err = n.listDir(ctx, at); err == nil {
				return n.blobListing(l, rel, files, where), nil
			}
		}
		if fault.Is(err, fault.NotFound) {
			return &listing{}, nil
		}
		return nil, n.t.failed("list", n.path+"/"+rel, err)
	}
	return d
}

func (n version) blobListing(l *loaded, rel string, files []storedFile, where func(context.Context, *loaded) (dataset.Location, error)) *listing {
	out := &listing{}
	for _, f := range files {
		if !strings.HasSuffix(f.path, dataset.SidecarSuffix) || strings.Contains(f.path, "/") {
			continue
		}
		b := n.base(rel+"/"+f.path, n.key(), l.mtime)
		node := &storeFile{base: b, first: b.ino, key: n.key(), t: n.t, size: f.size, perm: permCopyFile, locate: func(ctx context.Context) (dataset.Location, error) {
			l, err := n.load(ctx)
			if err != nil {
				return dataset.Location{}, err
			}
			loc, err := where(ctx, l)
			loc.Path = store.Join(loc.Path, f.path)
			return loc, err
		}}
		if o, ok := n.t.opened.peek(b.ino); ok && o.replaced {
			node.ino, node.size = n.t.inode(b.path, n.key()+"\x00"+o.object.Identity()), o.object.Size
		}
		out.add(f.path, node)
	}
	return out
}
