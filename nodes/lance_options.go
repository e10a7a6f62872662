package nodes

import (
	"slices"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
)

// lanceParts is what the tree keeps for remapped.lance of its versions, by the identity of the manifest.
type lanceParts struct {
	leave   leaveOuts
	entries *flight[string, *lanceEntries]
	plans   *flight[string, *lancePlan]
	kept    *flight[string, []indexfile.Kept]
}

// newLanceParts checks the settings of cfg. Errors are fault.Invalid.
func newLanceParts(cfg Config) (*lanceParts, error) {
	leave, err := newLeaveOuts(cfg.ForReader, cfg.OmitIndex)
	if err != nil {
		return nil, err
	}
	wait := cfg.OpTimeout / 2
	return &lanceParts{
		leave:   leave,
		entries: newFlight[string, *lanceEntries](cfg.Memory/32, wait, cfg.Now),
		plans:   newFlight[string, *lancePlan](cfg.Memory/16, wait, cfg.Now),
		kept:    newFlight[string, []indexfile.Kept](cfg.Memory/16, wait, cfg.Now),
	}, nil
}

// leaveOuts is what remapped.lance leaves out because the user said so.
type leaveOuts struct {
	types map[string]bool // index types
	names map[string]bool // types in upper case, or names of indices as they are
	label string          // names the options; part of the new uuids
}

// oldReaders is the last release that fails on every filter while a table lists an index of a type that it does not know.
var oldReaders = [3]uint64{2, 0, 1}

// newLeaveOuts checks Config.ForReader and Config.OmitIndex. Errors are fault.Invalid.
func newLeaveOuts(forReader string, omit []string) (leaveOuts, error) {
	const op = "nodes.New"
	o := leaveOuts{types: map[string]bool{}, names: map[string]bool{}}
	if forReader != "" {
		v, ok := parseRelease(forReader)
		if !ok {
			return o, fault.New(op, "", fault.Invalid, "%q is no Lance release; give it as 2.0.1", forReader)
		}
		if slices.Compare(v[:], oldReaders[:]) <= 0 {
			for _, typ := range []string{"FM", "RTREE", "JSON", "MINHASH_LSH"} {
				o.types[typ] = true
			}
		}
		o.label = "for reader " + strings.Join([]string{strconv.FormatUint(v[0], 10), strconv.FormatUint(v[1], 10), strconv.FormatUint(v[2], 10)}, ".")
	}
	for _, name := range omit {
		if name == "" {
			return o, fault.New(op, "", fault.Invalid, "an empty name says of no index that it is to be left out")
		}
		// A name may hold a comma; a list of names is more likely.
		for _, name := range append(strings.Split(name, ","), name) {
			o.names[name] = true
			if typ := knownType(name); typ != "" {
				o.types[typ] = true
			}
		}
	}
	sorted := slices.Clone(omit)
	slices.Sort(sorted)
	for _, name := range slices.Compact(sorted) {
		o.label += "\nomit " + strconv.Quote(name)
	}
	return o, nil
}

// knownType is the index type that a user means; "" for what is none.
func knownType(name string) string {
	switch typ := strings.ToUpper(name); typ {
	case "BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "INVERTED", "VECTOR", "FM", "RTREE", "MINHASH_LSH", "ZONEMAP", "BLOOMFILTER", "JSON":
		return typ
	case "FTS":
		return "INVERTED"
	case "MINHASH", "MINHASHLSH":
		return "MINHASH_LSH"
	case "LABELLIST":
		return "LABEL_LIST"
	}
	return ""
}

// has reports whether an entry is to be left out.
func (o *leaveOuts) has(ix *dataset.Index) bool { return o.types[ix.Type] || o.names[ix.Name] }

// parseRelease reads a release number of three parts; what follows a dash ("-beta.4") is not looked at.
func parseRelease(s string) (v [3]uint64, ok bool) {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "-")
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 32)
		if err != nil || p != strconv.FormatUint(n, 10) {
			return v, false
		}
		v[i] = n
	}
	return v, true
}
