package fri

import (
	"errors"
	"fmt"

	"github.com/frifs/frifs/fault"
)

// CheckIndexVersion applies rule 1: an index version that is neither 0 nor 1 gives fault.Unsupported. It comes before
// every look at the entry's details; Broken takes the error.
func CheckIndexVersion(v int32) error {
	if v == 0 || v == 1 {
		return nil
	}
	return &fault.Error{Op: "fri.Open", Kind: fault.Unsupported, Err: &ruleError{1, fmt.Errorf("index_version %d is not "+
		"supported, only 0 and 1 are (Lance 14.0.2 refuses it too); please upgrade", v)}}
}

// Broken is the history of an entry that cannot be used as a whole. err says why: an error of this package, or of the
// store that should have given the details. Its kind becomes the finding's. rule is the broken rule of docs/FORMAT.md,
// "Validation rules"; with 0 it is taken from err, if that is an error of this package.
func Broken(indexVersion int32, rule int, err error) *History {
	var re *ruleError
	if rule == 0 && errors.As(err, &re) {
		rule = re.rule
	}
	return &History{
		IndexVersion: indexVersion, Tagged: indexVersion == 1,
		Broken: err,
		Errors: []Finding{{Rule: rule, Kind: fault.KindOf(err), Message: plain(err)}},
	}
}

// BrokenEntry is the history of an entry of class BrokenFRI (rule 2); r says what is wrong with it.
func BrokenEntry(indexVersion int32, r Recognition) *History {
	return Broken(indexVersion, 2, fault.New("fri.Open", "", fault.Corrupt, "%s", r.Warning))
}

// TwoEntries is the history of a manifest with n entries that are the FRI.
func TwoEntries(indexVersion int32, n int) *History {
	count := "two"
	if n != 2 {
		count = fmt.Sprint(n)
	}
	return Broken(indexVersion, 0, fault.New("fri.Open", "", fault.Corrupt, "%s FRI entries in one manifest, where there may "+
		"be one; no record can be trusted (Lance 14.0.2 takes the first if none is tagged, else it refuses)", count))
}

// plain renders err without the operations and kinds of its outer layers and without the rule, which a Finding has
// fields for.
func plain(err error) string {
	switch e := err.(type) { //nolint:errorlint // peels one layer after the other
	case *fault.Error:
		if e.Err == nil {
			return err.Error()
		}
		if e.Path != "" {
			return e.Path + ": " + plain(e.Err)
		}
		return plain(e.Err)
	case *ruleError:
		return plain(e.err)
	default:
		return err.Error()
	}
}
