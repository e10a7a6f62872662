package nodes

import (
	"context"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
)

// newDatabase makes the tree of a database.
func newDatabase(ctx context.Context, cfg Config) (*Tree, error) {
	cfg.Dataset = nil
	if cfg.URI == "" {
		cfg.URI = cfg.Database.URI()
	}
	if cfg.Version != nil || cfg.Tag != "" || cfg.Branch != "" || !cfg.AsOf.IsZero() {
		t := &Tree{cfg: cfg, db: cfg.Database}
		return nil, t.needTable(ctx, fault.Invalid, "a version, a tag or a branch is one of a table")
	}
	s, js, err := newShared(ctx, cfg)
	if err != nil {
		return nil, err
	}
	t := &Tree{shared: s, cfg: cfg, db: cfg.Database, scope: cfg.URI + "\x00", jobs: &treeJobs{js, ""}}
	t.live = newLive(t)
	t.tables = t.watchTables()
	t.versions = &watched[*view]{t: t, name: "versions"}
	t.versions.freeze(&view{listing: &dataset.Listing{}})
	return t, nil
}

// tableNames are the tables of a database, with the names that the tree gives them.
type tableNames struct {
	*dataset.TableList
	byName map[string]dataset.Table
	names  []string // of Tables
}

// tableNames lists the tables as they were when they were last looked at.
func (t *Tree) tableNames(ctx context.Context) (*tableNames, error) { return t.tables.get(ctx) }

func newTableNames(l *dataset.TableList) *tableNames {
	out := &tableNames{TableList: l, byName: make(map[string]dataset.Table, len(l.Tables)), names: make([]string, len(l.Tables))}
	u := newUniqueNames()
	for i, table := range l.Tables {
		out.names[i] = u.take(EncodeName(table.Name))
		out.byName[out.names[i]] = table
	}
	return out
}

// NeedTable is the error of what only a table has, for the root of a database: fault.Invalid, with the names of its tables.
// It is nil for a table.
func (t *Tree) NeedTable(ctx context.Context) error {
	if t.db == nil {
		return nil
	}
	return t.needTable(ctx, fault.Invalid, "")
}

// needTable is the error of what only a table has.
func (t *Tree) needTable(ctx context.Context, kind fault.Kind, what string) error {
	const most = 20
	l, err := t.db.Tables(ctx)
	if err != nil {
		return err
	}
	names := l.Names()
	list := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		list += " and " + strconv.Itoa(n) + " more"
	}
	if what != "" {
		what += ", and "
	}
	return fault.New("nodes.Table", t.cfg.URI, kind, "%sthis is a directory of tables: name one of them, such as %s/%s. There are %s",
		what, t.cfg.URI, l.Tables[0].Dir, list)
}

func (t *Tree) databaseList(context.Context) (*listing, error) {
	out := &listing{}
	out.add(".frifs", t.frifsDir())
	out.add("README.txt", t.readme())
	out.add("dataset.json", t.live.name("dataset.json"))
	out.add("tables", t.tablesDir())
	return out, nil
}

func (t *Tree) databaseFind(ctx context.Context, name string) (Node, error) {
	switch name {
	case ".frifs":
		return t.frifsDir(), nil
	case "README.txt":
		return t.readme(), nil
	case "tables":
		return t.tablesDir(), nil
	case "dataset.json":
		f, err := t.live.file(ctx, name, t.databaseJSON)
		if err != nil {
			return nil, err
		}
		return f, nil
	case "latest", "versions", "tags", "branches", "diff":
		return nil, fault.Wrap("lookup", name, t.needTable(ctx, fault.NotFound, "only a table has "+name))
	}
	return nil, notFound("", name)
}

// databaseJSON is dataset.json of a database. No table is opened for it.
func (t *Tree) databaseJSON(ctx context.Context) ([]byte, error) {
	l, err := t.tableNames(ctx)
	if err != nil {
		return nil, err
	}
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("uri").Str(t.cfg.URI)
		e.K("kind").Str("database")
		e.K("catalog").Bool(l.Catalog)
		e.K("other_names").Int(int64(l.Others))
	})
	j.ArrayOf("tables", len(l.Tables), func(e *enc, i int) {
		e.Obj(func() {
			e.K("name").Str(l.Tables[i].Name)
			e.K("directory").Str(l.Tables[i].Dir)
			e.K("path").Str("tables/" + l.names[i])
			s := l.Tables[i].State
			e.K("deregistered").OptBool(when(s != dataset.TableUnknown, s == dataset.TableDeregistered))
		})
	})
	return jsonBytes(ctx, j.Done())
}

// tablesDir is tables/: a directory for each table, listed by name with one request. A table that was taken out of its
// catalog is not listed, as in any catalog, but can be looked up.
func (t *Tree) tablesDir() *dir {
	return &dir{
		base: base{ino: t.inode("tables", "tables"), path: "tables", mtime: t.start}, volatile: true,
		list: func(ctx context.Context) (*listing, error) {
			l, err := t.tableNames(ctx)
			if err != nil {
				return nil, t.failed("list", "tables", err)
			}
			out := &listing{members: make([]member, 0, len(l.names))}
			for i, name := range l.names {
				if l.Tables[i].State != dataset.TableDeregistered {
					out.add(name, t.tableDir(name, l.Tables[i]))
				}
			}
			return out, nil
		},
		find: func(ctx context.Context, name string) (Node, error) {
			l, err := t.tableNames(ctx)
			if err != nil {
				return nil, t.failed("list", "tables", err)
			}
			table, ok := l.byName[name]
			if !ok {
				return nil, notFound("tables", name)
			}
			return t.tableDir(name, table), nil
		},
	}
}

// tableDir is tables/<name>/, laid out like the root of a dataset. A table is opened when something in it is asked for.
func (t *Tree) tableDir(name string, table dataset.Table) *dir {
	uri := t.cfg.URI + "/" + table.Dir
	return t.datasetDir(otherDataset{
		path: "tables/" + name, uri: uri, mtime: t.start,
		open: func(ctx context.Context) (*Tree, error) { return t.tableTree(ctx, name, table) },
		lost: []string{"latest", "versions", "tags", "branches"},
		instead: func(ctx context.Context, failure error) (*bytesFile, error) {
			return t.incompleteTable(ctx, name, uri, failure)
		},
		also: func(ctx context.Context, es *problems) error {
			if sub, err := t.tableTree(ctx, name, table); err == nil {
				if v, err := sub.view(ctx); err == nil && len(v.refs) == 0 {
					es.add("latest", t.db.NoVersions(ctx, table))
				}
			}
			if t.db.State(ctx, table) == dataset.TableDeregistered {
				es.add(".lance-deregistered", fault.New("nodes.Table", uri, fault.NotFound,
					"the table was taken out of its catalog: catalogs do not list it, its data is still there"))
			}
			return nil
		},
	})
}

// tableTree is the tree of a table.
func (t *Tree) tableTree(ctx context.Context, name string, table dataset.Table) (*Tree, error) {
	sub, err := t.trees.get(ctx, t.cfg.URI+"/"+table.Dir, func(ctx context.Context) (*Tree, int64, error) {
		ds, err := t.db.Open(ctx, table)
		if err != nil {
			return nil, 0, err
		}
		return t.below(ds, "tables/"+name+"/"), treeCost, nil
	})
	if err == nil {
		t.inUse.use(name, sub)
	}
	return sub, err
}
