package dataset

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

const (
	tableSuffix      = ".lance"
	catalogDir       = "__manifest"
	reservedName     = ".lance-reserved"
	deregisteredName = ".lance-deregistered"
)

// Database is a directory or prefix that holds tables (docs/FORMAT.md, "Databases"). It is safe for concurrent use.
type Database struct {
	st    store.Store
	opt   Options
	cache *cache // of all tables

	mu    sync.Mutex          // protects plain
	plain map[string]plainDir // directories that are not named like tables, by what a look into them told
}

// plainDir is what a look into a directory told that is not named like a table.
type plainDir struct {
	table bool
	at    time.Time
}

const (
	// maxPlain is into how many directories that are not named like tables it is looked.
	maxPlain = 100
	// plainFor is how long a directory that was no table is taken for none.
	plainFor = time.Minute
)

// Table is a directory that a database takes for a table. It need not be a dataset yet.
type Table struct {
	Name  string // without .lance; of a table in a namespace the name of its directory
	Dir   string
	State TableState
}

// TableState says whether catalogs list a table.
type TableState uint8

// The states of a table. The zero value stands for one that was not looked into.
const (
	TableUnknown TableState = iota
	TableListed
	TableDeregistered // taken out of its catalog: its data is still there, and catalogs do not list it
)

// TableList is what one listing of a database gave.
type TableList struct {
	Tables  []Table // ascending by directory
	Catalog bool    // there is a catalog of namespaces (__manifest), which is among the tables
	Others  int     // names that are no table
}

// Names are the names of the tables.
func (l *TableList) Names() []string {
	out := make([]string, len(l.Tables))
	for i, t := range l.Tables {
		out[i] = t.Name
	}
	return out
}

// OpenDatabase looks whether st holds tables, with one listing. It fails with fault.NotFound if nothing there is named
// like one.
func OpenDatabase(ctx context.Context, st store.Store, opt Options) (*Database, error) {
	opt = opt.withDefaults()
	db := &Database{st: st, opt: opt, cache: newCache(opt.CacheBytes, opt.Budget)}
	l, err := db.Tables(ctx)
	if err != nil {
		return nil, err
	}
	if len(l.Tables) == 0 {
		return nil, fault.New("dataset.OpenDatabase", st.URI(), fault.NotFound, "no database: there is no table (NAME%s) here", tableSuffix)
	}
	return db, nil
}

// URI names the database, without credentials.
func (db *Database) URI() string { return db.st.URI() }

// Store returns the store of the database's root.
func (db *Database) Store() store.Store { return db.st }

// Tables lists the tables from names alone, with one List and no other call. Where there is a catalog, or nothing is named
// like a table, any other directory with a _versions directory is one too: those cost a request each, once a minute.
// Errors are the store's.
func (db *Database) Tables(ctx context.Context) (*TableList, error) {
	objects, err := db.st.List(ctx, "")
	if err != nil {
		return nil, fault.Wrap("dataset.Tables", db.URI(), err)
	}
	l := &TableList{}
	var plain []string
	for _, o := range objects {
		name, ok := tableName(o.Name)
		if !o.Dir || !ok {
			l.Others++
			if o.Dir && o.Name[0] != '_' && o.Name[0] != '.' && o.Name != tableSuffix {
				plain = append(plain, o.Name)
			}
			continue
		}
		l.Catalog = l.Catalog || o.Name == catalogDir
		l.Tables = append(l.Tables, Table{Name: name, Dir: o.Name})
	}
	if l.Catalog || len(l.Tables) == 0 {
		for _, dir := range plain[:min(len(plain), maxPlain)] {
			if db.isPlainTable(ctx, dir) {
				l.Tables = append(l.Tables, Table{Name: dir, Dir: dir})
				l.Others--
			}
		}
	}
	slices.SortFunc(l.Tables, func(a, b Table) int { return strings.Compare(a.Dir, b.Dir) })
	return l, nil
}

// isPlainTable looks whether a directory has a _versions directory.
func (db *Database) isPlainTable(ctx context.Context, dir string) bool {
	db.mu.Lock()
	p, ok := db.plain[dir]
	db.mu.Unlock()
	if ok && (p.table || time.Since(p.at) < plainFor) {
		return p.table
	}
	err := hasVersions(ctx, db.st.Sub(dir))
	if err != nil && !tolerable(err) {
		return p.table
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.plain == nil {
		db.plain = map[string]plainDir{}
	}
	db.plain[dir] = plainDir{err == nil, time.Now()}
	return err == nil
}

// tableName tells a table's directory by its name: NAME.lance, or 8 hex digits, _ and more where a catalog of namespaces
// keeps it, or the catalog itself.
func tableName(dir string) (name string, ok bool) {
	if name, ok = strings.CutSuffix(dir, tableSuffix); ok && name != "" {
		return name, true
	}
	if dir == catalogDir {
		return dir, true
	}
	if len(dir) > 9 && dir[8] == '_' && strings.Trim(dir[:8], "0123456789abcdef") == "" {
		return dir, true
	}
	return "", false
}

// Open opens a table. It shares one cache with all tables of the database. Errors: fault.NotFound for one that has no
// version, and says whether it is half made; those of Open.
func (db *Database) Open(ctx context.Context, t Table) (*Dataset, error) {
	st := db.st.Sub(t.Dir)
	d, err := open(ctx, st, db.opt, db.cache)
	if !fault.Is(err, fault.NotFound) {
		return d, err
	}
	return nil, db.NoVersions(ctx, t)
}

// NoVersions is the error of a table that has no version, and says whether it is half made.
func (db *Database) NoVersions(ctx context.Context, t Table) error {
	why := "it is half made, or was dropped"
	st := db.st.Sub(t.Dir)
	if _, err := st.Stat(ctx, reservedName); err == nil {
		why = "its name is reserved, but nothing was written yet"
	}
	return fault.New("dataset.OpenTable", st.URI(), fault.NotFound, "the table has no versions: %s", why)
}

// maxStates is up to how many tables of a database in an object store are looked into for their states.
const maxStates = 100

// States finds the state of each table of a list: one request per table where the database is on this machine. Elsewhere
// what old tells is taken, the other tables cost a request each, and none is made where there are more than maxStates
// tables. old may be nil. A look that fails leaves the state unknown.
func (db *Database) States(ctx context.Context, l, old *TableList) {
	_, local := db.st.Local()
	known := map[string]TableState{}
	if !local {
		if len(l.Tables) > maxStates {
			return
		}
		if old != nil {
			for _, t := range old.Tables {
				known[t.Dir] = t.State
			}
		}
	}
	var todo []int
	for i, t := range l.Tables {
		if l.Tables[i].State = known[t.Dir]; l.Tables[i].State == TableUnknown {
			todo = append(todo, i)
		}
	}
	const atATime = 16
	slots := make(chan struct{}, atATime)
	var wg sync.WaitGroup
	for _, i := range todo {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			l.Tables[i].State = db.State(ctx, l.Tables[i])
		})
	}
	wg.Wait()
}

// State looks into one table.
func (db *Database) State(ctx context.Context, t Table) TableState {
	_, err := db.st.Sub(t.Dir).Stat(ctx, deregisteredName)
	switch {
	case err == nil:
		return TableDeregistered
	case tolerable(err):
		return TableListed
	}
	return TableUnknown
}
