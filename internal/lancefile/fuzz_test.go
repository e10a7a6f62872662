package lancefile_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

// classified fails unless an error on bad bytes says that they are bad.
func classified(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Unsupported {
		t.Fatalf("kind %v: %v", k, err)
	}
}

// readColumn reads some ranges of a column; what is read twice must be the same.
func readColumn[T lancefile.Element](t *testing.T, f *lancefile.File, i int) {
	c, err := lancefile.OpenColumn[T](t.Context(), f, i)
	if err != nil {
		classified(t, err)
		return
	}
	n := min(c.Rows(), 5000)
	for _, from := range []uint64{0, c.Rows() / 3, c.Rows() - n} {
		n := min(n, c.Rows()-from)
		a, b := make([]T, n), make([]T, n)
		x, y := make([]uint64, (n+63)/64), make([]uint64, (n+63)/64)
		seen, err := c.Read(t.Context(), from, a, x)
		if err != nil {
			classified(t, err)
			continue
		}
		again, err := c.Read(t.Context(), from, b, y)
		if err != nil || again != seen {
			t.Fatalf("second read: %d nulls, %v; first: %d", again, err, seen)
		}
		for k := range a {
			if x[k/64]>>(k%64)&1 != y[k/64]>>(k%64)&1 || (x[k/64]>>(k%64)&1 == 0 && a[k] != b[k]) {
				t.Fatalf("row %d reads %d, then %d", k, a[k], b[k])
			}
		}
	}
}

// FuzzFile reads any bytes as a file.
func FuzzFile(f *testing.F) {
	for _, name := range []string{"mini20", "mini22", "mini23"} {
		f.Add(golden(f, name))
	}
	for _, x := range forms() {
		v := x.versions[len(x.versions)-1]
		r := x.draw(rand.New(rand.NewPCG(1, 1)), 16)
		if len(r) > 100 {
			r = r[:100]
		}
		if b := fileOf(v, 16, x.page(r, 16, v)).Build().All(); len(b) < 4096 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := lancefile.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			classified(t, err)
			return
		}
		for i := range min(file.Columns(), 3) {
			readColumn[uint16](t, file, i)
			readColumn[uint64](t, file, i)
		}
	})
}

// FuzzFooter puts any bytes at the end of a good file.
func FuzzFooter(f *testing.F) {
	whole := golden(f, "mini22")
	f.Add(whole[len(whole)-40:], uint8(0))
	f.Add(whole[len(whole)-88:], uint8(10))
	f.Fuzz(func(t *testing.T, tail []byte, cut uint8) {
		b := append(bytes.Clone(whole[:len(whole)-int(cut)]), tail...)
		file, err := lancefile.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			classified(t, err)
			return
		}
		for i := range min(file.Columns(), 3) {
			readColumn[uint64](t, file, i)
		}
	})
}

// FuzzPage reads a page with any encoding message and any two buffers, in any version's grammar.
func FuzzPage(f *testing.F) {
	urls := []string{lancetest.ArrayURL, lancetest.LayoutURL, lancetest.PlanarURL}
	for _, x := range forms() {
		v := x.versions[len(x.versions)-1]
		r := x.draw(rand.New(rand.NewPCG(2, 2)), 16)
		if len(r) > 200 {
			r = r[:200]
		}
		p := x.page(r, 16, v)
		var bufs [3][]byte
		for i, b := range p.Buffers {
			bufs[i] = make([]byte, b.Size)
			b.Fill(bufs[i], 0)
		}
		kind := uint8(1)
		switch p.Encoding.(type) {
		case *pb.ArrayEncoding:
			kind = 0
		case *pb.PlanarLayout:
			kind = 2
		}
		enc, err := proto.Marshal(p.Encoding)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(v), kind, uint8(len(p.Buffers)), uint32(len(r)), enc, bufs[0], bufs[1], bufs[2])
	}
	f.Fuzz(func(t *testing.T, version, kind, buffers uint8, rows uint32, enc, a, b, c []byte) {
		v := lancefile.V20 + lancefile.Version(version%4)
		p := lancetest.Page{Rows: uint64(rows), Raw: enc, URL: urls[kind%3]}
		for _, x := range [][]byte{a, b, c}[:buffers%4] {
			p.Buffers = append(p.Buffers, lancetest.Bytes(x))
		}
		content := fileOf(v, 16, p).Build()
		file, err := lancefile.Open(t.Context(), content, content.Size())
		if err != nil {
			t.Fatal(err)
		}
		readColumn[uint16](t, file, 0)
		readColumn[uint64](t, file, 0)
	})
}
