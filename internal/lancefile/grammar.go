package lancefile

import (
	"fmt"
	"strings"

	"github.com/frifs/frifs/internal/pb"
)

// The type URLs of page encodings, after the last slash.
const (
	url20     = "lance.encodings.ArrayEncoding"
	url21     = "lance.encodings21.PageLayout"
	urlPlanar = "lance.encodings23.PlanarLayout"
)

// base is the type name of a type URL.
func base(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// buildPage chooses the grammar of a page: by the file version, and in 2.3 by the page's type URL, since two
// incompatible grammars carry that version (docs/FORMAT.md, "Lance file").
func buildPage[T Element](c *Column[T], p *pageInfo, e *encoding) (decoder[T], error) {
	cd := &codec{zstd: &c.file.zstd, version: c.file.foot.version}
	switch v := c.file.foot.version; {
	case v == V20 && e.array != nil:
		return buildArray[T](p, e.array)
	case v >= V21 && e.layout != nil:
		return buildLayout[T](cd, p, e.layout)
	case v == V23 && e.planar != nil:
		cd.planar = true
		return buildPlanar[T](cd, p, e.planar)
	}
	return nil, &unknownError{what: "encoding", detail: fmt.Sprintf("page of type %q in a file of version %s", e.url, c.file.foot.version)}
}

// leafLayer checks that a page is a plain leaf and reports whether it may hold nulls.
func leafLayer(layers []pb.RepDefLayer) (nullable bool, err error) {
	if len(layers) == 0 {
		return false, fmt.Errorf("page without layers")
	}
	if len(layers) == 1 {
		switch layers[0] {
		case pb.RepDefLayer_REPDEF_ALL_VALID_ITEM:
			return false, nil
		case pb.RepDefLayer_REPDEF_NULLABLE_ITEM:
			return true, nil
		case pb.RepDefLayer_REPDEF_UNSPECIFIED:
			return false, fmt.Errorf("page with layer 0")
		}
	}
	return false, &unknownError{what: "layers", detail: fmt.Sprintf("nested column, layers %v", layers)}
}

// buildLayout builds a page of the grammar of 2.1 and 2.2, whose differences it enforces.
func buildLayout[T Element](cd *codec, p *pageInfo, m *pb.PageLayout) (decoder[T], error) {
	switch {
	case m.GetMiniBlockLayout() != nil:
		b := m.GetMiniBlockLayout()
		if large := cd.version >= V22; b.GetHasLargeChunk() != large {
			return nil, fmt.Errorf("has_large_chunk is %v in a file of version %s", b.GetHasLargeChunk(), cd.version)
		}
		nullable, err := leafLayer(b.GetLayers())
		if err != nil {
			return nil, err
		}
		if b.GetRepCompression() != nil || b.GetRepetitionIndexDepth() != 0 {
			return nil, &unknownError{what: "layout", detail: "repetition in a flat column"}
		}
		return buildChunked[T](cd, p, chunkedSpec{
			values: b.GetValueCompression(), def: b.GetDefCompression(), dictionary: b.GetDictionary(),
			dictItems: b.GetNumDictionaryItems(), buffers: b.GetNumBuffers(), items: b.GetNumItems(),
			large: b.GetHasLargeChunk(), nullable: nullable,
		})
	case m.GetConstantLayout() != nil:
		b := m.GetConstantLayout()
		nullable, err := leafLayer(b.GetLayers())
		if err != nil {
			return nil, err
		}
		if cd.version == V21 && (b.InlineValue != nil || b.GetRepCompression() != nil || b.GetDefCompression() != nil) {
			return nil, fmt.Errorf("constant page with an inline value or compressed levels in a file of version 2.1")
		}
		return buildConstant[T](cd, p, b, nullable)
	case m.GetFullZipLayout() != nil:
		b := m.GetFullZipLayout()
		nullable, err := leafLayer(b.GetLayers())
		if err != nil {
			return nil, err
		}
		s := zippedSpec{values: b.GetValueCompression(), bits: b.GetBitsPerValue(), bitsRep: b.GetBitsRep(), bitsDef: b.GetBitsDef(),
			items: uint64(b.GetNumItems()), visible: uint64(b.GetNumVisibleItems()), nullable: nullable}
		return buildZipped[T](p, s)
	}
	return nil, unknownOf("layout", m)
}

// buildPlanar builds a page of the planar grammar: a dense page is one of the layouts above under another name, a
// sparse one has one validity layer over a constant or over nothing.
func buildPlanar[T Element](cd *codec, p *pageInfo, m *pb.PlanarLayout) (decoder[T], error) {
	v := m.GetValues()
	if v == nil {
		return nil, fmt.Errorf("planar page without values")
	}
	if s := m.GetStructure().GetSparse(); s != nil {
		return buildSparse[T](cd, p, s, v)
	}
	d := m.GetStructure().GetDense()
	if d == nil {
		if m.GetStructure() == nil {
			return nil, fmt.Errorf("planar page without structure")
		}
		return nil, unknownOf("structure", m.GetStructure())
	}
	nullable, err := leafLayer(d.GetLayers())
	if err != nil {
		return nil, err
	}
	switch {
	case v.GetChunked() != nil:
		b := v.GetChunked()
		if b.GetLevels() == nil {
			return nil, fmt.Errorf("dense chunked page without levels")
		}
		if b.GetLevels().GetRepetition() != nil || b.GetLevels().GetRepetitionIndexDepth() != 0 {
			return nil, &unknownError{what: "layout", detail: "repetition in a flat column"}
		}
		return buildChunked[T](cd, p, chunkedSpec{
			values: b.GetCompression(), def: b.GetLevels().GetDefinition(), dictionary: b.GetDictionary(),
			dictItems: b.GetNumDictionaryItems(), buffers: b.GetNumBuffers(), items: b.GetNumItems(),
			large: true, nullable: nullable,
		})
	case v.GetZipped() != nil:
		b := v.GetZipped()
		if b.GetLevels() == nil {
			return nil, fmt.Errorf("dense zipped page without levels")
		}
		s := zippedSpec{values: b.GetCompression(), bits: b.GetBitsPerValue(), bitsRep: b.GetLevels().GetBitsRepetition(), bitsDef: b.GetLevels().GetBitsDefinition(),
			items: b.GetNumItems(), visible: b.GetNumVisibleItems(), nullable: nullable}
		return buildZipped[T](p, s)
	case v.GetConstant() != nil:
		if nullable {
			return nil, fmt.Errorf("dense constant page with a nullable layer")
		}
		return scalarPage[T](p, v.GetConstant().GetScalar())
	case v.GetNone() != nil:
		if !nullable {
			return nil, fmt.Errorf("dense page without values whose layer allows no null")
		}
		if len(p.buffers) != 0 {
			return nil, fmt.Errorf("page without values has %d buffers", len(p.buffers))
		}
		return allNull[T]{}, nil
	}
	return nil, unknownOf("values", v)
}
