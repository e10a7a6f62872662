package dataset

import (
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// plainName reports whether a name from a manifest is one path element that stays where it is put.
func plainName(name string) bool {
	return name != "" && !strings.ContainsRune(name, '/') && store.CheckName(name) == nil
}

// innerPath checks a relative path from a manifest: it must name something below the directory it is put into.
func innerPath(what, path, where string) error {
	if path == "" || store.CheckName(path) != nil {
		return fault.New("dataset.path", where, fault.Corrupt, "%s %q is no relative path that stays inside", what, path)
	}
	return nil
}
