package indexfile

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
)

func hexIDs(ids ...uint64) string {
	var b []byte
	for _, v := range ids {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return hex.EncodeToString(b)
}

func fmBytes(digits string) []byte {
	// Other keys, one of which holds the name of ours, stand around the string; maps are written in any order.
	return oneColumn("node_id", map[string]string{"row_ids": digits, "aa": "row_ids", "zz": strings.Repeat("0", 300)}, 1, 2, 3)
}

func TestFMFile(t *testing.T) {
	for range 4 { // the order of a map's entries differs from run to run
		for _, n := range []int{0, 1, 7, 300} {
			ids := mixed(n)
			s := memSegment("FM", map[string][]byte{"part_0_fm.lance": fmBytes(hexIDs(ids...))})
			checkShifted(t, s, "part_0_fm.lance", ids)
		}
	}
}

func TestFMRefuses(t *testing.T) {
	good := hexIDs(mixed(4)...)
	for _, c := range []struct {
		name string
		b    []byte
		kind fault.Kind
		want string
	}{
		{"no string", oneColumn("node_id", map[string]string{"row_id": good}, 1), fault.Corrupt, "row_ids"},
		{"a digit missing", fmBytes(good[1:]), fault.Corrupt, "63 hex digits"},
		{"half an address missing", fmBytes(good[8:]), fault.Corrupt, "56 hex digits"},
		{"upper case", fmBytes(good[:17] + "A" + good[18:]), fault.Corrupt, "address 1"},
		{"no hex", fmBytes(good[:63] + "g"), fault.Corrupt, "address 3"},
		{"a space", fmBytes(" " + good[1:]), fault.Corrupt, "address 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := memSegment("FM", map[string][]byte{"part_12_fm.lance": c.b}).Open(t.Context(), "part_12_fm.lance")
			if err == nil {
				var cur Cursor
				cur, err = f.Scan(t.Context(), Position{})
				noError(t, err)
				err = cur.Next(t.Context(), &Batch{}, 10)
				m, merr := f.Remap(t.Context(), shifted{}, Options{})
				noError(t, merr)
				if _, rerr := m.ReadAt(t.Context(), make([]byte, m.Size()), 0); !fault.Is(rerr, c.kind) {
					t.Errorf("reading the made file: %v", rerr)
				}
			}
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzFM(f *testing.F) {
	f.Add(fmBytes(hexIDs(mixed(9)...)))
	f.Add(fmBytes(""))
	f.Add(fmBytes(strings.Repeat("F", 16)))
	f.Add(oneColumn("node_id", nil, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		openAnything(t, "FM", "part_0_fm.lance", map[string][]byte{"part_0_fm.lance": b})
	})
}
