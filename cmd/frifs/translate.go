package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// translateBatch is how many addresses are translated at a time.
const translateBatch = 65536

const translateHelp = `Tells where rows are now. ADDR is a row address: a u64, or fragment:offset. Addresses come from
the command line or, one a line, from a file (- is stdin); the answers keep their order, and duplicates.

The output is CSV with the columns row_addr,outcome,new_row_addr. Outcomes:
  same          the row is where it was
  moved         rewrites moved it to new_row_addr
  deleted_now   it is (or moved to) new_row_addr, and deleted there
  dropped       it had been deleted before a rewrite
  dangling      its fragment is gone, and no recorded rewrite says where to
  out_of_range  there is no such row in its fragment
  unresolved    a record or mapping that is needed is missing, unknown or broken
The exit code is 0 whatever the outcomes; a bad ADDR is named with its line and exits 2.

With --inverse, ADDR is an address in this version, and the answer is where the row was before all
recorded rewrites: the third column is old_row_addr then.`

func newTranslateCmd() *cobra.Command {
	var t target
	var from string
	var inverse, trace bool
	format := newChoice("csv", "json", "table")
	cmd := &cobra.Command{
		Use:   "translate URI ADDR...",
		Short: "Tell where rows are now, by their old addresses",
		Long:  translateHelp,
		Example: `  frifs translate /data/t.lance 1:17 4294967314
  frifs translate /data/t.lance --from-file old.txt > new.csv
  cut -d, -f1 rows.csv | frifs translate /data/t.lance --from-file -
  frifs translate /data/t.lance --inverse 13:5
  frifs translate /data/t.lance --trace 1:17`,
		Args: args(1, -1, "URI ADDR..."),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			switch {
			case from == "" && len(args) == 1:
				return usagef("no address given: pass ADDR... or --from-file")
			case from != "" && len(args) > 1:
				return usagef("give addresses or --from-file, not both")
			}
			if trace && cmd.Flags().Changed("format") && format.word == "csv" {
				return usagef("--trace: there is no csv form; use --format json or table")
			}
			in, closer, err := addrInput(cmd, from, args[1:])
			if err != nil {
				return err
			}
			defer closer()
			s, err := t.table(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.close()
			tr, err := s.translator(cmd.Context())
			if err != nil {
				return t.olderVersion(cmd.Context(), s, err)
			}
			if trace {
				return traceAll(cmd.Context(), tr, in, inverse, format.word, cmd.OutOrStdout())
			}
			bar := newProgress(cmd.ErrOrStderr(), "addresses", 0)
			if isTerminal(cmd.OutOrStdout()) {
				bar = newProgress(io.Discard, "", 0) // the answers show how far it is
			}
			defer bar.done()
			return translateAll(cmd.Context(), tr, in, inverse, format.word, cmd.OutOrStdout(), bar)
		}),
	}
	t.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&from, "from-file", "", "read addresses from `FILE`, one a line; - is stdin")
	f.BoolVar(&inverse, "inverse", false, "from addresses in this version back to the earliest recorded ones")
	f.BoolVar(&trace, "trace", false, "show every rewrite on the way")
	f.Var(format, "format", "`form` of the output: csv, json or table")
	return cmd
}

// addrSource gives addresses in batches, as addrReader.next does.
type addrSource interface {
	next(batch []fri.RowAddr) (int, error)
}

// addrList is an addrSource of addresses at hand.
type addrList struct{ addrs []fri.RowAddr }

func (a *addrList) next(batch []fri.RowAddr) (int, error) {
	n := copy(batch, a.addrs)
	a.addrs = a.addrs[n:]
	if len(a.addrs) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func addrInput(cmd *cobra.Command, from string, list []string) (addrSource, func(), error) {
	switch from {
	case "":
		l := &addrList{}
		for i, s := range list {
			a, err := parseAddr([]byte(s))
			if err != nil {
				return nil, nil, usagef("address %d: %q %v; an address is a u64 or fragment:offset", i+1, s, err)
			}
			l.addrs = append(l.addrs, a)
		}
		return l, func() {}, nil
	case "-":
		return newAddrReader("stdin", cmd.InOrStdin()), func() {}, nil
	}
	f, err := os.Open(from)
	if err != nil {
		return nil, nil, fault.Wrap("translate", "", err)
	}
	return newAddrReader(from, f), func() { _ = f.Close() }, nil
}

// translateAll translates all of in, batch by batch. What comes before a bad line is answered before the error.
func translateAll(ctx context.Context, tr *translate.Translator, in addrSource, inverse bool, format string, out io.Writer, bar *progress) error {
	addrs := make([]fri.RowAddr, translateBatch)
	res := translate.Results{New: make([]fri.RowAddr, translateBatch), Outcome: make([]translate.Outcome, translateBatch)}
	w := newAnswerWriter(format, inverse)
	if err := w.begin(out); err != nil {
		return err
	}
	for {
		n, end := in.next(addrs)
		if n > 0 {
			part := translate.Results{New: res.New[:n], Outcome: res.Outcome[:n]}
			work := tr.Translate
			if inverse {
				work = tr.Inverse
			}
			if err := work(ctx, addrs[:n], &part); err != nil {
				return err
			}
			if err := w.write(out, addrs[:n], &part); err != nil {
				return err
			}
			bar.add(n)
		}
		switch {
		case errors.Is(end, io.EOF):
			return w.end(out)
		case end != nil:
			return errors.Join(w.end(out), end)
		}
	}
}

// traceAll shows the way of each address.
func traceAll(ctx context.Context, tr *translate.Translator, in addrSource, inverse bool, format string, out io.Writer) error {
	addrs := make([]fri.RowAddr, 256)
	first := true
	for {
		n, end := in.next(addrs)
		for _, a := range addrs[:n] {
			work := tr.Trace
			if inverse {
				work = tr.TraceBack
			}
			hops, outcome, last, err := work(ctx, a)
			if err != nil {
				return err
			}
			r := traced{addr: a, hops: hops, outcome: outcome, last: last, inverse: inverse}
			b := r.table()
			if format == "json" {
				b = r.json(first)
			}
			first = false
			if _, err := out.Write(b); err != nil {
				return err
			}
		}
		if end == nil {
			continue
		}
		if format == "json" {
			closing := "\n]\n"
			if first {
				closing = "[]\n"
			}
			if _, err := fmt.Fprint(out, closing); err != nil {
				return err
			}
		}
		if errors.Is(end, io.EOF) {
			return nil
		}
		return end
	}
}
