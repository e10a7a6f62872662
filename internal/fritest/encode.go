// Package fritest encodes fragment reuse histories for tests: small ones, record by record, broken ones included.
package fritest

import (
	"bytes"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fri"
)

// Record is one rewrite. Survivors is the encoded treemap of an ordered compaction; without it the record is a stable
// partition with the given map id. Extra is appended to the encoded record as it is.
type Record struct {
	Sources, Destinations []fri.Digest
	Survivors             []byte
	MapID                 string
	MapSize               uint64
	Extra                 []byte
}

// Treemap encodes survivors; with runs, containers are stored as runs where that is shorter.
func Treemap(survivors []fri.RowAddr, runs bool) []byte {
	bm := roaring64.New()
	for _, a := range survivors {
		bm.Add(uint64(a))
	}
	if runs {
		bm.RunOptimize()
	}
	var b bytes.Buffer
	if _, err := bm.WriteTo(&b); err != nil {
		panic(err) // a buffer does not fail
	}
	return b.Bytes()
}

func appendDigest(b []byte, field protowire.Number, d fri.Digest) []byte {
	var v []byte
	for i, x := range [...]uint64{d.ID, d.PhysicalRows, d.DeletedRows} {
		if x != 0 {
			v = protowire.AppendTag(v, protowire.Number(i+1), protowire.VarintType)
			v = protowire.AppendVarint(v, x)
		}
	}
	return appendMessage(b, field, v)
}

func appendMessage(b []byte, field protowire.Number, v []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, v)
}

// AppendVersion appends a legacy Version with its groups to an InlineContent message.
func AppendVersion(b []byte, stamp uint64, groups []Record) []byte {
	v := protowire.AppendTag(nil, 1, protowire.VarintType)
	v = protowire.AppendVarint(v, stamp)
	for _, g := range groups {
		m := appendMessage(nil, 1, g.Survivors)
		for _, d := range g.Sources {
			m = appendDigest(m, 2, d)
		}
		for _, d := range g.Destinations {
			m = appendDigest(m, 3, d)
		}
		v = appendMessage(v, 3, append(m, g.Extra...))
	}
	return appendMessage(b, 1, v)
}

// AppendTransition appends a tagged Transition to an InlineContent message.
func AppendTransition(b []byte, r Record) []byte {
	var m []byte
	for _, d := range r.Sources {
		m = appendDigest(m, 1, d)
	}
	for _, d := range r.Destinations {
		m = appendDigest(m, 2, d)
	}
	if r.Survivors != nil {
		m = appendMessage(m, 3, appendMessage(nil, 1, r.Survivors))
	} else {
		p := appendMessage(nil, 1, []byte(r.MapID))
		p = protowire.AppendTag(p, 2, protowire.VarintType)
		p = protowire.AppendVarint(p, r.MapSize)
		m = appendMessage(m, 4, p)
	}
	return appendMessage(b, 2, append(m, r.Extra...))
}
