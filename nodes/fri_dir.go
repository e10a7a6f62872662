package nodes

import (
	"context"
	"fmt"
	"strconv"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// friDir is versions/<N>/fri/. What is in it follows from the entry alone: history.json and status.json always, the
// rest only where there is a usable entry (docs/DESIGN.md, "Listing").
func (n version) friDir(l *loaded) *dir {
	return &dir{base: n.base("fri", n.key(), l.mtime), list: n.friList}
}

func (n version) friList(ctx context.Context) (*listing, error) {
	n = n.now()
	l, err := n.load(ctx)
	if err != nil {
		return nil, err
	}
	out := &listing{}
	out.add("history.json", n.doc(l, "fri/history.json", C1, n.historyJSON))
	status := n.doc(l, "fri/status.json", C1, n.friStatusJSON)
	if l.fri.present() { // since when records are there is looked up in older versions
		status.ino = n.t.inode(status.path, n.chainKey())
	}
	out.add("status.json", status)
	if !l.fri.present() {
		return out, nil
	}
	h, err := n.history(ctx, l)
	if err != nil {
		return nil, err
	}
	var es problems
	if h.content != nil {
		out.add("details.binpb", n.detailsFile(l, h))
	} else {
		out.leaveOut(&es, "details.binpb", h.h.Broken)
	}
	if h.h.Broken != nil {
		for _, name := range []string{"lineage.dot", "transitions", "scan"} {
			out.leaveOut(&es, name, h.h.Broken)
		}
	} else {
		out.add("lineage.dot", n.doc(l, "fri/lineage.dot", C1, n.lineageDOT))
		out.add("transitions", n.transitionsDir(l))
		out.add("scan", n.composedDir(l))
	}
	if len(es) > 0 {
		out.add("ERROR.json", n.errorFile("fri", l.mtime, es))
	}
	return out, nil
}

// transitionName is the directory name of the transition at position seq.
func transitionName(seq int) string { return fmt.Sprintf("%04d", seq) }

// transitionsDir is fri/transitions/.
func (n version) transitionsDir(l *loaded) *dir {
	rel := "fri/transitions"
	return &dir{
		base: n.base(rel, n.key(), l.mtime),
		list: func(ctx context.Context) (*listing, error) {
			l, h, err := n.loadHistory(ctx)
			if err != nil {
				return nil, err
			}
			out := &listing{members: make([]member, 0, len(h.h.Transitions))}
			for _, t := range h.h.Transitions {
				out.add(transitionName(t.Seq), n.transitionDir(l, t.Seq))
			}
			return out, nil
		},
		find: func(ctx context.Context, name string) (Node, error) {
			l, h, err := n.loadHistory(ctx)
			if err != nil {
				return nil, err
			}
			seq, err := strconv.Atoi(name)
			if err != nil || seq < 1 || seq > len(h.h.Transitions) || transitionName(seq) != name {
				return nil, notFound(n.path+"/"+rel, name)
			}
			return n.transitionDir(l, seq), nil
		},
	}
}

// loadHistory is load and history in one.
func (n version) loadHistory(ctx context.Context) (*loaded, *history, error) {
	l, err := n.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	h, err := n.history(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	return l, h, nil
}

// transition returns one record of the version's history.
func (n version) transition(ctx context.Context, seq int) (*loaded, *history, *fri.Transition, error) {
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if seq < 1 || seq > len(h.h.Transitions) {
		return nil, nil, nil, fault.New("nodes.Transition", n.path, fault.NotFound, "there is no transition %d", seq)
	}
	return l, h, h.h.Transitions[seq-1], nil
}

// transitionDir is fri/transitions/<NNNN>/.
func (n version) transitionDir(l *loaded, seq int) *dir {
	rel := "fri/transitions/" + transitionName(seq)
	return &dir{base: n.base(rel, n.key(), l.mtime), list: func(ctx context.Context) (*listing, error) {
		l, _, t, err := n.transition(ctx, seq)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		out.add("transition.json", n.doc(l, rel+"/transition.json", C1, func(ctx context.Context) (*document, error) {
			return n.transitionJSON(ctx, seq)
		}))
		names := []string{"mapping.csv", "mapping.arrow"}
		if t.Mapping == fri.StablePartition {
			names = append(names, "counts.csv")
		}
		why := t.Err
		if why == nil {
			why = l.refusal
		}
		if why != nil {
			var es problems
			for _, name := range append(names, "scan") {
				out.leaveOut(&es, name, why)
			}
			out.add("ERROR.json", n.errorFile(rel, l.mtime, es))
			return out, nil
		}
		for _, name := range names {
			out.add(name, n.mappingFile(l, rel, seq, name))
		}
		out.add("scan", &dir{base: n.base(rel+"/scan", n.key(), l.mtime), list: func(ctx context.Context) (*listing, error) {
			l, err := n.load(ctx)
			if err != nil {
				return nil, err
			}
			out := &listing{}
			out.add("inverse.csv", n.mappingFile(l, rel+"/scan", seq, "inverse.csv"))
			return out, nil
		}})
		return out, nil
	}}
}

// composedDir is fri/scan/.
func (n version) composedDir(l *loaded) *dir {
	return &dir{base: n.base("fri/scan", n.key(), l.mtime), list: func(ctx context.Context) (*listing, error) {
		l, err := n.load(ctx)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		if l.refusal != nil {
			var es problems
			for _, name := range []string{"composed.csv", "composed.json", "needed.json"} {
				out.leaveOut(&es, name, l.refusal)
			}
			out.add("ERROR.json", n.errorFile("fri/scan", l.mtime, es))
			return out, nil
		}
		out.add("composed.csv", n.composedFile(l))
		out.add("composed.json", n.doc(l, "fri/scan/composed.json", C2, n.composedJSON))
		out.add("needed.json", n.doc(l, "fri/scan/needed.json", C2, n.neededJSON))
		return out, nil
	}}
}
