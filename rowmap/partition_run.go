package rowmap

import (
	"context"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// ForwardRun implements Mapping. A run over a whole label block goes straight through its labels with one counter per
// destination; a part of a block uses the places of its rows.
func (p *Partition) ForwardRun(ctx context.Context, src int, off uint64, out []fri.RowAddr, st []Status) error {
	if src < 0 || src >= len(p.t.Sources) {
		return fault.New("rowmap.ForwardRun", "", fault.Invalid, "source %d of %d", src, len(p.t.Sources))
	}
	have := uint64(0)
	if rows := p.t.Sources[src].PhysicalRows; off < rows {
		have = min(rows-off, uint64(len(out)))
	}
	for i := int(have); i < len(out); i++ {
		out[i], st[i] = 0, OutOfRange
	}
	out, st = out[:have], st[:have]
	var next []uint64
	for pos := p.starts[src] + off; len(out) > 0; {
		if err := ctx.Err(); err != nil {
			return fault.Wrap("rowmap.ForwardRun", "", err)
		}
		i := p.LabelBlockAt(pos)
		first, n := p.span(i)
		lo := int(pos - first)
		take := min(n-lo, len(out))
		if take == n && p.null < maxDestinations && p.places.peek(i) == nil {
			b, err := p.Labels(ctx, i)
			if err != nil {
				return err
			}
			next = p.sweep(b, next, out[:take], st[:take])
		} else {
			b, err := p.place(ctx, i)
			if err != nil {
				return err
			}
			p.run(b, b.rows[lo:lo+take], out[:take], st[:take])
		}
		out, st = out[take:], st[take:]
		pos += uint64(take)
	}
	return nil
}

// sweep answers a whole block: next holds the next address of each destination.
func (p *Partition) sweep(b *LabelBlock, next []uint64, out []fri.RowAddr, st []Status) []uint64 {
	next = resized(next, int(p.null)+1)
	for d, n := range b.Before {
		next[d] = p.destAddr[d] + uint64(n)
	}
	next[p.null] = 0
	labels := b.Labels[:len(out)]
	st = st[:len(out)]
	null := p.null
	for i, l := range labels {
		if int(l) >= len(next) { // never: labels are checked when they are read
			break
		}
		v := next[l]
		next[l] = v + 1
		out[i] = fri.RowAddr(v)
		st[i] = Moved + Status((uint32(l)^null-1)>>31)
	}
	return next
}

// run answers consecutive rows of a block from their ranks.
func (p *Partition) run(b *placeBlock, rows []uint32, out []fri.RowAddr, st []Status) {
	if p.null == maxDestinations {
		for i, e := range rows {
			out[i], st[i] = p.one(b, e)
		}
		return
	}
	addr, base, shift, mask := p.destAddr, b.base, p.rankBits&31, uint32(1)<<p.rankBits-1
	out, st = out[:len(rows)], st[:len(rows)]
	for i, e := range rows {
		d := e >> shift
		out[i] = fri.RowAddr(addr[d] + uint64(base[d]+e&mask))
		st[i] = Moved + Status((d^p.null-1)>>31)
	}
}

// Received implements Mapping.
func (p *Partition) Received(ctx context.Context, src int, off uint64, counts []uint64) error {
	if src < 0 || src >= len(p.t.Sources) || len(counts) < int(p.null) {
		return fault.New("rowmap.Received", "", fault.Invalid, "source %d of %d, %d counters for %d destinations",
			src, len(p.t.Sources), len(counts), p.null)
	}
	pos := p.starts[src] + min(off, p.t.Sources[src].PhysicalRows)
	if stored := uint64(p.grid.blockRows); pos == p.grid.rows || pos%stored == 0 {
		row, err := p.grid.before(ctx, (pos+stored-1)/stored)
		if err != nil {
			return err
		}
		for d, n := range row {
			counts[d] = uint64(n)
		}
		return nil
	}
	b, err := p.Labels(ctx, p.LabelBlockAt(pos))
	if err != nil {
		return err
	}
	for d, n := range b.Before {
		counts[d] = uint64(n)
	}
	for i, l := range b.Labels[:pos-b.First] {
		if !b.Null(i, int(p.null)) {
			counts[l]++
		}
	}
	return nil
}
