package dataset

import (
	"context"
	"maps"
)

// BranchWatch looks at the branches of a dataset time and again. What is below tree/ takes a request for each directory, so
// that as long as the files of the branches stay the same it is looked into at every relistAfter-th look only: a branch
// without a file, which is one that was not made or deleted to the end, shows that much later. It is not safe for
// concurrent use.
type BranchWatch struct {
	d     *Dataset
	last  []Ref          // all that were found
	files map[string]Ref // of them, those with a file
	looks int            // since the directories were looked into
}

// WatchBranches begins to watch the branches.
func (d *Dataset) WatchBranches() *BranchWatch { return &BranchWatch{d: d} }

// Look is Branches, mostly for less. full asks for the directories in any case. Errors are those of Branches; the next
// look is then a full one.
func (w *BranchWatch) Look(ctx context.Context, full bool) ([]Ref, error) {
	if _, local := w.d.st.Local(); !full && !local && w.last != nil && w.looks < relistAfter {
		w.looks++
		refs, err := w.d.listRefs(ctx, branchesDir, maxRefDepth)
		if err != nil {
			w.last = nil
			return nil, err
		}
		if maps.Equal(w.files, byName(refs)) {
			return w.last, nil
		}
	}
	w.last = nil
	refs, err := w.d.Branches(ctx)
	if err != nil {
		return nil, err
	}
	if refs == nil {
		refs = []Ref{}
	}
	w.last, w.files, w.looks = refs, byName(refs), 0
	return refs, nil
}

// byName are the refs that have a file.
func byName(refs []Ref) map[string]Ref {
	out := make(map[string]Ref, len(refs))
	for _, r := range refs {
		if r.File != "" {
			out[r.Name] = r
		}
	}
	return out
}
