package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// readNode reads a whole file of the tree; for documents, not for data.
func readNode(ctx context.Context, root nodes.Dir, path string) ([]byte, error) {
	n, err := nodes.Resolve(ctx, root, path)
	if err != nil {
		return nil, err
	}
	f, ok := n.(nodes.File)
	if !ok {
		return nil, fault.Wrap("read", path, errIsDir)
	}
	a, err := f.Attr(ctx)
	if err != nil {
		return nil, err
	}
	if a.Size > math.MaxInt32 {
		return nil, fault.New("read", path, fault.TooLarge, "%d bytes are too many to hold", a.Size)
	}
	h, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	b := make([]byte, a.Size)
	n2, err := h.ReadAt(ctx, b, 0)
	return b[:n2], err
}

// readJSON decodes a JSON file of the tree into v.
func readJSON(ctx context.Context, root nodes.Dir, path string, v any) error {
	b, err := readNode(ctx, root, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fault.New("read", path, fault.Corrupt, "not the expected JSON: %w", err)
	}
	return nil
}

// table prints rows aligned in columns for a person, or as CSV for a program. Cells of CSV are quoted where they must
// be (RFC 4180); the fixed columns of this program never need it.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(out io.Writer, format string) error {
	var b []byte
	if format == "csv" {
		for _, r := range append([][]string{t.head}, t.rows...) {
			for i, c := range r {
				if i > 0 {
					b = append(b, ',')
				}
				b = append(b, csvCell(c)...)
			}
			b = append(b, '\n')
		}
		_, err := out.Write(b)
		return err
	}
	widths := make([]int, len(t.head))
	all := append([][]string{t.head}, t.rows...)
	for _, r := range all {
		for i, c := range r {
			widths[i] = max(widths[i], len([]rune(c)))
		}
	}
	for _, r := range all {
		var line strings.Builder
		for i, c := range r {
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(c)
			line.WriteString(strings.Repeat(" ", widths[i]-len([]rune(c))))
		}
		b = append(b, strings.TrimRight(line.String(), " ")...)
		b = append(b, '\n')
	}
	_, err := out.Write(b)
	return err
}

func csvCell(s string) string {
	if strings.ContainsAny(s, ",\"\r\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// jsonString is s as a JSON string.
func jsonString(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`) // never: a string marshals
	}
	return b
}

// orEmpty shows a number that may be unknown.
func orEmpty(n *uint64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatUint(*n, 10)
}

// textOr shows a text that may be unknown.
func textOr(s *string, other string) string {
	if s == nil || *s == "" {
		return other
	}
	return *s
}

// countWord writes "1 record", "3 records".
func countWord(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
