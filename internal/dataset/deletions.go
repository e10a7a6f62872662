package dataset

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// maxDeletionBytes bounds a deletion file. The largest possible bitmap over 2^32 rows has 512 MiB and its headers.
const maxDeletionBytes = 1 << 30

// Deletions returns the deleted row offsets of a fragment, nil if it has no deletion file. The bitmap is shared and must
// not be changed. It is cached by the place and the identity of the file; a failure is never cached and never means
// "no deletions".
//
// Errors: fault.NotFound, fault.Corrupt (the content, a count other than the recorded one, an offset behind the rows of
// the fragment), fault.Unsupported (an unknown file type), fault.TooLarge, those of Base, and the store's.
func (d *Dataset) Deletions(ctx context.Context, m *Manifest, f *Fragment) (*roaring.Bitmap, error) {
	const op = "dataset.Deletions"
	record := f.DeletionFile()
	if record == nil {
		return nil, nil
	}
	loc, err := d.DeletionFile(ctx, m, f)
	if err != nil {
		return nil, fault.Wrap(op, fmt.Sprintf("fragment %d", f.ID), err)
	}
	found, err := d.findDeletions(ctx, m, loc)
	if err != nil {
		return nil, fault.Wrap(op, loc.URI(), err)
	}
	loc, obj := found.Location, found.Object
	v, err := d.cache.get(ctx, "deletions|"+loc.URI()+"|"+obj.Identity(), func(ctx context.Context) (any, int64, error) {
		if obj.Size > maxDeletionBytes {
			return nil, 0, fault.New(op, loc.URI(), fault.TooLarge, "the file has %d bytes, the limit is %d", obj.Size, int64(maxDeletionBytes))
		}
		b, err := store.ReadObject(ctx, loc.Store, obj, 0, obj.Size)
		if err != nil {
			return nil, 0, err
		}
		if int64(len(b)) != obj.Size {
			return nil, 0, fault.New(op, loc.URI(), fault.Stale, "%d bytes came of a file of %d", len(b), obj.Size)
		}
		bm, err := DecodeDeletions(record.GetFileType(), b, record.GetNumDeletedRows())
		if err != nil {
			return nil, 0, fault.Wrap(op, loc.URI(), err)
		}
		return bm, 256 + int64(bm.GetSizeInBytes()), nil
	})
	if err != nil {
		return nil, err
	}
	bm := v.(*roaring.Bitmap)
	// One file serves the fragment in many versions; the manifest's own claims are checked for each.
	if err := checkDeletions(bm, f, record.GetNumDeletedRows()); err != nil {
		return nil, fault.New(op, loc.URI(), fault.Corrupt, "%w", err)
	}
	return bm, nil
}

// findDeletions asks for the identity of a deletion file: of a local one each time, since that costs nothing; in an
// object store once for each content of the manifest, by opening it, which brings a small file whole.
func (d *Dataset) findDeletions(ctx context.Context, m *Manifest, loc Location) (Found, error) {
	if _, local := loc.Store.Local(); local {
		return loc.Find(ctx)
	}
	v, err := d.cache.get(ctx, "deletions found|"+loc.URI()+"|"+m.where+"|"+m.Ref.Object.Identity(), func(ctx context.Context) (any, int64, error) {
		at, r, err := loc.Open(ctx)
		if err != nil {
			return nil, 0, err
		}
		defer r.Close()
		return Found{Location: at, Object: r.Stat(), Recorded: loc.Base}, 512, nil
	})
	if err != nil {
		return Found{}, err
	}
	return v.(Found), nil
}

func checkDeletions(bm *roaring.Bitmap, f *Fragment, recorded uint64) error {
	if recorded != 0 && bm.GetCardinality() != recorded {
		return fmt.Errorf("the file names %d rows, the manifest says %d", bm.GetCardinality(), recorded)
	}
	if f.PhysicalRows != nil && !bm.IsEmpty() && uint64(bm.Maximum()) >= *f.PhysicalRows {
		return fmt.Errorf("the file names row %d, fragment %d has %d rows", bm.Maximum(), f.ID, *f.PhysicalRows)
	}
	return nil
}

// DecodeDeletions decodes the bytes of a deletion file: type 0 is Arrow, 1 Roaring. expect is the recorded number of
// rows, 0 if unknown. Errors are fault.Corrupt and, for another type, fault.Unsupported.
func DecodeDeletions(fileType int32, b []byte, expect uint64) (*roaring.Bitmap, error) {
	const op = "dataset.DecodeDeletions"
	switch fileType {
	case 0:
		rows, err := arrowRowIDs(b, expect)
		if err != nil {
			return nil, fault.New(op, "", fault.Corrupt, "Arrow deletion file: %w", err)
		}
		bm := roaring.BitmapOf(rows...)
		if got := bm.GetCardinality(); got != uint64(len(rows)) {
			return nil, fault.New(op, "", fault.Corrupt, "Arrow deletion file: %d rows are named more than once", uint64(len(rows))-got)
		}
		bm.RunOptimize()
		return bm, nil
	case 1:
		bm, err := DecodeBitmap(b)
		if err != nil {
			return nil, fault.New(op, "", fault.Corrupt, "bitmap deletion file: %w", err)
		}
		return bm, nil
	}
	return nil, fault.New(op, "", fault.Unsupported, "deletion file type %d is not known", fileType)
}
