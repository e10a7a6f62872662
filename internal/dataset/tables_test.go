package dataset

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store/storetest"
)

// TestStatesOfTables counts what it costs to tell the tables that were taken out of their catalog: in an object store one
// request for each new table of a small database, and none in a large one.
func TestStatesOfTables(t *testing.T) {
	objects := map[string][]byte{"a.lance/x": nil, "b.lance/.lance-deregistered": nil, "c.lance/x": nil, "file.lance": nil}
	mem := storetest.NewMem(objects)
	c := storetest.New(mem, 0)
	db, err := OpenDatabase(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var old *TableList
	look := func(want []TableState, stats int) {
		t.Helper()
		l, err := db.Tables(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Reset()
		db.States(t.Context(), l, old)
		var got []TableState
		for _, x := range l.Tables {
			got = append(got, x.State)
		}
		if !slices.Equal(got, want) || c.Total("Stat") != stats || c.Total("List") > 0 {
			t.Errorf("%v with %v, want %v with %d stats", got, c.Calls(), want, stats)
		}
		old = l
	}
	c.Fail("Stat", "c.lance/.lance-deregistered", fault.New("test", "", fault.Unavailable, "%w", errors.New("no")))
	look([]TableState{TableListed, TableDeregistered, TableUnknown}, 3)
	c.Fail("Stat", "c.lance/.lance-deregistered", nil)
	look([]TableState{TableListed, TableDeregistered, TableListed}, 1)
	mem.Put("d.lance/x", nil)
	look([]TableState{TableListed, TableDeregistered, TableListed, TableListed}, 1)
	look([]TableState{TableListed, TableDeregistered, TableListed, TableListed}, 0)
	mem.Delete("b.lance/.lance-deregistered")
	mem.Put("b.lance/x", nil)
	old = nil
	look([]TableState{TableListed, TableListed, TableListed, TableListed}, 4)
	for i := range maxStates {
		mem.Put(fmt.Sprintf("more%d.lance/x", i), nil)
	}
	look(make([]TableState, 4+maxStates), 0)
}
