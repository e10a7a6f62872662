package indexfile

import (
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
)

// Entry is an index entry as the manifest of a remapped dataset has it.
type Entry struct {
	Index *dataset.Index
	UUID  [16]byte // the new one
	// Covered is what it answers for; nil keeps the stored bytes of the bitmap.
	Covered *roaring.Bitmap
	// Placeholders names their fragment too, which makes readers look at the bitmap at all.
	Placeholders bool
	// Files are all files with their exact sizes; nil leaves the list out.
	Files []StoredFile
}

// bitmap is the entry's new fragment_bitmap.
func (e *Entry) bitmap() ([]byte, error) {
	if e.Covered == nil {
		return e.Index.PB.GetFragmentBitmap(), nil
	}
	set := e.Covered.Clone()
	if e.Placeholders {
		set.Add(uint32(PlaceholderFragment))
	}
	set.RunOptimize()
	if e.Index.Bitmap != nil && set.Equals(e.Index.Bitmap) {
		return e.Index.PB.GetFragmentBitmap(), nil
	}
	return set.ToBytes()
}

// Flags that go with what a remapped dataset does not have: the FRI, and bases.
const (
	flagBases = 1 << 4
	goneFlags = dataset.FlagReuseIndex | 1<<9
)

// BuildManifest makes the manifest file of a remapped dataset: that of m without FRI, bases (but where blobs may
// name them), branch and transaction, with the given index entries in their order, and the given names for data files. front is what the stored file has before
// its sections (dictionary pages of old storage), at most as much as the stored file has; usually nil. The bytes depend
// on the arguments alone (docs/FORMAT.md, "Remapped datasets").
func BuildManifest(m *dataset.Manifest, entries []Entry, names DataNames, front []byte) ([]byte, error) {
	const op = "indexfile.BuildManifest"
	out := &pb.Manifest{}
	shallow(out, m.PB)
	out.Version = proto.Uint64(m.Version())
	gone := uint64(goneFlags | flagBases)
	if m.BlobFields() == nil {
		out.BasePaths = nil
	} else {
		gone = goneFlags // blobs outside of the table name their bases by id
	}
	if m.PB.ReaderFeatureFlags != nil {
		out.ReaderFeatureFlags = proto.Uint64(m.PB.GetReaderFeatureFlags() &^ gone)
	}
	if m.PB.WriterFeatureFlags != nil {
		out.WriterFeatureFlags = proto.Uint64(m.PB.GetWriterFeatureFlags() &^ gone)
	}
	out.TransactionFile, out.TransactionSection, out.TransactionSectionDeprecated = nil, nil, nil
	out.IndexSection, out.Branch = nil, nil
	file := slices.Clone(front)
	if len(entries) > 0 {
		section := &pb.IndexSection{}
		for i := range entries {
			x, err := entries[i].encode()
			if err != nil {
				return nil, fault.Wrap(op, m.Path(), err)
			}
			section.Indices = append(section.Indices, x)
		}
		out.IndexSection = proto.Uint64(uint64(len(file)))
		var err error
		if file, err = appendSection(file, section); err != nil {
			return nil, fault.Wrap(op, m.Path(), err)
		}
	}
	pos := len(file)
	file, err := appendManifest(file, out, m.Fragments(), names)
	if err != nil {
		return nil, fault.Wrap(op, m.Path(), err)
	}
	file = binary.LittleEndian.AppendUint64(file, uint64(pos))
	file = binary.LittleEndian.AppendUint16(file, m.Major)
	file = binary.LittleEndian.AppendUint16(file, m.Minor)
	return append(file, "LANC"...), nil
}

// encode makes the new message of an entry: all that is not said here stays as it is, unknown fields included.
func (e *Entry) encode() (*pb.IndexMetadata, error) {
	x := &pb.IndexMetadata{}
	shallow(x, e.Index.PB)
	x.ProtoReflect().SetUnknown(trulyUnknown(x.ProtoReflect()))
	bitmap, err := e.bitmap()
	if err != nil {
		return nil, fault.New("indexfile.Entry", e.Index.UUID, fault.Unknown, "fragment_bitmap: %w", err)
	}
	if bitmap != nil {
		x.FragmentBitmap = bitmap
	}
	x.Uuid = &pb.UUID{Uuid: e.UUID[:]}
	x.BaseId = nil
	x.Files = nil
	for _, f := range e.Files {
		x.Files = append(x.Files, &pb.IndexFile{Path: proto.String(f.Path), SizeBytes: proto.Uint64(uint64(f.Size))})
	}
	return x, nil
}

// trulyUnknown is the unknown fields of a message but for those with a number that the message does know: in another wire
// type than theirs they make Lance refuse the whole manifest.
func trulyUnknown(m protoreflect.Message) []byte {
	var out []byte
	for b := m.GetUnknown(); len(b) > 0; {
		num, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return out
		}
		if m.Descriptor().Fields().ByNumber(num) == nil {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// shallow makes dst have the fields of src, sharing what they hold: dst's own fields may be replaced, not changed.
func shallow(dst, src proto.Message) {
	d, s := dst.ProtoReflect(), src.ProtoReflect()
	s.Range(func(fd fieldDescriptor, v value) bool {
		d.Set(fd, v)
		return true
	})
	d.SetUnknown(s.GetUnknown())
}

// withoutBases returns the encoded fragment with base ids cleared and files renamed; one without either as it is.
func withoutBases(f *dataset.Fragment, names DataNames) ([]byte, error) {
	d := f.DeletionFile()
	change := d != nil && d.BaseId != nil
	for d := range dataFiles(f) {
		change = change || d.BaseId != nil || names.other(d) != ""
	}
	if !change {
		return f.Encoded(), nil
	}
	c := f.Message()
	files := slices.Clone(c.GetFiles())
	for _, o := range c.GetOverlays() {
		files = append(files, o.GetDataFile())
	}
	for _, d := range files {
		if d == nil {
			continue
		}
		if n := names.other(d); n != "" {
			d.Path = proto.String(n)
		}
		d.BaseId = nil
	}
	if c.GetDeletionFile() != nil {
		c.DeletionFile.BaseId = nil
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(c)
}

// fragmentTag begins each fragment in the Manifest message: field 2, length-delimited.
const fragmentTag = 2<<3 | 2

// appendManifest appends the manifest's message with its length before it. The fragments are taken over one by one, in
// the place of their field.
func appendManifest(file []byte, out *pb.Manifest, frags []*dataset.Fragment, names DataNames) ([]byte, error) {
	const op = "indexfile.BuildManifest"
	schema := &pb.Manifest{Fields: out.Fields}
	out.Fields = nil
	size := proto.Size(schema) + proto.Size(out)
	for _, f := range frags {
		size += len(f.Encoded()) + 6
	}
	start := len(file)
	file = append(slices.Grow(file, size+24), 0, 0, 0, 0)
	opt := proto.MarshalOptions{Deterministic: true}
	file, err := opt.MarshalAppend(file, schema)
	for _, f := range frags {
		var b []byte
		if err != nil {
			break
		}
		if b, err = withoutBases(f, names); err == nil {
			file = binary.AppendUvarint(append(file, fragmentTag), uint64(len(b)))
			file = append(file, b...)
		}
	}
	if err == nil {
		file, err = opt.MarshalAppend(file, out)
	}
	if err != nil {
		return nil, fault.New(op, "", fault.Corrupt, "%w", err)
	}
	n := len(file) - start - 4
	if uint64(n) > 1<<32-1 {
		return nil, fault.New(op, "", fault.TooLarge, "a message of %d bytes, the limit is 2^32 - 1", n)
	}
	binary.LittleEndian.PutUint32(file[start:], uint32(n))
	return file, nil
}

// appendSection appends a message with its length before it.
func appendSection(file []byte, m proto.Message) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fault.New("indexfile.BuildManifest", "", fault.Corrupt, "%w", err)
	}
	if uint64(len(b)) > 1<<32-1 {
		return nil, fault.New("indexfile.BuildManifest", "", fault.TooLarge, "a message of %d bytes, the limit is 2^32 - 1", len(b))
	}
	file = binary.LittleEndian.AppendUint32(slices.Grow(file, len(b)+24), uint32(len(b)))
	return append(file, b...), nil
}
