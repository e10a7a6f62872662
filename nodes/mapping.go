package nodes

import (
	"context"
	"fmt"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// mapping opens the mapping of a usable transition: from the record itself, or from its row-map file. Mappings of row
// maps are shared by all versions that carry the record.
func (n version) mapping(ctx context.Context, l *loaded, h *history, t *fri.Transition) (rowmap.Mapping, error) {
	if t.Err != nil {
		return nil, t.Err
	}
	if t.Kind != fri.StablePartition {
		key := fmt.Sprintf("%s record %d", h.key, t.Seq)
		return n.t.maps.get(ctx, key, func(context.Context) (rowmap.Mapping, int64, error) {
			m, err := rowmap.NewOrdered(t, rowmap.Options{Cache: n.t.blocks})
			return m, 1024 + t.Length/64, err
		})
	}
	m, err := n.partition(ctx, l, t)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// partition opens the row map of a usable stable partition.
func (n version) partition(ctx context.Context, l *loaded, t *fri.Transition) (*rowmap.Partition, error) {
	loc, err := n.t.ds.RowMap(ctx, l.m, t.Partition.MapID, t.Partition.BaseID)
	if err != nil {
		return nil, err
	}
	id, err := t.ID(ctx)
	if err != nil {
		return nil, err
	}
	key := loc.URI() + "\x00" + id
	m, err := n.t.maps.get(ctx, key, func(ctx context.Context) (rowmap.Mapping, int64, error) {
		loc, r, err := loc.Open(ctx)
		if err != nil {
			return nil, 0, err
		}
		if uint64(r.Size()) != t.Partition.SizeBytes {
			_ = r.Close()
			return nil, 0, fault.New("nodes.RowMap", loc.URI(), fault.Corrupt,
				"size of the row map: the record says %d bytes, the file has %d", t.Partition.SizeBytes, r.Size())
		}
		m, err := rowmap.OpenPartition(ctx, t, r, rowmap.Options{Cache: n.t.blocks})
		if err != nil {
			_ = r.Close()
			return nil, 0, fault.Wrap("nodes.RowMap", loc.URI(), err)
		}
		return m, 64<<10 + int64(len(t.Destinations)+len(t.Sources))*64, nil
	})
	if err != nil {
		return nil, rowMapError(err)
	}
	p, ok := m.(*rowmap.Partition)
	if !ok {
		return nil, fault.New("nodes.RowMap", loc.URI(), fault.Corrupt, "the mapping is no stable partition")
	}
	return p, nil
}

// rowMapError says of a missing file that it is the row map that is missing.
func rowMapError(err error) error {
	if fault.Is(err, fault.NotFound) && !strings.Contains(err.Error(), "row map not found") {
		return fault.New("nodes.RowMap", "", fault.NotFound, "row map not found: %w", err)
	}
	return err
}
