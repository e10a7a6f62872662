package rowmap

import (
	"errors"
	"fmt"

	"github.com/frifs/frifs/fri"
)

// The checks of a row map by the names that they have in JSON, in the order in which they are made.
const (
	checkFile         = "row_map_file"         // size as recorded, a Lance file
	checkColumn       = "row_map_column"       // check 1
	checkIndex        = "row_map_counts_index" // check 2
	checkHeader       = "row_map_counts"       // checks 3 and 4
	checkSize         = "row_map_counts_size"  // check 5
	checkSources      = "row_map_sources"      // check 12
	checkRows         = "row_map_rows"         // checks 8 and 9
	checkDestinations = "row_map_destinations" // check 10
	checkTotals       = "row_map_totals"       // check 11, with the last row of the grid read
	checkPages        = "row_map_pages"        // the page descriptions of the label column
	checkGrid         = "row_map_grid"         // checks 6 and 7, made on each row of the grid when it is read
	checkLabels       = "row_map_labels"       // checks 13 to 15, made on each block when it is used
)

var openChecks = [...]string{checkFile, checkColumn, checkIndex, checkHeader, checkSize, checkSources, checkRows,
	checkDestinations, checkTotals, checkPages}

// openError is a failed open: which check failed, and how.
type openError struct {
	check string
	err   error
}

func (e *openError) Error() string { return e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// CheckList tells how far OpenPartition came that ended with err: the checks that passed, the one that failed, and those
// that were not looked at. It is nil for an error that did not come from OpenPartition.
func CheckList(err error) []fri.Check {
	var e *openError
	if !errors.As(err, &e) {
		return nil
	}
	var list []fri.Check
	passed, failed := true, false
	for _, name := range openChecks {
		c := fri.Check{Name: name}
		switch {
		case name == e.check:
			c.OK, c.Detail, passed = &failed, e.err.Error(), false
		case passed:
			ok := true
			c.OK = &ok
		}
		list = append(list, c)
	}
	return append(list, fri.Check{Name: checkGrid}, fri.Check{Name: checkLabels})
}

// Checks tells which checks were made: those of the opening, which have passed, and those that are made on the grid and
// on the labels as they are read. The latter are "not looked at yet" until they have been made on every row; that
// count includes what was read again.
func (p *Partition) Checks() []fri.Check {
	list := make([]fri.Check, 0, len(openChecks)+2)
	for _, name := range openChecks {
		ok := true
		list = append(list, fri.Check{Name: name, OK: &ok})
	}
	part := func(name string, done, all uint64, unit string) {
		c := fri.Check{Name: name, Detail: fmt.Sprintf("made on %d of %d %s so far", min(done, all), all, unit)}
		if all == 0 {
			ok := true
			c.OK, c.Detail = &ok, ""
		}
		list = append(list, c)
	}
	part(checkGrid, uint64(p.grid.read.Load()), p.grid.blocks(), "blocks")
	part(checkLabels, p.labelRows.Load(), p.grid.rows, "rows")
	return list
}
