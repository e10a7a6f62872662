package main

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
)

func TestParseAddr(t *testing.T) {
	tests := []struct {
		in   string
		want fri.RowAddr
		ok   bool
	}{
		{"0", 0, true},
		{"17", 17, true},
		{"4294967313", fri.Addr(1, 17), true},
		{"1:17", fri.Addr(1, 17), true},
		{"4294967295:4294967295", math.MaxUint64, true},
		{"18446744073709551615", math.MaxUint64, true},
		{"007", 7, true},
		{"18446744073709551616", 0, false},
		{"99999999999999999999999", 0, false},
		{"4294967296:0", 0, false},
		{"0:4294967296", 0, false},
		{"", 0, false},
		{":", 0, false},
		{"1:", 0, false},
		{":1", 0, false},
		{"1:2:3", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{" 1", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"１", 0, false},
	}
	for _, tc := range tests {
		got, err := parseAddr([]byte(tc.in))
		if (err == nil) != tc.ok || tc.ok && got != tc.want {
			t.Errorf("%q: got %v, %v; want %v, %v", tc.in, got, err, tc.want, tc.ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := fri.RowAddr(rapid.Uint64().Draw(t, "address"))
		if got, err := parseAddr([]byte(a.String())); err != nil || got != a {
			t.Fatalf("%v: got %v, %v", a, got, err)
		}
	})
}

func FuzzParseAddr(f *testing.F) {
	for _, s := range []string{"0", "1:2", "18446744073709551615", "x", ":", "4294967296:1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAddr(b)
		if err != nil {
			return
		}
		again, err := parseAddr([]byte(a.String()))
		if err != nil || again != a {
			t.Fatalf("%q gives %d, whose text gives %d (%v)", b, a, again, err)
		}
	})
}

func TestAddrReader(t *testing.T) {
	tests := []struct {
		name, in string
		want     []fri.RowAddr
		says     string // of the error; "" for a clean end
	}{
		{"empty", "", nil, ""},
		{"one without an end of line", "5", []fri.RowAddr{5}, ""},
		{"both forms, blanks, carriage returns", "1\r\n  1:2 \n\n\t3\n", []fri.RowAddr{1, fri.Addr(1, 2), 3}, ""},
		{"a bad line is named", "1\n2\nx y\n4\n", []fri.RowAddr{1, 2}, `in.txt, line 3: "x y" is no decimal number`},
		{"a header", "row_addr\n1\n", nil, "tail -n +2"},
		{"too large", "18446744073709551616\n", nil, "is above 18446744073709551615"},
		{"a line without end", strings.Repeat("1", 1<<20), nil, "is too long"},
	}
	for _, tc := range tests {
		for _, size := range []int{1, 2, 1000} {
			r := newAddrReader("in.txt", strings.NewReader(tc.in))
			var got []fri.RowAddr
			var err error
			for batch := make([]fri.RowAddr, size); err == nil; {
				var n int
				n, err = r.next(batch)
				got = append(got, batch[:n]...)
			}
			if tc.says == "" && !errors.Is(err, io.EOF) || tc.says != "" && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s, batch %d: got error %v, want %q", tc.name, size, err, tc.says)
			}
			if len(got) != len(tc.want) {
				t.Fatalf("%s, batch %d: got %v, want %v", tc.name, size, got, tc.want)
			}
			for i := range got {
				if got[i] != tc.want[i] {
					t.Errorf("%s, batch %d: got %v, want %v", tc.name, size, got, tc.want)
				}
			}
		}
	}
}

func TestSizeValue(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "1048576": 1 << 20, "512KiB": 512 << 10, "512 kib": 512 << 10, "1GiB": 1 << 30, "1GB": 1e9, "3M": 3 << 20, "7B": 7,
	} {
		var v sizeValue
		if err := v.Set(in); err != nil || int64(v) != want {
			t.Errorf("%q: got %d, %v; want %d", in, int64(v), err, want)
		}
	}
	for _, in := range []string{"", "x", "-1", "1.5GiB", "GiB", "99999999999TiB"} {
		var v sizeValue
		if err := v.Set(in); err == nil {
			t.Errorf("%q: got %d, want an error", in, int64(v))
		}
	}
	for n, want := range map[sizeValue]string{0: "0", 1 << 20: "1MiB", 3 << 29: "1536MiB", 1000: "1000", 2 << 30: "2GiB"} {
		if got := n.String(); got != want {
			t.Errorf("%d: got %q, want %q", int64(n), got, want)
		}
	}
}

func TestTimeValue(t *testing.T) {
	for in, want := range map[string]time.Time{
		"2026-05-04T12:30:00Z":           time.Date(2026, 5, 4, 12, 30, 0, 0, time.UTC),
		"2026-05-04T12:30:00.5+02:00":    time.Date(2026, 5, 4, 10, 30, 0, 5e8, time.UTC),
		"2026-05-04 12:30":               time.Date(2026, 5, 4, 12, 30, 0, 0, time.UTC),
		"2026-05-04":                     time.Date(2026, 5, 4, 23, 59, 59, 999999999, time.UTC),
		"2026-11-30T05:03:51.123456789Z": time.Date(2026, 11, 30, 5, 3, 51, 123456789, time.UTC),
	} {
		var v timeValue
		if err := v.Set(in); err != nil || !v.t.Equal(want) {
			t.Errorf("%q: got %v, %v; want %v", in, v.t, err, want)
		}
	}
	for _, in := range []string{"", "yesterday", "2026-13-01", "12:30"} {
		if err := new(timeValue).Set(in); err == nil {
			t.Errorf("%q: no error", in)
		}
	}
}

func TestCSVCell(t *testing.T) {
	for in, want := range map[string]string{"": "", "a b": "a b", "a,b": `"a,b"`, `say "x"`: `"say ""x"""`, "a\nb": "\"a\nb\""} {
		if got := csvCell(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// stuckWriter takes nothing until it is released.
type stuckWriter struct {
	release chan struct{}
	got     strings.Builder
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	<-w.release
	return w.got.Write(p)
}

func TestLoggingNeverWaits(t *testing.T) {
	w := &stuckWriter{release: make(chan struct{})}
	a := newAsyncWriter(w, logQueue, func(int64) string { return "log lines were dropped\n" })
	for range 3 * logQueue {
		if _, err := a.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	close(w.release)
	a.close()
	if n := strings.Count(w.got.String(), "line\n"); n < logQueue || n > logQueue+2 || !strings.Contains(w.got.String(), "log lines were dropped") {
		t.Errorf("%d lines written", n)
	}
}
