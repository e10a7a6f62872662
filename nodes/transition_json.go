package nodes

import "context"

// transitionJSON is transition.json: one record as in history.json.
func (n version) transitionJSON(ctx context.Context, seq int) (*document, error) {
	l, h, t, err := n.transition(ctx, seq)
	if err != nil {
		return nil, err
	}
	r, err := n.record(ctx, l, t)
	if err != nil {
		return nil, err
	}
	j := newJSONDoc()
	j.doc.costlyID = true
	j.Members(func(e *enc) { e.K("dataset_version").Uint(n.number()) })
	j.record(l, h, r)
	return j.Done(), nil
}
