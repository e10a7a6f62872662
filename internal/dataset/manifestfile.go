package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

const (
	tailBytes    = 64 << 10 // first read: the last bytes of the file
	trailerBytes = 16       // i64 manifest position, u16 major, u16 minor, "LANC"
	prefixBytes  = 2 << 20  // up to here the second read starts at 0, since index section and transaction lie there
	joinBytes    = 1 << 20  // up to here what the first read brought is kept, rather than read a second time
	magic        = "LANC"
)

// Manifest reads and decodes the manifest of a version: one read of the last 64 KiB, and at most one more where
// sections lie before that (two for a manifest behind more than 2 MiB of other sections, of which only the index section is
// read). The result is cached by the identity of ref.Object.
//
// Of a large manifest the encoded fragments are kept, as one block of bytes, and about as much memory again to find them:
// never more than three times the size of the file, while it is read and afterwards.
//
// Errors: fault.Corrupt with the byte position, fault.TooLarge, fault.NotFound for a version that was cleaned up
// meanwhile, and the store's.
func (d *Dataset) Manifest(ctx context.Context, ref VersionRef) (*Manifest, error) {
	v, err := d.cache.get(ctx, "manifest|"+d.URI()+"|"+ref.Object.Identity(), func(ctx context.Context) (any, int64, error) {
		m, listed, err := d.readManifest(ctx, ref)
		if err != nil {
			return nil, 0, err
		}
		cost := int64(-1)
		if listed {
			cost = m.memory
		}
		return m, cost, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*Manifest), nil
}

// readManifest reads the file. listed is false if it was not the object that the listing showed.
func (d *Dataset) readManifest(ctx context.Context, ref VersionRef) (m *Manifest, listed bool, err error) {
	v := &view{ctx: ctx, st: d.st, name: ref.Path(), where: store.Join(d.URI(), ref.Path()), size: ref.Object.Size, obj: ref.Object}
	listed = true
	if err = v.readTail(); err != nil && !fault.Is(err, fault.Corrupt) {
		return nil, false, err
	}
	if err != nil {
		// The listed size may be stale: ask once more, and once only.
		now, serr := d.st.Stat(ctx, ref.Path())
		if serr != nil {
			return nil, false, serr
		}
		if now.Size == v.size {
			return nil, false, err
		}
		if _, local := d.st.Local(); local {
			return nil, false, v.replaced(now)
		}
		ref.Object, v.size, v.obj, listed = now, now.Size, now, false
		if err = v.readTail(); err != nil {
			return nil, false, err
		}
	}
	m, err = d.parseManifest(v, ref)
	if _, local := d.st.Local(); local && !ref.Object.Modified.IsZero() {
		// Files of this machine are read by name. One that is gone by now was the right one when it was read.
		if now, serr := d.st.Stat(ctx, ref.Path()); serr == nil && !now.SameContent(ref.Object) {
			return nil, false, v.replaced(now)
		}
	}
	return m, listed, err
}

// replaced is the failure of a manifest that is another file than the one that was listed.
func (v *view) replaced(now store.Object) error {
	return fault.New("dataset.Manifest", v.where, fault.Stale, "the manifest was replaced: %d bytes of %s now, %d bytes of %s when it was listed",
		now.Size, now.Modified.UTC().Format(time.RFC3339Nano), v.obj.Size, v.obj.Modified.UTC().Format(time.RFC3339Nano))
}

// parseManifest decodes the sections of the file.
func (d *Dataset) parseManifest(v *view, ref VersionRef) (*Manifest, error) {
	m := &Manifest{Ref: ref, Bytes: v.size, where: v.where}
	pos, err := v.trailer(m)
	if err != nil {
		return nil, err
	}
	body, err := v.manifestBody(pos, d.opt.MaxManifestBytes)
	if err != nil {
		return nil, err
	}
	if len(body) < len(v.buf)/4*3 {
		body = bytes.Clone(body) // does not hold on to the rest of what was read
	}
	var encoded [][]byte
	var others int64
	if m.PB, encoded, others, err = splitManifest(body, v.where, pos+4); err != nil {
		return nil, err
	}
	if inside := m.PB.GetVersion(); inside != ref.Version {
		m.warn("the manifest says that it is version %d, its file name says %d; the name counts", inside, ref.Version)
	}
	if m.PB.Timestamp != nil {
		if _, ok := m.Timestamp(); !ok {
			m.warn("the timestamp is out of range: taken as unknown")
		}
	}
	m.Warnings = append(m.Warnings, FlagFindings(m.PB.GetReaderFeatureFlags(), m.PB.GetWriterFeatureFlags())...)
	m.checkStructure()
	var warnings []string
	m.fragments, m.live, warnings = makeFragments(encoded)
	m.Warnings = append(m.Warnings, warnings...)
	v.findTransaction(m, pos)
	if err := v.indexSection(m, pos, d.opt.MaxManifestBytes); err != nil {
		return nil, err
	}
	m.memory = 4096 + 12*others
	if len(encoded) > 0 {
		m.memory += int64(len(body)) + fragmentCost*int64(len(encoded))
	}
	for _, x := range m.Indices {
		m.memory += 1024 + 2*int64(proto.Size(x.PB))
	}
	return m, nil
}

func (m *Manifest) warn(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...))
}

// checkStructure compares flags with the fields that go with them (docs/FORMAT.md, "Feature flags").
func (m *Manifest) checkStructure() {
	if m.PB.FragmentTree != nil && m.PB.GetReaderFeatureFlags()&FlagFragmentTree == 0 {
		m.warn("the manifest has a fragment tree, but not the reader flag %d (fragment_tree): fragments may be missing here", FlagFragmentTree)
	}
	if has := m.PB.MaxAllocatedFieldId != nil; has != (m.PB.GetWriterFeatureFlags()&FlagFieldIDs != 0) {
		m.warn("max_allocated_field_id and the writer flag %d (non_reusable_field_ids) must stand together; Lance 14.0.2 takes the manifest as corrupt", FlagFieldIDs)
	}
	seen := map[uint32]bool{}
	for _, b := range m.PB.GetBasePaths() {
		if seen[b.GetId()] {
			m.warn("base path id %d is listed more than once; the last one counts", b.GetId())
		}
		seen[b.GetId()] = true
	}
}

// view is a manifest file of which the end has been read, and perhaps more.
type view struct {
	ctx         context.Context // of the one call that reads the manifest
	st          store.Store
	name, where string
	size        int64
	obj         store.Object // that was listed
	from        int64        // buf holds the bytes from here to the end
	buf         []byte
}

func (v *view) corrupt(off int64, format string, args ...any) error {
	return fault.New("dataset.Manifest", at(v.where, off), fault.Corrupt, format, args...)
}

// fetch reads n bytes at off. Where the store can tell, they are those of the listed object.
func (v *view) fetch(off, n int64) ([]byte, error) {
	if v.obj.Name != v.name {
		return v.st.ReadRange(v.ctx, v.name, off, n)
	}
	return store.ReadObject(v.ctx, v.st, v.obj, off, n)
}

// readTail reads the last 64 KiB and checks that the file ends like a manifest.
func (v *view) readTail() error {
	if v.size < trailerBytes+4 {
		return v.corrupt(0, "a file of %d bytes is no manifest: trailer and length alone take %d", v.size, trailerBytes+4)
	}
	n := min(v.size, tailBytes)
	b, err := v.fetch(v.size-n, n)
	if err != nil {
		return err
	}
	if int64(len(b)) != n {
		return v.corrupt(v.size-n+int64(len(b)), "the file ends here, but should have %d bytes", v.size)
	}
	if string(b[n-4:]) != magic {
		return v.corrupt(v.size-4, "the file ends with %q, not with %q", b[n-4:], magic)
	}
	v.from, v.buf = v.size-n, b
	return nil
}

// trailer reads the last 16 bytes and returns the position of the manifest's length.
func (v *view) trailer(m *Manifest) (int64, error) {
	t := v.buf[len(v.buf)-trailerBytes:]
	m.Major, m.Minor = binary.LittleEndian.Uint16(t[8:]), binary.LittleEndian.Uint16(t[10:])
	pos := binary.LittleEndian.Uint64(t)
	if last := v.size - trailerBytes - 4; pos > uint64(last) {
		return 0, v.corrupt(v.size-trailerBytes, "the trailer puts the manifest at %d, the last possible place is %d", pos, last)
	}
	return int64(pos), nil
}

// read returns the bytes [lo, hi) of the file, from what was read or by one more request.
func (v *view) read(lo, hi int64) ([]byte, error) {
	if lo >= v.from {
		return v.buf[lo-v.from : hi-v.from], nil
	}
	end := min(hi, v.from)
	b, err := v.fetch(lo, end-lo)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != end-lo {
		return nil, v.corrupt(lo+int64(len(b)), "the file ends here, but should have %d bytes", v.size)
	}
	if hi > end {
		b = append(b, v.buf[:hi-v.from]...)
	}
	return b, nil
}

// manifestBody returns the manifest message, whose length stands at pos.
func (v *view) manifestBody(pos, limit int64) ([]byte, error) {
	end := v.size - trailerBytes
	if n := end - pos - 4; n > limit {
		return nil, fault.New("dataset.Manifest", at(v.where, pos), fault.TooLarge, "the manifest has %d bytes, the limit is %d", n, limit)
	}
	if pos < v.from {
		lo := int64(0)
		if pos > prefixBytes {
			lo = pos
		}
		if v.size-lo > joinBytes {
			v.from, v.buf = v.size, nil // joining would take the memory of both
		}
		b, err := v.read(lo, v.size)
		if err != nil {
			return nil, err
		}
		v.from, v.buf = lo, b
	}
	b, err := v.read(pos, end)
	if err != nil {
		return nil, err
	}
	if n := binary.LittleEndian.Uint32(b); int64(n) != end-pos-4 {
		return nil, v.corrupt(pos, "the manifest's length is %d, but %d bytes lie between it and the trailer", n, end-pos-4)
	}
	return b[4:], nil
}
