package nodes

import (
	"context"
	"strings"
)

// UnusedOmissions returns those of Config.OmitIndex that name no index of one retained version, nil for the latest, neither
// by name nor by type: a slip of the pen, or an index that only other versions have. For a database it returns none.
// Errors are those of reading the manifest.
func (t *Tree) UnusedOmissions(ctx context.Context, number *uint64) ([]string, error) {
	if len(t.cfg.OmitIndex) == 0 || t.db != nil {
		return nil, nil
	}
	n, err := t.version(ctx, number)
	if err != nil {
		return nil, err
	}
	l, err := n.load(ctx)
	if err != nil {
		return nil, err
	}
	used := func(name string) bool {
		typ := knownType(name)
		for _, ix := range l.m.Indices {
			if ix.Name == name || (typ != "" && ix.Type == typ) {
				return true
			}
		}
		return false
	}
	var out []string
	for _, given := range t.cfg.OmitIndex {
		if used(given) {
			continue
		}
		for _, name := range strings.Split(given, ",") {
			if !used(name) {
				out = append(out, name)
			}
		}
	}
	return out, nil
}
