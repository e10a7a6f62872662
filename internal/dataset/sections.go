package dataset

import (
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

// keepInline is the largest inline transaction that is kept undecoded with its manifest when it was read anyway.
const keepInline = 64 << 10

// inlineTransaction is where the transaction lies in the manifest file.
type inlineTransaction struct {
	off   int64  // of its length
	size  int64  // of the message; -1 while the length was not read
	bytes []byte // the message, if it was read with the manifest and is small
}

// findTransaction finds the inline transaction: field 23, else 21. An offset that leads nowhere is an inheritance of an
// older manifest, as some writers left it: a warning, and no transaction. Where the length was not read with the
// manifest it is looked at when the transaction is asked for, not now.
func (v *view) findTransaction(m *Manifest, manifest int64) {
	for _, f := range []struct {
		off   *uint64
		field int
	}{{m.PB.TransactionSection, 23}, {m.PB.TransactionSectionDeprecated, 21}} {
		if f.off == nil {
			continue
		}
		off := int64(*f.off)
		if off < 0 || off > manifest-4 {
			m.warn("field %d puts the transaction at %d, outside of this file's sections: stale, ignored", f.field, *f.off)
			continue
		}
		t := &inlineTransaction{off: off, size: -1}
		if off >= v.from {
			head := v.buf[off-v.from:]
			t.size = int64(binary.LittleEndian.Uint32(head))
			if off+4+t.size > manifest {
				m.warn("field %d puts the transaction at %d, where %d bytes cannot lie: stale, ignored", f.field, off, t.size)
				continue
			}
			if t.size <= keepInline {
				t.bytes = append([]byte{}, head[4:4+t.size]...)
			}
		}
		m.inline = t
		return
	}
}

// indexSection reads the index section. It ends where the transaction or the manifest begins, or, if neither fits, is
// believed only when it decodes to sensible entries. What cannot be read is m.IndexErr if the file has room for a
// section that the manifest does not account for; a stale offset is a warning only where transaction and manifest
// fill the whole file. A failure of the store is returned: the manifest can be had another time.
func (v *view) indexSection(m *Manifest, manifest, limit int64) error {
	if m.PB.IndexSection == nil {
		return nil
	}
	off := int64(*m.PB.IndexSection)
	first := manifest // where the sections that are accounted for begin
	if m.inline != nil {
		first = m.inline.off
	}
	lost := func(off int64, format string, args ...any) error {
		if first > 0 {
			m.IndexErr = v.corrupt(off, format, args...)
			return nil
		}
		m.warn("index_section is %d, but this file has no room for one: stale, taken as no indices", *m.PB.IndexSection)
		return nil
	}
	if off < 0 || off > manifest-4 {
		return lost(0, "index_section is %d, outside of the %d bytes before the manifest", *m.PB.IndexSection, manifest)
	}
	end := manifest
	if m.inline != nil && m.inline.off > off {
		end = m.inline.off
	}
	if end-off > limit {
		// The length decides: with a stale transaction offset, end may lie far behind the section.
		head, err := v.read(off, off+4)
		if err != nil {
			return err
		}
		n := int64(binary.LittleEndian.Uint32(head))
		if n > limit {
			m.IndexErr = fault.New("dataset.Manifest", at(v.where, off), fault.TooLarge, "the index section has %d bytes, the limit is %d", n, limit)
			return nil
		}
		end = min(end, off+4+n)
	}
	b, err := v.read(off, end)
	if err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n > end-off-4 && off+4+n <= manifest && n <= limit {
		// The transaction's offset lies inside the section, so that one is stale, or this one is.
		end = manifest
		if b, err = v.read(off, off+4+n); err != nil {
			return err
		}
	}
	exact := off+4+n == end
	if n > end-off-4 {
		return lost(off, "the index section's length is %d, but only %d bytes can be its", n, end-off-4)
	}
	section := &pb.IndexSection{}
	if err := decode(b[4:4+n], section, v.where, off+4); err != nil {
		if !exact && first == 0 {
			return lost(off, "")
		}
		m.IndexErr = err
		return nil
	}
	if !exact {
		if !sensible(section) {
			return lost(off, "no index section of %d bytes begins here: its end meets no other section", n)
		}
		m.warn("the index section at %d ends at %d, but the next section begins at %d", off, off+4+n, end)
	}
	m.Indices = makeIndices(section, v.where)
	return nil
}

// sensible reports whether a message that decoded as an index section looks like one.
func sensible(s *pb.IndexSection) bool {
	if len(s.GetIndices()) == 0 || len(s.ProtoReflect().GetUnknown()) > 0 {
		return false
	}
	for _, x := range s.GetIndices() {
		if len(x.GetUuid().GetUuid()) != 16 || proto.Size(x) == 0 {
			return false
		}
	}
	return true
}
