package fri_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fri"
)

// entry is what the tests need of one index entry of a manifest.
type entry struct {
	name, typeURL string
	uuid          string
	fields        []int32
	hasDetails    bool
	value         []byte
	indexVersion  int32
}

// rawManifest is what the tests need of a manifest.
type rawManifest struct {
	flagReader, flagWriter bool
	entries                []entry
}

// eachField calls f for each field of a well-formed message.
func eachField(tb testing.TB, msg []byte, f func(num protowire.Number, varint uint64, b []byte)) {
	tb.Helper()
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			tb.Fatalf("bad tag: %v", protowire.ParseError(n))
		}
		msg = msg[n:]
		switch typ {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(msg)
			f(num, v, nil)
			msg = msg[n:]
		case protowire.BytesType:
			b, n := protowire.ConsumeBytes(msg)
			f(num, 0, b)
			msg = msg[n:]
		default:
			n := protowire.ConsumeFieldValue(num, typ, msg)
			msg = msg[n:]
		}
	}
}

// readManifest reads a manifest file: the message and the index section before it.
func readManifest(tb testing.TB, path string) rawManifest {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	at := func(off uint64) []byte {
		n := uint64(binary.LittleEndian.Uint32(data[off:]))
		return data[off+4 : off+4+n]
	}
	var m rawManifest
	var section *uint64
	eachField(tb, at(binary.LittleEndian.Uint64(data[len(data)-16:])), func(num protowire.Number, v uint64, _ []byte) {
		switch num {
		case 6:
			section = &v
		case 9:
			m.flagReader = v&1024 != 0
		case 10:
			m.flagWriter = v&1024 != 0
		}
	})
	if section == nil {
		return m
	}
	eachField(tb, at(*section), func(num protowire.Number, _ uint64, b []byte) {
		if num == 1 {
			m.entries = append(m.entries, readEntry(tb, b))
		}
	})
	return m
}

func readEntry(tb testing.TB, msg []byte) entry {
	tb.Helper()
	var e entry
	eachField(tb, msg, func(num protowire.Number, v uint64, b []byte) {
		switch num {
		case 1:
			eachField(tb, b, func(_ protowire.Number, _ uint64, u []byte) {
				e.uuid = fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
			})
		case 2:
			e.fields = append(e.fields, int32(v))
		case 3:
			e.name = string(b)
		case 6:
			e.hasDetails = true
			eachField(tb, b, func(num protowire.Number, _ uint64, b []byte) {
				if num == 1 {
					e.typeURL = string(b)
				} else {
					e.value = b
				}
			})
		case 7:
			e.indexVersion = int32(v)
		}
	})
	return e
}

// manifests returns the paths of a dataset's manifests by version.
func manifests(tb testing.TB, dir string) map[uint64]string {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "_versions", "*.manifest"))
	if err != nil {
		tb.Fatal(err)
	}
	out := map[uint64]string{}
	for _, p := range names {
		base := strings.TrimSuffix(filepath.Base(p), ".manifest")
		v, err := strconv.ParseUint(base, 10, 64)
		if err != nil {
			continue
		}
		if len(base) == 20 {
			v = math.MaxUint64 - v
		}
		out[v] = p
	}
	return out
}

func newest(tb testing.TB, dir string) string {
	tb.Helper()
	best := uint64(0)
	all := manifests(tb, dir)
	for v := range all {
		best = max(best, v)
	}
	return all[best]
}

// openManifest does what a caller of the package does: recognise the entry, find the content, open it. nil = no FRI.
func openManifest(tb testing.TB, dir, manifest string, cache *fri.Cache) *fri.History {
	tb.Helper()
	m := readManifest(tb, manifest)
	var found []entry
	var warning string
	for _, e := range m.entries {
		r := fri.IsEntry(e.name, e.typeURL, e.hasDetails, e.fields)
		if r.Class == fri.IsFRI {
			found = append(found, e)
			warning = r.Warning
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
	default:
		return fri.TwoEntries(found[0].indexVersion, len(found))
	}
	e := found[0]
	if err := fri.CheckIndexVersion(e.indexVersion); err != nil {
		return fri.Broken(e.indexVersion, 1, err)
	}
	c, err := fri.ParseDetails(e.value)
	if err != nil {
		return fri.Broken(e.indexVersion, 0, err)
	}
	data := c.Inline
	if c.External != nil {
		if data, err = os.ReadFile(filepath.Join(dir, "_indices", e.uuid, c.External.Path)); err != nil {
			tb.Fatal(err)
		}
	}
	h, err := fri.Open(tb.Context(), bytes.NewReader(data), fri.Options{
		IndexVersion: e.indexVersion, FlagReader: m.flagReader, FlagWriter: m.flagWriter,
		External: c.External, Cache: cache, Identity: manifest,
	})
	if err != nil {
		tb.Fatal(err)
	}
	if warning != "" {
		h.AddWarning(warning)
	}
	return h
}

func dump(h *fri.History) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tagged=%v opaque=%v broken=%v unknown=%d\n", h.Tagged, h.Opaque, h.Broken, h.UnknownRecords)
	for _, t := range h.Transitions {
		fmt.Fprintf(&b, "  seq %d record %d %s %s %v -> %v err=%v\n", t.Seq, t.Record, t.Form, t.Kind, t.Sources, t.Destinations, t.Err)
	}
	for _, e := range h.Errors {
		fmt.Fprintf(&b, "  error %s\n", e)
	}
	for _, e := range h.Warnings {
		fmt.Fprintf(&b, "  warning %s\n", e)
	}
	return b.String()
}
