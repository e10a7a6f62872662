package fri_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"log"

	"github.com/frifs/frifs/fri"
)

// A tagged history with one ordered compaction: fragment 10 (8 rows, offsets 2 and 5 deleted) and fragment 11 (4 rows)
// were rewritten to fragment 200.
const exampleContent = "125d0a06080a100818020a04080b1004120508c801100a1a460a4402000000000000000a0000003a300000010000000000050010000000" +
	"0000010003000400060007000b0000003a3000000100000000000300100000000000010002000300"

func ExampleOpen() {
	content, err := hex.DecodeString(exampleContent)
	if err != nil {
		log.Fatal(err)
	}
	h, err := fri.Open(context.Background(), bytes.NewReader(content), fri.Options{
		IndexVersion: 1, FlagReader: true, FlagWriter: true,
	})
	if err != nil {
		log.Fatal(err) // the reader failed; what the bytes get wrong is in h
	}
	for _, t := range h.Transitions {
		in, moved, dropped, _ := t.Rows()
		fmt.Printf("record %d: %v, %d rows in, %d moved, %d dropped\n", t.Record, t.Kind, in, moved, dropped)
		for _, d := range t.Sources {
			fmt.Printf("  from fragment %d, %d of %d rows live\n", d.Frag(), d.LiveRows(), d.PhysicalRows)
		}
		for _, d := range t.Destinations {
			fmt.Printf("  to fragment %d\n", d.Frag())
		}
	}
	fmt.Println("errors:", len(h.Errors))
	// Output:
	// record 1: ordered_compaction, 12 rows in, 10 moved, 2 dropped
	//   from fragment 10, 6 of 8 rows live
	//   from fragment 11, 4 of 4 rows live
	//   to fragment 200
	// errors: 0
}

func ExampleOpen_violation() {
	// A transition with a source, a destination, and no mapping.
	content := []byte{0x12, 0x0C, 0x0A, 0x04, 0x08, 0x01, 0x10, 0x02, 0x12, 0x04, 0x08, 0x02, 0x10, 0x02}
	h, err := fri.Open(context.Background(), bytes.NewReader(content), fri.Options{IndexVersion: 1, FlagReader: true, FlagWriter: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range h.Errors {
		fmt.Println(e)
	}
	fmt.Println("fragment 1 is claimed by", len(h.Claimants(1)), "record that cannot be used")
	// Output:
	// record 1: rule 11: the transition has no mapping (at byte 2)
	// fragment 1 is claimed by 1 record that cannot be used
}

func ExampleIsEntry() {
	for _, e := range []struct {
		name, typeURL string
		fields        []int32
	}{
		{"id_idx", "/lance.table.BTreeIndexDetails", []int32{0}},
		{"__lance_frag_reuse", "/lance.table.FragmentReuseIndexDetails", nil},
		{"__lance_frag_reuse", "/lance.table.BTreeIndexDetails", []int32{0}},
		{"__lance_frag_reuse", "/lance.table.BTreeIndexDetails", nil},
	} {
		fmt.Println(fri.IsEntry(e.name, e.typeURL, true, e.fields).Class)
	}
	// Output:
	// not_fri
	// fri
	// look_alike
	// broken_fri
}

func ExampleParseDetails() {
	value, err := hex.DecodeString("12110a0d64657461696c732e62696e70621861")
	if err != nil {
		log.Fatal(err)
	}
	c, err := fri.ParseDetails(value)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.External.Path, c.External.Offset, c.External.Size)
	// Output: details.binpb 0 97
}

func ExampleSurvivors_Load() {
	content, err := hex.DecodeString(exampleContent)
	if err != nil {
		log.Fatal(err)
	}
	h, err := fri.Open(context.Background(), bytes.NewReader(content), fri.Options{IndexVersion: 1})
	if err != nil {
		log.Fatal(err)
	}
	s := h.Consumer(10)[0].Survivors
	headers, _ := s.Fragment(10)
	fmt.Println(headers.Rows, "survivors, the last at offset", headers.Max)
	var words [1024]uint64
	for _, c := range headers.Containers {
		if err := s.Load(context.Background(), c, &words); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("offsets from %d on: %08b\n", uint32(c.Key)<<16, words[0])
	}
	// Output:
	// 6 survivors, the last at offset 7
	// offsets from 0 on: 11011011
}

func ExampleTransition_ID() {
	content, err := hex.DecodeString(exampleContent)
	if err != nil {
		log.Fatal(err)
	}
	h, err := fri.Open(context.Background(), bytes.NewReader(content), fri.Options{IndexVersion: 1})
	if err != nil {
		log.Fatal(err)
	}
	id, err := h.Transitions[0].ID(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(id), "hex digits")
	// Output: 16 hex digits
}

func ExampleAddr() {
	a := fri.Addr(3, 7)
	fmt.Println(uint64(a), a, a.Frag(), a.Offset())
	// Output: 12884901895 3:7 3 7
}
