package nodes

import (
	"context"
	"strconv"
)

// fragmentsCSV is fragments.csv: one line per fragment in manifest order; unknown counts are empty fields.
func (n version) fragmentsCSV(ctx context.Context) (*document, error) {
	l, err := n.load(ctx)
	if err != nil {
		return nil, err
	}
	frags := l.m.Fragments()
	d := &document{}
	d.pieces = append(d.pieces,
		piece{n: 1, fn: func(e *enc, _ int) {
			e.b = append(e.b, "fragment,physical_rows,deleted_rows,live_rows,data_files,bytes\n"...)
		}},
		piece{n: len(frags), fn: func(e *enc, i int) {
			f := frags[i]
			e.b = strconv.AppendUint(e.b, f.RecordedID(), 10)
			for _, v := range []*uint64{f.PhysicalRows, f.DeletedRows, f.LiveRows()} {
				e.b = append(e.b, ',')
				if v != nil {
					e.b = strconv.AppendUint(e.b, *v, 10)
				}
			}
			e.b = append(e.b, ',')
			e.b = strconv.AppendInt(e.b, int64(f.NumFiles()), 10)
			e.b = append(e.b, ',')
			if size := f.Bytes(); size != nil {
				e.b = strconv.AppendUint(e.b, *size, 10)
			}
			e.b = append(e.b, '\n')
		}})
	return d, nil
}
