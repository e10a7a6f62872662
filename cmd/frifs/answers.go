package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// answerWriter prints translated addresses. It formats a batch into one buffer and writes that.
type answerWriter struct {
	format string
	result string // name of the third column
	buf    []byte
	any    bool // json: something was printed
}

func newAnswerWriter(format string, inverse bool) *answerWriter {
	w := &answerWriter{format: format, result: "new"}
	if inverse {
		w.result = "old"
	}
	return w
}

func (w *answerWriter) begin(out io.Writer) error {
	var err error
	switch w.format {
	case "csv":
		_, err = fmt.Fprintf(out, "row_addr,outcome,%s_row_addr\n", w.result)
	case "table":
		_, err = fmt.Fprintf(out, "%-24s %-13s %s\n", "address", "outcome", w.result+" address")
	}
	return err
}

func (w *answerWriter) write(out io.Writer, addrs []fri.RowAddr, r *translate.Results) error {
	b := w.buf[:0]
	for i, a := range addrs {
		o, na := r.Outcome[i], r.New[i]
		switch w.format {
		case "csv":
			b = strconv.AppendUint(b, uint64(a), 10)
			b = append(b, ',')
			b = append(b, o.String()...)
			b = append(b, ',')
			if o.HasAddress() {
				b = strconv.AppendUint(b, uint64(na), 10)
			}
			b = append(b, '\n')
		case "json":
			b = append(b, jsonOpen(!w.any)...)
			w.any = true
			b = append(b, '{')
			b = appendJSONAddr(b, "", a, true)
			b = append(b, `, "outcome": "`...)
			b = append(b, o.String()...)
			b = append(b, `", `...)
			b = appendJSONAddr(b, w.result+"_", na, o.HasAddress())
			b = append(b, '}')
		default:
			s := ""
			if o.HasAddress() {
				s = a2s(na)
			}
			b = fmt.Appendf(b, "%-24s %-13s %s\n", a2s(a), o, s)
		}
	}
	w.buf = b
	_, err := out.Write(b)
	return err
}

func (w *answerWriter) end(out io.Writer) error {
	if w.format != "json" {
		return nil
	}
	closing := "\n]\n"
	if !w.any {
		closing = "[]\n"
	}
	_, err := io.WriteString(out, closing)
	return err
}

// jsonOpen is what stands before an element of the array.
func jsonOpen(first bool) string {
	if first {
		return "[\n  "
	}
	return ",\n  "
}

// appendJSONAddr appends an address as docs/DESIGN.md, "Text formats" wants it: a string, with fragment and offset
// beside it as numbers; three nulls where there is none.
func appendJSONAddr(b []byte, prefix string, a fri.RowAddr, have bool) []byte {
	key := func(name string) {
		b = append(b, '"')
		b = append(b, prefix...)
		b = append(b, name...)
		b = append(b, `": `...)
	}
	if !have {
		key("row_addr")
		b = append(b, "null, "...)
		key("fragment")
		b = append(b, "null, "...)
		key("offset")
		return append(b, "null"...)
	}
	key("row_addr")
	b = append(b, '"')
	b = strconv.AppendUint(b, uint64(a), 10)
	b = append(b, `", `...)
	key("fragment")
	b = strconv.AppendUint(b, uint64(a.Frag()), 10)
	b = append(b, ", "...)
	key("offset")
	return strconv.AppendUint(b, uint64(a.Offset()), 10)
}

// a2s shows an address to a person: both forms.
func a2s(a fri.RowAddr) string {
	return fmt.Sprintf("%d (%v)", uint64(a), a)
}

// traced is one address with its way.
type traced struct {
	addr, last fri.RowAddr
	hops       []translate.Hop
	outcome    translate.Outcome
	inverse    bool
}

// table shows the way for a person: the address, a line for each rewrite, the end.
func (r traced) table() []byte {
	b := fmt.Appendf(nil, "%s\n", a2s(r.addr))
	for _, h := range r.hops {
		b = fmt.Appendf(b, "  transition %04d: %v", h.Seq, h.From)
		switch {
		case h.Outcome == translate.Moved:
			b = fmt.Appendf(b, " → %v\n", h.To)
		case h.Err != nil:
			b = fmt.Appendf(b, " %v: %s\n", h.Outcome, plain(h.Err))
		default:
			b = fmt.Appendf(b, " %v\n", h.Outcome)
		}
	}
	word := "now"
	if r.inverse {
		word = "at first"
	}
	if r.outcome.HasAddress() {
		return fmt.Appendf(b, "  %v: %s %s\n", r.outcome, word, a2s(r.last))
	}
	return fmt.Appendf(b, "  %v\n", r.outcome)
}

// json shows the way as one element of an array.
func (r traced) json(first bool) []byte {
	b := []byte(jsonOpen(first) + "{")
	b = appendJSONAddr(b, "", r.addr, true)
	b = append(b, `, "hops": [`...)
	for i, h := range r.hops {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = fmt.Appendf(b, `{"seq": %d, `, h.Seq)
		b = appendJSONAddr(b, "from_", h.From, true)
		b = append(b, ", "...)
		b = appendJSONAddr(b, "to_", h.To, h.Outcome == translate.Moved)
		b = fmt.Appendf(b, `, "outcome": %q, "error": `, h.Outcome.String())
		if h.Err != nil {
			b = append(b, jsonString(h.Err.Error())...)
		} else {
			b = append(b, "null"...)
		}
		b = append(b, '}')
	}
	result := "new_"
	if r.inverse {
		result = "old_"
	}
	b = fmt.Appendf(b, `], "outcome": %q, `, r.outcome.String())
	b = appendJSONAddr(b, result, r.last, r.outcome.HasAddress())
	return append(b, '}')
}
