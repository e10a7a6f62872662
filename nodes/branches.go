package nodes

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
)

// branchRefs lists the branches of the dataset as they were when they were last looked at.
func (t *Tree) branchRefs(ctx context.Context) ([]dataset.Ref, error) {
	l, err := t.branchesSeen.get(ctx)
	if err != nil {
		return nil, err
	}
	return l.refs, nil
}

// branchesDir is branches/: a directory for each branch, laid out like the root.
func (t *Tree) branchesDir() *dir {
	return &dir{
		base: base{ino: t.inode("branches", "branches"), path: "branches", mtime: t.start}, volatile: true,
		list: func(ctx context.Context) (*listing, error) {
			refs, err := t.branchRefs(ctx)
			if err != nil {
				return nil, t.failed("list", "branches", err)
			}
			out := &listing{}
			for _, r := range refs {
				out.add(EncodeName(r.Name), t.branchDir(r))
			}
			return out, nil
		},
		find: func(ctx context.Context, name string) (Node, error) {
			refs, err := t.branchRefs(ctx)
			if err != nil {
				return nil, t.failed("list", "branches", err)
			}
			for _, r := range refs {
				if EncodeName(r.Name) == name {
					return t.branchDir(r), nil
				}
			}
			return nil, notFound("branches", name)
		},
	}
}

// branchDir is branches/<b>/. What is wrong with the branch as a whole, its file or its directory, is in ERROR.json.
func (t *Tree) branchDir(r dataset.Ref) *dir {
	o := otherDataset{
		path: "branches/" + EncodeName(r.Name), uri: t.branchURI(r.Name), mtime: t.start,
		open: func(ctx context.Context) (*Tree, error) { return t.branchTree(ctx, r.Name) },
		lost: []string{"dataset.json", "latest", "versions"},
		also: func(ctx context.Context, es *problems) error {
			if _, err := t.refsOf().Branch(ctx, r); err != nil {
				if !broken(err) && !fault.Is(err, fault.Denied) {
					return err
				}
				es.add("branch", err)
			}
			return nil
		},
	}
	if r.File != "" {
		o.mtime = r.Object.Modified
	}
	return t.datasetDir(o)
}

func (t *Tree) branchURI(name string) string { return t.refsOf().URI() + "/tree/" + name }

// branchTree is the tree of a branch. A name that stands for the main line is none of a branch: the main line holds the
// branches, and would hold itself.
func (t *Tree) branchTree(ctx context.Context, name string) (*Tree, error) {
	if name == "" || name == dataset.MainBranch {
		return nil, fault.New("nodes.Branch", t.refsOf().URI(), fault.Corrupt,
			"a branch cannot have the name %q, which stands for the main line: remove its file below _refs/branches, or its directory below tree/", name)
	}
	return t.trees.get(ctx, t.branchURI(name), func(ctx context.Context) (*Tree, int64, error) {
		ds, err := t.refsOf().OpenBranch(ctx, name)
		if err != nil {
			return nil, 0, err
		}
		return t.below(ds, "branches/"+EncodeName(name)+"/"), treeCost, nil
	})
}

// inParallel calls f for each of n items, some at a time.
func inParallel(n int, f func(i int)) {
	slots := make(chan struct{}, statWorkers)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			f(i)
		}()
	}
	wg.Wait()
}

// selectBranch resolves the selectors Tag and Branch: Dataset becomes that of the branch.
func (cfg *Config) selectBranch(ctx context.Context) error {
	if cfg.Tag != "" {
		if err := cfg.selectTag(ctx); err != nil {
			return err
		}
	}
	if cfg.Branch == "" || cfg.Branch == dataset.MainBranch {
		return nil
	}
	ds, err := cfg.Dataset.OpenBranch(ctx, cfg.Branch)
	if err != nil {
		if !broken(err) {
			return err
		}
		refs, lerr := cfg.Dataset.Branches(ctx)
		if lerr != nil {
			return err
		}
		i := slices.IndexFunc(refs, func(r dataset.Ref) bool { return r.Name == cfg.Branch })
		if i >= 0 {
			return err // it is listed, but has no data
		}
		if i = slices.IndexFunc(refs, func(r dataset.Ref) bool { return EncodeName(r.Name) == cfg.Branch }); i < 0 {
			return fault.New("nodes.New", cfg.Dataset.URI(), fault.NotFound, "there is no branch %q; %s", cfg.Branch, thereAre("branches", refs))
		}
		cfg.Branch = refs[i].Name
		if ds, err = cfg.Dataset.OpenBranch(ctx, cfg.Branch); err != nil {
			return err
		}
	}
	cfg.Dataset, cfg.URI = ds, ds.URI()
	return nil
}

// thereAre names the refs that there are, in words.
func thereAre(what string, refs []dataset.Ref) string {
	const most = 20
	if len(refs) == 0 {
		return "there are no " + what
	}
	names := make([]string, 0, most)
	for _, r := range refs[:min(len(refs), most)] {
		names = append(names, strconv.Quote(r.Name))
	}
	s := "there are " + what + " " + strings.Join(names, ", ")
	if len(refs) == 1 {
		s = "there is only " + names[0]
	}
	if n := len(refs) - most; n > 0 {
		s += " and " + strconv.Itoa(n) + " more"
	}
	return s
}
