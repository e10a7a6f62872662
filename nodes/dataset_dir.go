package nodes

import (
	"context"
	"time"

	"github.com/frifs/frifs/fault"
)

// otherDataset is a dataset that is shown in a directory of this tree: a branch, or a table of a database.
type otherDataset struct {
	path  string // of the directory
	uri   string
	mtime time.Time
	open  func(context.Context) (*Tree, error)
	// lost are the names that ERROR.json gives for a dataset that cannot be opened.
	lost []string
	// instead makes the dataset.json of a dataset that has no version yet; nil = there is none.
	instead func(ctx context.Context, failure error) (*bytesFile, error)
	// also adds what else is wrong with the dataset as a whole; an error means that this cannot be told now.
	also func(context.Context, *problems) error
}

// datasetDir is a directory laid out like the root of a dataset, with ERROR.json where something is wrong with the
// dataset as a whole. It is opened when something in it is asked for.
func (t *Tree) datasetDir(o otherDataset) *dir {
	d := &dir{base: base{ino: inode(o.uri, "", "root"), path: o.path, mtime: o.mtime}, volatile: true}
	// wrong says what is wrong, given the failure to open the dataset if there was one.
	wrong := func(ctx context.Context, failure error) (problems, error) {
		var es problems
		if failure != nil {
			for _, name := range o.lost {
				es.add(name, failure)
			}
		}
		err := o.also(ctx, &es)
		return es, err
	}
	d.list = func(ctx context.Context) (*listing, error) {
		sub, failure := o.open(ctx)
		if failure != nil && !broken(failure) {
			return nil, t.failed("list", o.path, failure)
		}
		es, err := wrong(ctx, failure)
		if err != nil {
			return nil, t.failed("list", o.path, err)
		}
		out := &listing{}
		switch {
		case failure == nil:
			if out, err = sub.rootList(ctx); err != nil {
				return nil, t.failed("list", o.path, err)
			}
		case o.instead != nil:
			f, err := o.instead(ctx, failure)
			if err != nil {
				return nil, err
			}
			out.add("dataset.json", f)
		}
		if len(es) > 0 {
			f, err := errorBytes(ctx, o.uri, o.path, o.mtime, es)
			if err != nil {
				return nil, err
			}
			out.add("ERROR.json", f)
		}
		return out, nil
	}
	d.find = func(ctx context.Context, name string) (Node, error) {
		sub, failure := o.open(ctx)
		if failure != nil && !broken(failure) {
			return nil, t.failed("lookup", o.path, failure)
		}
		switch {
		case name == "ERROR.json":
			es, err := wrong(ctx, failure)
			if err != nil {
				return nil, t.failed("lookup", o.path, err)
			}
			if len(es) == 0 {
				return nil, notFound(o.path, name)
			}
			return errorBytes(ctx, o.uri, o.path, o.mtime, es)
		case failure != nil && name == "dataset.json" && o.instead != nil:
			return o.instead(ctx, failure)
		case failure != nil:
			return nil, fault.Wrap("lookup", o.path+"/"+name, failure) // ERROR.json says so
		}
		return sub.rootFind(ctx, name)
	}
	return d
}

// broken reports whether a failure is a fact about what is in the store.
func broken(err error) bool { return lasting(err) || fault.Is(err, fault.NotFound) }
