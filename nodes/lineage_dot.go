package nodes

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/frifs/frifs/fri"
)

// lineageDOT is fri/lineage.dot: fragments as nodes (live ones filled), each transition as edges from its sources
// through one small node to its destinations. Records that cannot be used have no edges and are named in a comment.
func (n version) lineageDOT(ctx context.Context) (*document, error) {
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	type vertex struct {
		id   uint64
		rows uint64
	}
	seen := map[uint64]bool{}
	var vs []vertex
	for _, t := range h.h.Transitions {
		if !t.Usable() {
			continue
		}
		for _, ds := range [][]fri.Digest{t.Sources, t.Destinations} {
			for _, d := range ds {
				if !seen[d.ID] {
					seen[d.ID] = true
					vs = append(vs, vertex{d.ID, d.PhysicalRows})
				}
			}
		}
	}
	slices.SortFunc(vs, func(a, b vertex) int { return int(min(max(int64(a.id)-int64(b.id), -1), 1)) })
	text := func(s string) piece { return piece{n: 1, fn: func(e *enc, _ int) { e.b = append(e.b, s...) }} }
	d := &document{}
	d.pieces = append(d.pieces, text(fmt.Sprintf("digraph lineage {\n  label=\"version %d\";\n  rankdir=LR;\n  node [shape=box];\n", n.number())),
		piece{n: len(vs), fn: func(e *enc, i int) {
			v := vs[i]
			e.b = fmt.Appendf(e.b, "  f%d [label=\"fragment %d\\n%d rows\"", v.id, v.id, v.rows)
			if _, live := l.m.Live()[fri.FragID(v.id)]; live {
				e.b = append(e.b, ", style=filled, fillcolor=palegreen"...)
			}
			e.b = append(e.b, "];\n"...)
		}})
	for _, t := range h.h.Transitions {
		if !t.Usable() {
			d.pieces = append(d.pieces, text(fmt.Sprintf("  // transition %d (record %d) is %s and has no edges\n", t.Seq, t.Record, t.Kind)))
			continue
		}
		in, moved, dropped, _ := t.Rows()
		d.pieces = append(d.pieces,
			text(fmt.Sprintf("  t%d [shape=ellipse, label=\"%s\\n%s\\n%d in, %d moved, %d dropped\"];\n",
				t.Seq, transitionName(t.Seq), t.Kind, in, moved, dropped)),
			edges(t.Sources, func(b []byte, id uint64) []byte {
				return append(strconv.AppendInt(append(strconv.AppendUint(append(b, "  f"...), id, 10), " -> t"...), int64(t.Seq), 10), ";\n"...)
			}),
			edges(t.Destinations, func(b []byte, id uint64) []byte {
				return append(strconv.AppendUint(append(strconv.AppendInt(append(b, "  t"...), int64(t.Seq), 10), " -> f"...), id, 10), ";\n"...)
			}))
	}
	d.pieces = append(d.pieces, text("}\n"))
	return d, nil
}

func edges(ds []fri.Digest, line func(b []byte, id uint64) []byte) piece {
	return piece{n: len(ds), fn: func(e *enc, i int) { e.b = line(e.b, ds[i].ID) }}
}
