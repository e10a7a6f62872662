package mapcsv

import (
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// TestMappingSize sizes a mapping from its digests alone; the text is short enough to be counted by hand.
func TestMappingSize(t *testing.T) {
	const header = int64(len(mappingHeader))
	for _, tc := range []struct {
		name     string
		src, dst []fri.Digest
		want     int64
		kind     fault.Kind
	}{
		{name: "nothing", want: header},
		// "0,0,0,,,\n" and "1,0,1,,,\n"
		{name: "all dropped", src: []fri.Digest{{ID: 0, PhysicalRows: 2, DeletedRows: 2}}, want: header + 18},
		// "0,0,0,4294967296,1,0\n" and "1,0,1,,,\n"
		{name: "one moved", src: []fri.Digest{{ID: 0, PhysicalRows: 2, DeletedRows: 1}},
			dst: []fri.Digest{{ID: 1, PhysicalRows: 1}}, want: header + 30},
		{name: "more arrive than there were", src: []fri.Digest{{ID: 0, PhysicalRows: 1}},
			dst: []fri.Digest{{ID: 1, PhysicalRows: 2}}, kind: fault.Corrupt},
	} {
		got, err := MappingSize(tc.src, tc.dst)
		if fault.KindOf(err) != tc.kind || err == nil && got != tc.want {
			t.Errorf("%s: got %d, %v, want %d", tc.name, got, err, tc.want)
		}
	}
}
