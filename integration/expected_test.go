package integration

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// answer is one line of `frifs translate`, or of composed.csv.
type answer struct {
	outcome string
	addr    string // the new row address, "" for none
}

// ask asks for addresses in one run and returns an answer for each.
func ask(t testing.TB, name string, addrs []uint64) []answer {
	t.Helper()
	var in strings.Builder
	for _, a := range addrs {
		in.WriteString(strconv.FormatUint(a, 10))
		in.WriteByte('\n')
	}
	r := command(t, in.String(), exe, append([]string{"translate", testdata.Dataset(t, name), "--from-file", "-"}, rebase(t, name)...)...)
	if r.code != 0 {
		t.Fatalf("translate: exit %d: %s", r.code, r.stderr)
	}
	s := bufio.NewScanner(strings.NewReader(r.stdout))
	if s.Scan(); s.Text() != "row_addr,outcome,new_row_addr" {
		t.Fatalf("header %q", s.Text())
	}
	got := make([]answer, 0, len(addrs))
	for i := 0; s.Scan(); i++ {
		c := strings.Split(s.Text(), ",")
		if len(c) != 3 || i >= len(addrs) || c[0] != strconv.FormatUint(addrs[i], 10) {
			t.Fatalf("line %d: %q", i+2, s.Text())
		}
		got = append(got, answer{c[1], c[2]})
	}
	if len(got) != len(addrs) {
		t.Fatalf("%d answers for %d addresses", len(got), len(addrs))
	}
	return got
}

func wanted(r testdata.Row) answer {
	outcome, addr := testdata.Want(r)
	if addr == nil {
		return answer{outcome, ""}
	}
	return answer{outcome, strconv.FormatUint(*addr, 10)}
}

func datasets(t testing.TB) (names []string) {
	for _, family := range []string{"legacy", "tagged"} {
		for _, name := range testdata.Names(t, family) {
			if testdata.HasExpected(t, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) < 50 {
		t.Fatalf("only %d datasets", len(names))
	}
	return names
}

// Every address of every dataset: what frifs says is what scans of the rows found.
func TestTranslateEveryAddress(t *testing.T) {
	for _, name := range datasets(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var addrs []uint64
			var want []answer
			for r := range testdata.Expected(t, name) {
				addrs, want = append(addrs, r.Old), append(want, wanted(r))
			}
			wrong := 0
			for i, got := range ask(t, name, addrs) {
				if got != want[i] {
					if wrong++; wrong <= 3 {
						t.Errorf("%d:%d: got %v, want %v", addrs[i]>>32, uint32(addrs[i]), got, want[i])
					}
				}
			}
			if wrong > 3 {
				t.Errorf("%d of %d addresses are wrong", wrong, len(addrs))
			}
		})
	}
}

// composed.csv holds each address of each source fragment once, ascending, with the same answers.
func TestComposedEveryAddress(t *testing.T) {
	for _, name := range datasets(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(rebase(t, name), testdata.Dataset(t, name))
			var history struct {
				Present     bool
				Transitions []struct {
					Sources []struct {
						Fragment     uint64
						PhysicalRows uint64 `json:"physical_rows"`
					}
				}
			}
			if err := json.Unmarshal([]byte(frifs(t, append([]string{"cat"}, append(args, "latest/fri/history.json")...)...)), &history); err != nil {
				t.Fatal(err)
			}
			if !history.Present {
				if r := command(t, "", exe, append([]string{"cat"}, append(args, "latest/fri/scan/composed.csv")...)...); r.code != 1 || r.stdout != "" {
					t.Errorf("without a history composed.csv gives exit %d and %d bytes", r.code, len(r.stdout))
				}
				return
			}
			rows, sources := uint64(0), map[uint64]bool{}
			for _, tr := range history.Transitions {
				for _, s := range tr.Sources {
					if !sources[s.Fragment] {
						sources[s.Fragment] = true
						rows += s.PhysicalRows
					}
				}
			}
			want := map[uint64]answer{}
			for r := range testdata.Expected(t, name) {
				if sources[r.Old>>32] {
					want[r.Old] = wanted(r)
				}
			}
			_, _, sampled := testdata.Hashes(t, name)
			s := bufio.NewScanner(strings.NewReader(frifs(t, append([]string{"cat"}, append(args, "latest/fri/scan/composed.csv")...)...)))
			if s.Scan(); s.Text() != "old_row_addr,old_fragment,old_offset,new_row_addr,new_fragment,new_offset,outcome" {
				t.Fatalf("header %q", s.Text())
			}
			seen, before, known := uint64(0), uint64(0), 0
			for s.Scan() {
				c := strings.Split(s.Text(), ",")
				old, err := strconv.ParseUint(c[0], 10, 64)
				if err != nil || len(c) != 7 || seen > 0 && old <= before {
					t.Fatalf("line %d: %q after address %d", seen+2, s.Text(), before)
				}
				seen, before = seen+1, old
				if w, ok := want[old]; ok {
					known++
					if got := (answer{c[6], c[3]}); got != w {
						t.Fatalf("%s: want %v", s.Text(), w)
					}
				} else if !sampled {
					t.Fatalf("%s: there is no such address", s.Text())
				}
			}
			if seen != rows || known != len(want) {
				t.Errorf("%d lines for %d rows; %d of %d known addresses", seen, rows, known, len(want))
			}
		})
	}
}

// Where the expectation is a sample, hashes over all addresses stand for the rest.
func TestSampledHashes(t *testing.T) {
	for _, name := range []string{"tagged/big", "tagged/external"} {
		t.Run(name, func(t *testing.T) {
			all, fragments, ok := testdata.Hashes(t, name)
			if !ok {
				t.Fatal("no hashes")
			}
			total := sha256.New()
			for _, f := range fragments {
				addrs := make([]uint64, f.Rows)
				for i := range addrs {
					addrs[i] = uint64(f.Fragment)<<32 | uint64(i)
				}
				raw := make([]byte, 0, 8*f.Rows)
				for _, got := range ask(t, name, addrs) {
					last := uint64(math.MaxUint64)
					if got.addr != "" {
						n, err := strconv.ParseUint(got.addr, 10, 64)
						if err != nil {
							t.Fatal(err)
						}
						last = n
					}
					raw = binary.LittleEndian.AppendUint64(raw, last)
				}
				total.Write(raw)
				if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != f.SHA256 {
					t.Errorf("fragment %d: hash %x, want %s", f.Fragment, sum, f.SHA256)
				}
			}
			if got := fmt.Sprintf("%x", total.Sum(nil)); got != all {
				t.Errorf("hash over all addresses: %s, want %s", got, all)
			}
		})
	}
}
