package lancefile

import (
	"slices"

	"github.com/frifs/frifs/fault"
)

// layout collects the zones of a synthesised file in order.
type layout struct {
	src      *source
	zones    []zone
	size     uint64
	overlays []overlay // ascending, not overlapping, none empty
	placed   int       // how many of them have been
	tooLarge bool
}

// overlay is a range of the original that another source fills.
type overlay struct {
	span
	from filler
}

// setOverlays takes the overlays of an Edit.
func (l *layout) setOverlays(list []Overlay) error {
	for i, o := range list {
		if o.Off < 0 || o.Size < 0 || uint64(o.Off) > l.src.size || uint64(o.Size) > l.src.size-uint64(o.Off) {
			return fault.New("lancefile.Synthesise", "", fault.Invalid, "overlay %d (%d bytes at %d) lies outside the file of %d bytes",
				i, o.Size, o.Off, l.src.size)
		}
		if o.Size > 0 {
			l.overlays = append(l.overlays, overlay{span{uint64(o.Off), uint64(o.Size)}, o.Piece})
		}
	}
	return l.sortOverlays(fault.Invalid)
}

// sortOverlays brings them into order and gives an error of the given kind where two overlap.
func (l *layout) sortOverlays(kind fault.Kind) error {
	slices.SortFunc(l.overlays, func(a, b overlay) int { return compareSpans(a.span, b.span) })
	for i := 1; i < len(l.overlays); i++ {
		if a, b := l.overlays[i-1], l.overlays[i]; a.end() > b.off {
			return fault.New("lancefile.Synthesise", at(b.off), kind,
				"replaced bytes [%d, %d) and [%d, %d) overlap", a.off, a.end(), b.off, b.end())
		}
	}
	return nil
}

func compareSpans(a, b span) int {
	switch {
	case a.off < b.off:
		return -1
	case a.off > b.off:
		return 1
	}
	return 0
}

// add appends n bytes from byte base of a source.
func (l *layout) add(from filler, base, n uint64) {
	const limit = 1<<63 - 1
	switch {
	case n == 0:
		return
	case l.tooLarge || n > limit-l.size:
		l.tooLarge = true
		return
	}
	if k := len(l.zones) - 1; k >= 0 && from == filler(l.src) && l.zones[k].from == from &&
		l.zones[k].base+l.zones[k].end-l.zones[k].off == int64(base) {
		l.zones[k].end += int64(n)
	} else {
		l.zones = append(l.zones, zone{int64(l.size), int64(l.size + n), from, int64(base)})
	}
	l.size += n
}

// original appends a range of the original, with the overlays that lie in it.
func (l *layout) original(s span) {
	k, _ := slices.BinarySearchFunc(l.overlays, s, func(o overlay, s span) int { return compareSpans(o.span, s) })
	for ; k < len(l.overlays) && l.overlays[k].off < s.end(); k++ {
		o := &l.overlays[k]
		if o.end() > s.end() {
			break
		}
		l.add(l.src, s.off, o.off-s.off)
		l.add(o.from, 0, o.n)
		s.n -= o.end() - s.off
		s.off = o.end()
		l.placed++
	}
	l.add(l.src, s.off, s.n)
}

// align pads to a multiple of 64.
func (l *layout) align() { l.add(padding{}, 0, -l.size&63) }

// synth ends the layout.
func (l *layout) synth() (*Synth, error) {
	if l.tooLarge {
		return nil, fault.New("lancefile.Synthesise", "", fault.TooLarge, "the file would have more than 2^63-1 bytes")
	}
	if l.placed != len(l.overlays) {
		return nil, fault.New("lancefile.Synthesise", "", fault.Invalid,
			"%d of %d overlays lie in bytes that the file keeps", l.placed, len(l.overlays))
	}
	return &Synth{zones: l.zones, size: int64(l.size)}, nil
}
