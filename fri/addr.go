package fri

import "strconv"

// FragID identifies a fragment of a table. Ids are never reused within a table's line of versions.
type FragID uint32

// TombstoneFrag is the fragment id that Lance reserves for "no row" (docs/FORMAT.md, "Row addresses").
const TombstoneFrag FragID = 0xFFFFFFFF

// RowAddr is a row address: the fragment id in the high 32 bits, the physical row offset in the low 32 bits. It is
// never a row id.
type RowAddr uint64

// Addr composes a row address.
func Addr(f FragID, offset uint32) RowAddr { return RowAddr(uint64(f)<<32 | uint64(offset)) }

// Frag returns the fragment id.
func (a RowAddr) Frag() FragID { return FragID(a >> 32) }

// Offset returns the physical row offset within the fragment.
func (a RowAddr) Offset() uint32 { return uint32(a) }

// String renders "fragment:offset".
func (a RowAddr) String() string {
	b := strconv.AppendUint(nil, uint64(a.Frag()), 10)
	b = append(b, ':')
	return string(strconv.AppendUint(b, uint64(a.Offset()), 10))
}
