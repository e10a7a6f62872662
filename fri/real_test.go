package fri_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/testdata"
)

// expectedVersions is the part of a dataset's expectation that describes its FRI entries as Lance decodes them.
type expectedVersions struct {
	Versions []struct {
		Version    uint64 `json:"version"`
		IndicesRaw []struct {
			Name string       `json:"name"`
			FRI  *expectedFRI `json:"fri"`
		} `json:"indices_raw"`
	} `json:"versions"`
}

type expectedFRI struct {
	Storage      string `json:"storage"`
	ContentBytes int64  `json:"content_bytes"`
	Records      []struct {
		Stamp  uint64 `json:"stamp"`
		Groups []struct {
			Old       [][3]uint64 `json:"old"`
			New       [][3]uint64 `json:"new"`
			Survivors uint64      `json:"survivors"`
		} `json:"groups"`
		Sources      [][3]uint64 `json:"sources"`
		Destinations [][3]uint64 `json:"destinations"`
		Mapping      string      `json:"mapping"`
		Survivors    uint64      `json:"survivors"`
		MapID        string      `json:"map_id"`
		MapSize      uint64      `json:"map_size_bytes"`
		BaseID       *uint32     `json:"base_id"`
	} `json:"records"`
}

// lines renders the records in wire order.
func (e *expectedFRI) lines() []string {
	var out []string
	for _, r := range e.Records {
		for _, g := range r.Groups {
			out = append(out, fmt.Sprintf("legacy stamp %d %v -> %v survivors %d", r.Stamp, g.Old, g.New, g.Survivors))
		}
		if r.Mapping == "" {
			continue
		}
		s := fmt.Sprintf("%s %v -> %v", r.Mapping, r.Sources, r.Destinations)
		if r.Mapping == "ordered_compaction" {
			s += fmt.Sprintf(" survivors %d", r.Survivors)
		} else {
			s += fmt.Sprintf(" map %s of %d bytes in %s", r.MapID, r.MapSize, base(r.BaseID))
		}
		out = append(out, s)
	}
	return out
}

func base(id *uint32) string {
	if id == nil {
		return "the dataset"
	}
	return fmt.Sprintf("base %d", *id)
}

// decoded renders the records of a history in the same way.
func decoded(h *fri.History) []string {
	triples := func(ds []fri.Digest) [][3]uint64 {
		out := [][3]uint64{}
		for _, d := range ds {
			out = append(out, [3]uint64{d.ID, d.PhysicalRows, d.DeletedRows})
		}
		return out
	}
	out := make([]string, len(h.Transitions))
	for _, t := range h.Transitions {
		s := fmt.Sprintf("%v -> %v", triples(t.Sources), triples(t.Destinations))
		switch {
		case t.Form == fri.Legacy:
			s = fmt.Sprintf("legacy stamp %d %s survivors %d", t.Legacy.DatasetVersion, s, t.Survivors.Total())
		case t.Kind == fri.OrderedCompaction:
			s = fmt.Sprintf("%s %s survivors %d", t.Kind, s, t.Survivors.Total())
		default:
			s = fmt.Sprintf("%s %s map %s of %d bytes in %s", t.Kind, s, t.Partition.MapID, t.Partition.SizeBytes, base(t.Partition.BaseID))
		}
		out[t.Record-1] = s
	}
	return out
}

// TestRealHistories opens the FRI entry of every described version of every real dataset and compares it with what
// Lance's own decoder gave. Real histories give no error and no warning, and every payload obeys the format.
func TestRealHistories(t *testing.T) {
	cache := fri.NewCache(1 << 20)
	opened := 0
	for _, name := range append(testdata.Names(t, "legacy"), testdata.Names(t, "tagged")...) {
		if strings.HasPrefix(name, "legacy/lookalike") {
			continue // its only entry of the name is a user index
		}
		dir := testdata.Dataset(t, name)
		data, err := os.ReadFile(strings.TrimSuffix(dir, ".lance") + ".expected.json")
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var want expectedVersions
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		paths := manifests(t, dir)
		for _, v := range want.Versions {
			for _, ix := range v.IndicesRaw {
				if ix.FRI == nil || paths[v.Version] == "" {
					continue
				}
				opened++
				h := openManifest(t, dir, paths[v.Version], cache)
				if h == nil || h.Broken != nil || len(h.Errors)+len(h.Warnings) > 0 || h.Opaque {
					t.Errorf("%s version %d: %v", name, v.Version, h)
					if h != nil {
						t.Log(dump(h))
					}
					continue
				}
				if got, want := decoded(h), ix.FRI.lines(); !slices.Equal(got, want) {
					t.Errorf("%s version %d:\n got %s\nwant %s", name, v.Version, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
				}
				if h.Size != ix.FRI.ContentBytes {
					t.Errorf("%s version %d: got %d bytes, want %d", name, v.Version, h.Size, ix.FRI.ContentBytes)
				}
				for _, tr := range h.Transitions {
					if tr.Survivors == nil {
						continue
					}
					if err := tr.Survivors.Verify(t.Context()); err != nil {
						t.Errorf("%s version %d record %d: %v", name, v.Version, tr.Record, err)
					}
				}
			}
		}
	}
	if opened < 140 {
		t.Errorf("only %d histories were opened", opened)
	}
	if s := cache.Stats(); s.Hits == 0 || s.Bytes > 1<<20 {
		t.Errorf("cache: %+v", s)
	}
}

// TestCloneKeepsID checks that a record keeps its id when a clone gives its row map a base_id.
func TestCloneKeepsID(t *testing.T) {
	ids := map[string]string{}
	for _, name := range []string{"tagged/clone_source", "tagged/clone"} {
		dir := testdata.Dataset(t, name)
		h := openManifest(t, dir, newest(t, dir), nil)
		for _, tr := range h.Transitions {
			if tr.Partition == nil {
				continue
			}
			id, err := tr.ID(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if old, ok := ids[tr.Partition.MapID]; ok && old != id {
				t.Errorf("map %s: id %s in the source, %s in the clone", tr.Partition.MapID, old, id)
			} else if ok {
				return
			}
			ids[tr.Partition.MapID] = id
		}
	}
	t.Error("the clone shares no record with its source")
}
