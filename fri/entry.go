package fri

import (
	"fmt"
	"strings"
)

// EntryName is the name of the index entry that holds the FRI.
const EntryName = "__lance_frag_reuse"

// DetailsType is the full name of the message in the entry's details.
const DetailsType = "lance.table.FragmentReuseIndexDetails"

// Class says what an index entry is to the FRI.
type Class uint8

// The classes. The zero value: the entry has another name.
const (
	NotFRI    Class = iota
	IsFRI           // name and type match
	BrokenFRI       // the name matches, the type does not or is missing, and the entry indexes no field (rule 2)
	LookAlike       // a user index that borrows the name
)

// String is "not_fri", "fri", "broken_fri" or "look_alike".
func (c Class) String() string {
	switch c {
	case IsFRI:
		return "fri"
	case BrokenFRI:
		return "broken_fri"
	case LookAlike:
		return "look_alike"
	default:
		return "not_fri"
	}
}

// Recognition is the result of IsEntry.
type Recognition struct {
	Class Class
	// Warning is empty, or names what is odd about the entry and what Lance makes of it. Of a BrokenFRI it is the
	// message of the error.
	Warning string
}

// IsEntry classifies one index entry of a manifest: its name, the type URL of its details (hasDetails false: the
// entry has none) and the fields it indexes. An entry is the FRI by name and type; the type is the part after the last
// "/" of the URL, compared without case, and a missing "/" is tolerated (docs/FORMAT.md, "FRI entry").
//
// A manifest with two entries of class IsFRI has no usable history: TwoEntries. One of class BrokenFRI has none
// either: Broken with rule 2.
func IsEntry(name, typeURL string, hasDetails bool, fields []int32) Recognition {
	if name != EntryName {
		return Recognition{}
	}
	last := typeURL[strings.LastIndexByte(typeURL, '/')+1:]
	switch {
	case hasDetails && strings.EqualFold(last, DetailsType):
		return Recognition{Class: IsFRI, Warning: oddTypeURL(typeURL, last)}
	case len(fields) > 0:
		return Recognition{Class: LookAlike, Warning: fmt.Sprintf("the user index named %s is not a fragment reuse index "+
			"(details type %q); Lance 14.0.2 can neither list the indices of this table nor filter with them", EntryName, typeURL)}
	case !hasDetails:
		return Recognition{Class: BrokenFRI, Warning: "the entry " + EntryName + " has no details"}
	default:
		return Recognition{Class: BrokenFRI, Warning: fmt.Sprintf("the details of the entry %s have type %q, want %q",
			EntryName, typeURL, "/"+DetailsType)}
	}
}

// oddTypeURL says what Lance makes of a URL that is not written the usual way; last is its part after the last "/".
func oddTypeURL(typeURL, last string) string {
	switch {
	case typeURL == "/"+DetailsType:
		return ""
	case last != DetailsType:
		return fmt.Sprintf("the type URL of the details is %q; Lance refuses another case than %q", typeURL, DetailsType)
	case last == typeURL:
		return fmt.Sprintf("the type URL of the details is %q, without a slash; Lance refuses it under index_version 0", typeURL)
	default:
		return fmt.Sprintf("the type URL of the details is %q, usually written %q; Lance reads it", typeURL, "/"+DetailsType)
	}
}
