package nodes

import (
	"context"
	"maps"
	"slices"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// composedStep is how many rows of a source fragment are pushed through the history at a time.
const composedStep = 1 << 20

// tally is what became of the rows of one source fragment.
type tally struct {
	src   translate.Source
	rows  [translate.NumOutcomes]uint64
	dests map[fri.FragID]uint64 // rows that are at an address in the fragment
}

// tallies counts the outcomes of every source fragment of the history.
func tallies(ctx context.Context, tr *translate.Translator) ([]tally, error) {
	srcs := tr.Sources()
	out := make([]tally, len(srcs))
	for i, s := range srcs {
		out[i] = tally{src: s, dests: map[fri.FragID]uint64{}}
		for from := uint64(0); from < s.Rows; from += composedStep {
			if err := out[i].push(ctx, tr, from, min(from+composedStep, s.Rows)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (t *tally) push(ctx context.Context, tr *translate.Translator, from, to uint64) error {
	p, err := tr.Push(ctx, t.src.Frag, from, to)
	if fault.Is(err, fault.TooLarge) {
		return t.each(ctx, tr, from, to)
	}
	if err != nil {
		return err
	}
	for o, n := range p.Rows {
		t.rows[o] += n
	}
	for _, r := range p.Ranges {
		t.dests[r.Frag] += r.To - r.From
	}
	return nil
}

// each looks at every row, where a range falls apart into too many.
func (t *tally) each(ctx context.Context, tr *translate.Translator, from, to uint64) error {
	const batch = 1 << 16
	r := translate.Results{New: make([]fri.RowAddr, batch), Outcome: make([]translate.Outcome, batch), Strict: true}
	for ; from < to; from += batch {
		n := int(min(batch, to-from))
		p := translate.Results{New: r.New[:n], Outcome: r.Outcome[:n], Strict: true}
		if err := tr.TranslateRun(ctx, fri.Addr(t.src.Frag, uint32(from)), n, &p); err != nil {
			return err
		}
		for i, o := range p.Outcome {
			t.rows[o]++
			if o.HasAddress() {
				t.dests[p.New[i].Frag()]++
			}
		}
	}
	return nil
}

// composedJSON is fri/scan/composed.json: rows per outcome, in all and per source fragment, and where they are.
func (n version) composedJSON(ctx context.Context) (*document, error) {
	tr, _, err := n.openTranslator(ctx)
	if err != nil {
		return nil, err
	}
	ts, err := tallies(ctx, tr)
	if err != nil {
		return nil, err
	}
	var total [translate.NumOutcomes]uint64
	rows := uint64(0)
	for _, t := range ts {
		rows += t.src.Rows
		for o, n := range t.rows {
			total[o] += n
		}
	}
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(n.number())
		e.K("rows").Uint(rows)
		e.K("outcomes").outcomes(&total)
	})
	j.ArrayOf("fragments", len(ts), func(e *enc, i int) {
		t := &ts[i]
		e.Obj(func() {
			e.K("fragment").Uint(uint64(t.src.Frag))
			e.K("live").Bool(t.src.Live)
			e.K("rows")
			if t.src.Rows == 0 {
				e.Null()
			} else {
				e.Uint(t.src.Rows)
			}
			e.K("outcomes").outcomes(&t.rows)
			e.K("destinations").Arr(func() {
				for _, f := range slices.Sorted(maps.Keys(t.dests)) {
					e.Item().Obj(func() {
						e.K("fragment").Uint(uint64(f))
						e.K("rows").Uint(t.dests[f])
					})
				}
			})
		})
	})
	return j.Done(), nil
}

// outcomes writes the rows per outcome, all outcomes in a fixed order.
func (e *enc) outcomes(rows *[translate.NumOutcomes]uint64) {
	e.Obj(func() {
		for _, o := range []translate.Outcome{translate.Same, translate.Moved, translate.DeletedNow, translate.Dropped,
			translate.Dangling, translate.OutOfRange, translate.Unresolved} {
			e.K(o.String()).Uint(rows[o])
		}
	})
}
