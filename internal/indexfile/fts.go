package indexfile

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/lancefile"
)

const (
	ftsMetadata       = "metadata.lance"
	deletedFragments  = "deleted_fragments" // its only column: a portable 32-bit Roaring bitmap
	maxFragmentBitmap = 64 << 20            // bytes of that bitmap
)

// ftsFacts is what the documents of a full-text index need to know of its metadata.lance. A failure to read it is not
// remembered.
type ftsFacts struct {
	mu      sync.Mutex // held while the file is read: the partitions of a segment wait for the first of them
	read    bool
	blocked *roaring.Bitmap
}

// blockedFragments tells the stored fragments whose documents readers ignore, whatever became of their rows; nil = none.
// The legacy form of the index has no such list.
func (s *Segment) blockedFragments(ctx context.Context) (*roaring.Bitmap, error) {
	if s.fts == nil {
		return nil, nil
	}
	s.fts.mu.Lock()
	defer s.fts.mu.Unlock()
	if s.fts.read {
		return s.fts.blocked, nil
	}
	b, err := readBlocked(ctx, s)
	if err != nil {
		return nil, err
	}
	s.fts.blocked, s.fts.read = b, true
	return b, nil
}

func readBlocked(ctx context.Context, s *Segment) (blocked *roaring.Bitmap, err error) {
	err = s.withFile(ctx, ftsMetadata, func(f *lancefile.File) error {
		blocked, err = decodeBlocked(ctx, f)
		return err
	})
	return blocked, err
}

func decodeBlocked(ctx context.Context, f *lancefile.File) (*roaring.Bitmap, error) {
	column, _, err := f.Column(deletedFragments)
	if fault.Is(err, fault.NotFound) || err == nil && f.Rows() == 0 {
		return nil, nil // releases before 4 wrote no columns
	}
	if err != nil {
		return nil, err
	}
	cells, err := lancefile.OpenCells(ctx, f, column)
	if err != nil {
		return nil, err
	}
	all := roaring.New()
	err = cells.Read(ctx, 0, f.Rows(), func(row uint64, cell []byte, null bool) error {
		if null {
			return nil
		}
		if len(cell) > maxFragmentBitmap {
			return fault.New("indexfile.Open", "", fault.TooLarge, "%s of row %d has %d bytes, over %d", deletedFragments, row, len(cell), maxFragmentBitmap)
		}
		b, err := dataset.DecodeBitmap(cell)
		if err != nil {
			return fault.New("indexfile.Open", "", fault.Corrupt, "%s of row %d: %w", deletedFragments, row, err)
		}
		all.Or(b)
		return nil
	})
	if err != nil || all.IsEmpty() {
		return nil, err
	}
	return all, nil
}

// describeFTS tells format version, partitions and what postings hold.
func (s *Segment) describeFTS(ctx context.Context) ([]Fact, error) {
	if s.fts == nil {
		return []Fact{{"format", "legacy: one set of postings, with row addresses as document ids"}}, nil
	}
	var facts []Fact
	err := s.withFile(ctx, ftsMetadata, func(f *lancefile.File) error {
		facts = ftsFactsOf(f)
		return nil
	})
	return facts, err
}

func ftsFactsOf(f *lancefile.File) []Fact {
	facts := metadataFacts(f, "format_version", "token_set_format", "posting_tail_codec", "posting_block_size", "positions_layout", "positions_codec")
	if v, ok := f.Metadata("partitions"); ok {
		var ids []json.Number
		if json.Unmarshal(v, &ids) == nil {
			facts = append(facts, countFact("partitions", len(ids)))
		}
	}
	if v, ok := f.Metadata("params"); ok {
		var p struct {
			WithPosition *bool  `json:"with_position"`
			Base         string `json:"base_tokenizer"`
			Language     string
		}
		if json.Unmarshal(v, &p) == nil {
			if p.WithPosition != nil {
				facts = append(facts, boolFact("with_position", *p.WithPosition))
			}
			facts = append(facts, Fact{"base_tokenizer", p.Base}, Fact{"language", p.Language})
		}
	}
	return facts
}
