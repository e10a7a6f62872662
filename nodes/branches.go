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
	p := "branches/" + EncodeName(r.Name)
	uri := t.branchURI(r.Name)
	d := &dir{base: base{ino: inode(uri, "", "root"), path: p, mtime: t.start}, volatile: true}
	if r.File != "" {
		d.mtime = r.Object.Modified
	}
	d.list = func(ctx context.Context) (*listing, error) {
		out, es, err := t.branchList(ctx, r)
		if err != nil {
			return nil, t.failed("list", p, err)
		}
		if len(es) > 0 {
			f, err := errorBytes(ctx, uri, p, d.mtime, es)
			if err != nil {
				return nil, err
			}
			out.add("ERROR.json", f)
		}
		return out, nil
	}
	d.find = func(ctx context.Context, name string) (Node, error) {
		if name == "ERROR.json" {
			es, err := t.branchProblems(ctx, r)
			if err != nil {
				return nil, t.failed("list", p, err)
			}
			if len(es) == 0 {
				return nil, notFound(p, name)
			}
			return errorBytes(ctx, uri, p, d.mtime, es)
		}
		sub, err := t.branchTree(ctx, r.Name)
		if broken(err) {
			return nil, fault.Wrap("lookup", p+"/"+name, err) // ERROR.json says so
		}
		if err != nil {
			return nil, t.failed("lookup", p, err)
		}
		return sub.rootFind(ctx, name)
	}
	return d
}

// branchList lists a branch's directory, ERROR.json left out, and says what that would hold.
func (t *Tree) branchList(ctx context.Context, r dataset.Ref) (*listing, problems, error) {
	es, err := t.branchProblems(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	sub, err := t.branchTree(ctx, r.Name)
	if err != nil {
		if !broken(err) {
			return nil, nil, err
		}
		return &listing{}, es, nil
	}
	out, err := sub.rootList(ctx)
	return out, es, err
}

// branchProblems looks whether the branch has its file and its directory. An error means that this cannot be told now.
func (t *Tree) branchProblems(ctx context.Context, r dataset.Ref) (problems, error) {
	var es problems
	if _, err := t.branchTree(ctx, r.Name); err != nil {
		if !broken(err) {
			return nil, err
		}
		for _, name := range []string{"dataset.json", "latest", "versions"} {
			es.add(name, err)
		}
	}
	if _, err := t.refsOf().Branch(ctx, r); err != nil {
		if !broken(err) && !fault.Is(err, fault.Denied) {
			return nil, err
		}
		es.add("branch", err)
	}
	return es, nil
}

// broken reports whether a failure is a fact about what is in the store.
func broken(err error) bool { return lasting(err) || fault.Is(err, fault.NotFound) }

func (t *Tree) branchURI(name string) string { return t.refsOf().URI() + "/tree/" + name }

// branchTree is the tree of a branch.
func (t *Tree) branchTree(ctx context.Context, name string) (*Tree, error) {
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
