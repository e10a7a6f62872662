package lancefile

// CellPages are the pages of a column that takes the place of the column of that number. A CellWriter or an ArrayWriter
// makes them.
type CellPages struct {
	Column int
	Pages  []CellPage
	Items  *CellPages // of a column of lists: those of the items' column, whose rows are the items; else nil
}

// CellPage is a page of cells: its buffers, and how the file describes it.
type CellPage struct {
	Rows     uint64
	first    uint64 // row of the file that it begins with
	Buffers  []Piece
	grammar  grammar
	encoding []byte // Encoding message
}

// Rows is the number of cells.
func (c *CellPages) Rows() (n uint64) {
	for _, p := range c.Pages {
		n += p.Rows
	}
	return n
}

// layCells lays the pages of a column of cells and returns its metadata.
func (p *plan) layCells(x *CellPages) ([]byte, error) {
	meta := columnMessage()
	for i, page := range x.Pages {
		if page.grammar != p.grammar {
			return nil, invalid("page %d of column %d was made for a file of another version", i, x.Column)
		}
		var buffers []span
		for _, b := range page.Buffers {
			buffers = append(buffers, p.out.buffer(b))
		}
		meta = appendPage(meta, buffers, page.Rows, page.first, page.encoding)
	}
	return meta, nil
}

// describe is the Encoding message of a page of cells.
func (k cellKind) describe(g grammar, rows, bytes uint64) []byte {
	if g == grammarArray {
		indices := message(2, message(1, message(1, message(1, appendMessage(number(1, 64), 2, nil)))))
		data := message(1, appendMessage(number(1, 8), 2, number(1, 1)))
		b := appendMessage(message(1, indices), 2, data)
		return directEncoding(arrayURL, message(6, appendNumber(b, 3, bytes+1)))
	}
	values := message(2, message(1, flatValues(k.offsetBits)))
	if k.compressed {
		// The level is written although it is 0, as Lance does.
		scheme := append(number(1, 2), 0x10, 0x00)
		values = message(10, appendMessage(message(1, scheme), 3, values))
	}
	return zipPage{rows: rows, bits: k.offsetBits, variable: true, nullable: k.nullable, values: values}.encoding(g)
}

// cellKind is what the cells of a page have in common.
type cellKind struct {
	offsetBits uint64 // 32 or 64: the length word
	compressed bool   // each value by itself, with ZSTD
	nullable   bool   // a control byte before each cell
}
