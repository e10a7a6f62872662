package lancefile

import (
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// buildValues builds the reader of a page of a leaf column of version 2.1 or later. path is the leaf and its parents,
// up to the top.
func buildValues(f *File, p *pageInfo, e *encoding, path []*field, s shape) (pageReader, nesting, error) {
	r, n, err := buildAny(f, p, e, path, s)
	if err != nil || !s.none() {
		return r, n, err
	}
	switch d := r.(type) {
	case *constantValues:
		if d.null {
			return r, n, nil
		}
	case *sparseValues:
		if d.values == nil && d.constant == nil {
			return r, n, nil
		}
	}
	return nil, n, fmt.Errorf("values in a column of nulls")
}

func buildAny(f *File, p *pageInfo, e *encoding, path []*field, s shape) (pageReader, nesting, error) {
	cd := &codec{zstd: &f.zstd, version: f.foot.version}
	switch {
	case f.foot.version == V20:
	case e.layout != nil:
		return buildLayoutValues(cd, p, e.layout, path, s)
	case f.foot.version == V23 && e.planar != nil:
		cd.planar = true
		return buildPlanarValues(cd, p, e.planar, path, s)
	}
	return nil, nesting{}, &unknownError{what: "encoding", detail: fmt.Sprintf("page of type %q in a file of version %s", e.url, f.foot.version)}
}

func buildLayoutValues(cd *codec, p *pageInfo, m *pb.PageLayout, path []*field, s shape) (r pageReader, n nesting, err error) {
	switch {
	case m.GetMiniBlockLayout() != nil:
		b := m.GetMiniBlockLayout()
		if large := cd.version >= V22; b.GetHasLargeChunk() != large {
			return nil, n, fmt.Errorf("has_large_chunk is %v in a file of version %s", b.GetHasLargeChunk(), cd.version)
		}
		if n, err = nestingOf(b.GetLayers(), path); err != nil {
			return nil, n, err
		}
		r, err = buildChunkedValues(cd, p, chunkedSpec{
			values: b.GetValueCompression(), def: b.GetDefCompression(), dictionary: b.GetDictionary(),
			dictItems: b.GetNumDictionaryItems(), buffers: b.GetNumBuffers(), items: b.GetNumItems(), large: b.GetHasLargeChunk(),
		}, b.GetRepCompression(), b.GetRepetitionIndexDepth(), n, s)
		return r, n, err
	case m.GetConstantLayout() != nil:
		b := m.GetConstantLayout()
		if n, err = nestingOf(b.GetLayers(), path); err != nil {
			return nil, n, err
		}
		if cd.version == V21 && (b.InlineValue != nil || b.GetRepCompression() != nil || b.GetDefCompression() != nil) {
			return nil, n, fmt.Errorf("constant page with an inline value or compressed levels in a file of version 2.1")
		}
		r, err = buildConstantValues(cd, p, b, n, s)
		return r, n, err
	case m.GetFullZipLayout() != nil:
		b := m.GetFullZipLayout()
		if n, err = nestingOf(b.GetLayers(), path); err != nil {
			return nil, n, err
		}
		r, err = buildZippedValues(cd, p, zippedSpec{values: b.GetValueCompression(), bits: b.GetBitsPerValue(),
			bitsRep: b.GetBitsRep(), bitsDef: b.GetBitsDef(), items: uint64(b.GetNumItems()),
			visible: uint64(b.GetNumVisibleItems())}, b.GetBitsPerOffset(), n, s)
		return r, n, err
	}
	return nil, n, unknownOf("layout", m)
}

// buildPlanarValues builds a page of the planar grammar. A dense page is one of the layouts above under another name.
func buildPlanarValues(cd *codec, p *pageInfo, m *pb.PlanarLayout, path []*field, s shape) (r pageReader, n nesting, err error) {
	v := m.GetValues()
	if v == nil {
		return nil, n, fmt.Errorf("planar page without values")
	}
	d := m.GetStructure().GetDense()
	switch {
	case m.GetStructure().GetSparse() != nil:
		return buildSparseValues(cd, p, m.GetStructure().GetSparse(), v, path, s)
	case m.GetStructure() == nil:
		return nil, n, fmt.Errorf("planar page without structure")
	case d == nil:
		return nil, n, unknownOf("structure", m.GetStructure())
	}
	if n, err = nestingOf(d.GetLayers(), path); err != nil {
		return nil, n, err
	}
	switch {
	case v.GetChunked() != nil:
		b := v.GetChunked()
		l := b.GetLevels()
		if l == nil {
			return nil, n, fmt.Errorf("dense chunked page without levels")
		}
		r, err = buildChunkedValues(cd, p, chunkedSpec{
			values: b.GetCompression(), def: l.GetDefinition(), dictionary: b.GetDictionary(),
			dictItems: b.GetNumDictionaryItems(), buffers: b.GetNumBuffers(), items: b.GetNumItems(), large: true,
		}, l.GetRepetition(), l.GetRepetitionIndexDepth(), n, s)
	case v.GetZipped() != nil:
		b := v.GetZipped()
		if b.GetLevels() == nil {
			return nil, n, fmt.Errorf("dense zipped page without levels")
		}
		r, err = buildZippedValues(cd, p, zippedSpec{values: b.GetCompression(), bits: b.GetBitsPerValue(),
			bitsRep: b.GetLevels().GetBitsRepetition(), bitsDef: b.GetLevels().GetBitsDefinition(),
			items: b.GetNumItems(), visible: b.GetNumVisibleItems()}, b.GetBitsPerOffset(), n, s)
	case v.GetConstant() != nil:
		if n.maxDef > 0 || n.lists > 0 {
			return nil, n, fmt.Errorf("dense constant page with layers %v", n.layers)
		}
		r, err = buildConstantValues(cd, p, &pb.PageLayout_Constant{InlineValue: v.GetConstant().GetScalar()}, n, s)
	case v.GetNone() != nil:
		r, err = buildConstantValues(cd, p, &pb.PageLayout_Constant{}, n, s)
	default:
		err = unknownOf("values", v)
	}
	return r, n, err
}
