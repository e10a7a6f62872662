package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/translate"
)

// remapSegments describes every entry to package translate as what it is once its files are remapped: usable whatever
// its type, if frifs knows what it stores. Lance's own limits on a tagged table do not count then.
func (l *loaded) remapSegments() []translate.Segment {
	out := l.segments(false)
	for i, ix := range l.m.Indices {
		d, _ := indexfile.Domain(l.m, ix)
		out[i].Usable = d != indexfile.DomainUnknown && ix.UUIDErr == nil
	}
	return out
}

// remapCoverage derives what each entry of the index section covers once its files are remapped. It is coverage but for
// types that Lance cannot use on a tagged table.
func (l *loaded) remapCoverage(h *fri.History) []translate.Coverage {
	derive := func() []translate.Coverage { return translate.Cover(h, l.liveSet(), l.remapSegments()) }
	if h.Broken != nil {
		return derive()
	}
	l.remapOnce.Do(func() { l.remapCovers = derive() })
	return l.remapCovers
}

// addressEntries tells which entries store addresses.
func (l *loaded) addressEntries() []bool {
	out := make([]bool, len(l.m.Indices))
	for i, ix := range l.m.Indices {
		d, _ := indexfile.Domain(l.m, ix)
		out[i] = d == indexfile.DomainAddress
	}
	return out
}

// claims is what each entry may answer for in remapped.lance, by the history and the heads of its row maps. An error
// means that a row map could not be asked for this time.
func (n version) claims(ctx context.Context, l *loaded, h *history) (*indexfile.Claims, error) {
	shut := map[*fri.Transition]bool{}
	for _, t := range h.h.Transitions {
		if !t.Usable() {
			continue
		}
		_, err := n.mapping(ctx, l, h, t)
		if err != nil && !absent(err) {
			return nil, err
		}
		shut[t] = err != nil
	}
	opens := func(t *fri.Transition) bool { return !shut[t] }
	return indexfile.NewClaims(h.h, l.remapSegments(), l.remapCoverage(h.h), l.addressEntries(), opens), nil
}

// absent reports whether an error says for good that something cannot be had, as far as a listing may go by it.
func absent(err error) bool {
	return lasting(err) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Denied)
}

// historyDigest names the content of the version's FRI entry, the same in every copy of the dataset; nil = no entry. Of
// a content that is too large to read for this it takes the entry's uuid, which changes with it, and what its records
// say about fragments.
func (n version) historyDigest(ctx context.Context, l *loaded, h *history) ([]byte, error) {
	if !l.fri.present() {
		return nil, nil
	}
	sum := sha256.New()
	number := func(v uint64) { _ = binary.Write(sum, binary.LittleEndian, v) }
	number(uint64(l.fri.count))
	number(uint64(uint32(l.fri.indexVersion())))
	switch {
	case h.h.Broken != nil || h.content == nil:
		sum.Write([]byte("broken"))
	case h.h.Size <= maxWholeContent:
		if err := hashContent(ctx, sum, h.content); err != nil {
			return nil, err
		}
	default:
		sum.Write(l.fri.entry.PB.GetUuid().GetUuid())
		number(uint64(h.h.Size))
		for _, t := range h.h.Transitions {
			for _, ds := range [][]fri.Digest{t.Sources, t.Destinations} {
				number(uint64(len(ds)))
				for _, d := range ds {
					number(d.ID)
					number(d.PhysicalRows)
					number(d.DeletedRows)
				}
			}
		}
	}
	return sum.Sum(nil), nil
}

// hashContent writes all of r to w.
func hashContent(_ context.Context, w io.Writer, r fri.Reader) error {
	_, err := io.Copy(w, io.NewSectionReader(r, 0, r.Size()))
	return err
}
