package lancefile

import "fmt"

// Array holds the values of some rows of a field. Which of the groups below is set follows from Type.
type Array struct {
	Type     string   // logical type of the field: "uint64", "string", "list", "struct", "fixed_size_list:float:32"
	Len      int      // number of values
	Validity []uint64 // bit i%64 of word i/64 is set where value i is not null; nil: no nulls

	// Numbers, dates, decimals, bools: Width bytes a value, little-endian; a bool is a byte, 0 or 1. What stands in the
	// place of a null is arbitrary.
	Width int
	Fixed []byte

	// Strings and binary values: value i is Bytes[Offsets[i]:Offsets[i+1]]. Lists: the items of list i are values
	// Offsets[i] to Offsets[i+1] of Child. There are Len+1 offsets, which ascend from Offsets[0].
	Offsets []int
	Bytes   []byte

	// Lists and fixed-size lists: the items. Value i of a fixed-size list has items i*Size to (i+1)*Size.
	Child *Array
	Size  int

	// Structs: the members, each of Len values.
	Fields []Member
}

// Member is a member of a struct.
type Member struct {
	Name  string
	Array *Array
}

// Valid reports whether value i is not null.
func (a *Array) Valid(i int) bool { return bit(a.Validity, uint64(i)) }

// Value returns the bytes of value i of an array of numbers or strings; they belong to the array.
func (a *Array) Value(i int) []byte {
	if a.Offsets != nil {
		return a.Bytes[a.Offsets[i]:a.Offsets[i+1]:a.Offsets[i+1]]
	}
	return a.Fixed[i*a.Width : (i+1)*a.Width : (i+1)*a.Width]
}

// leafArray wraps decoded values.
func leafArray(logical string, s shape, b block) *Array {
	a := &Array{Type: logical, Len: int(b.n)}
	switch {
	case s.variable:
		a.Offsets, a.Bytes = b.offsets, b.bytes
		if a.Offsets == nil {
			a.Offsets = []int{0}
		}
	case s.dim > 0:
		a.Size = int(s.dim)
		a.Child = &Array{Type: itemType(logical), Len: int(b.n * s.dim), Validity: b.valid, Width: int(s.itemBytes()), Fixed: b.fixed}
	default:
		a.Width, a.Fixed = int(s.itemBytes()), b.fixed
	}
	return a
}

// itemType is T of fixed_size_list:T:n.
func itemType(logical string) string {
	const prefix = "fixed_size_list:"
	if len(logical) <= len(prefix) {
		return ""
	}
	t := logical[len(prefix):]
	for k := len(t) - 1; k >= 0; k-- {
		if t[k] == ':' {
			return t[:k]
		}
	}
	return t
}

// append adds the values of b, an array of the same field.
func (a *Array) append(b *Array) error {
	if a.Validity != nil || b.Validity != nil {
		a.Validity = addBits(a.Validity, uint64(a.Len), b.Validity, uint64(b.Len))
	}
	if size := len(a.Fixed) + len(a.Bytes) + len(b.Fixed); size > readLimit {
		return tooLarge(uint64(size))
	}
	a.Fixed = append(a.Fixed, b.Fixed...)
	if a.Offsets != nil {
		from, to := b.Offsets[0], b.Offsets[b.Len]
		if a.Child == nil {
			if size := len(a.Bytes) + to - from; size > readLimit {
				return tooLarge(uint64(size))
			}
		}
		shift := a.Offsets[a.Len] - from
		if a.Child == nil {
			// The bytes in use may be a part of what is there.
			a.Bytes = append(a.Bytes[:a.Offsets[a.Len]], b.Bytes[from:to]...)
		}
		for _, o := range b.Offsets[1 : b.Len+1] {
			a.Offsets = append(a.Offsets, o+shift)
		}
	}
	a.Len += b.Len
	if a.Child != nil {
		if err := a.Child.append(b.Child); err != nil {
			return err
		}
	}
	for i := range a.Fields {
		if err := a.Fields[i].Array.append(b.Fields[i].Array); err != nil {
			return err
		}
	}
	return nil
}

// merge joins the arrays of one field that were read from several leaves: what they share, lists and validity, must be
// the same, and their members come one after the other.
func (a *Array) merge(b *Array) error {
	if a.Len != b.Len {
		return fmt.Errorf("%d and %d values of one field", a.Len, b.Len)
	}
	for i, o := range a.Offsets {
		if o-a.Offsets[0] != b.Offsets[i]-b.Offsets[0] {
			return fmt.Errorf("list %d ends at item %d and %d of two leaves", i-1, o, b.Offsets[i])
		}
	}
	if a.Child != nil {
		return a.Child.merge(b.Child)
	}
	for _, m := range b.Fields {
		k := len(a.Fields) - 1
		if a.Fields[k].Name != m.Name {
			a.Fields = append(a.Fields, m)
		} else if err := a.Fields[k].Array.merge(m.Array); err != nil {
			return err
		}
	}
	return nil
}
