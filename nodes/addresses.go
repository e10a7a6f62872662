package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/mapcsv"
)

// addressesFile is scan/addresses.csv of a segment: a line for each stored address, in file order. A file whose role is
// not known is left out; summary.json names it.
func (at segmentAt) addressesFile(l *loaded, rel string) *mapFile {
	key := at.key("")
	return &mapFile{base: at.n.base(rel, key, l.mtime), t: at.n.t, class: C2, open: func(ctx context.Context) (mapcsv.File, error) {
		sc, err := at.scan(ctx, key)
		if err != nil {
			return nil, err
		}
		var files []mapcsv.AddressFile
		for _, f := range sc.files {
			if !f.addresses() {
				continue
			}
			files = append(files, mapcsv.AddressFile{Name: csvName(f.path), Scan: func(ctx context.Context, from mapcsv.AddressPosition) (mapcsv.AddressCursor, error) {
				c, err := sc.open(ctx, f.path, indexfile.Position(from))
				if err != nil {
					return nil, err
				}
				return c, nil
			}})
		}
		return mapcsv.Addresses(files)
	}}
}

// csvName is how the path of an index file stands in a CSV field: its elements as they are named in the tree, commas and
// quotes percent-encoded too. One that is longer than a field may be is cut as names in the tree are.
func csvName(path string) string {
	elems := strings.Split(path, "/")
	for i, e := range elems {
		elems[i] = strings.NewReplacer(",", "%2C", `"`, "%22").Replace(EncodeName(e))
	}
	name := strings.Join(elems, "/")
	if len(name) <= mapcsv.MaxAddressName {
		return name
	}
	cut := mapcsv.MaxAddressName - 9
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	for back := 1; back <= 2; back++ {
		if name[cut-back] == '%' {
			cut -= back
			break
		}
	}
	sum := sha256.Sum256([]byte(path))
	return name[:cut] + "~" + hex.EncodeToString(sum[:4])
}
