package translate_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// content is the history of a table as Lance 14.0.2 wrote it (vector V11): fragments 0 to 3 were compacted into 4, then
// 4 and 5 into 6.
const content = "1286010a04100a18020a060801100a18010a060802100a18010a040803100a1204080410241a620a60040000000000000000" +
	"0000003b300000010000070002000000010004000500010000003b300000010000080002000000060008000100020000003b" +
	"300000010000080002000000040006000300030000003b3000000100000900010000000900124a0a060804102418020a0408" +
	"05100a12040806102c1a340a320200000000000000040000003b300000010000210002000000020005001e00050000003b30" +
	"00000100000900010000000900"

// history opens the example's history.
func history() *fri.History {
	b, err := hex.DecodeString(content)
	if err != nil {
		panic(err)
	}
	h, err := fri.Open(context.Background(), bytes.NewReader(b), fri.Options{IndexVersion: 1, FlagReader: true, FlagWriter: true})
	if err != nil {
		panic(err)
	}
	return h
}

// Fragment 6 is what is live now; its row 3 was deleted since.
var live = translate.Snapshot{6: {Rows: 44, Deleted: roaring.BitmapOf(3)}}

func ExampleTranslator_Translate() {
	tr := translate.New(history(), live, nil, translate.Options{})
	addrs := []fri.RowAddr{
		fri.Addr(0, 0), fri.Addr(0, 2), fri.Addr(0, 5), fri.Addr(0, 7), fri.Addr(3, 9), fri.Addr(6, 1), fri.Addr(0, 10), fri.Addr(7, 0),
	}
	r := translate.Results{New: make([]fri.RowAddr, len(addrs)), Outcome: make([]translate.Outcome, len(addrs))}
	if err := tr.Translate(context.Background(), addrs, &r); err != nil {
		fmt.Println(err)
		return
	}
	for i, a := range addrs {
		fmt.Print(a, " ", r.Outcome[i])
		if r.Outcome[i].HasAddress() {
			fmt.Print(" ", r.New[i])
		}
		fmt.Println()
	}
	// Output:
	// 0:0 moved 6:0
	// 0:2 dropped
	// 0:5 dropped
	// 0:7 deleted_now 6:3
	// 3:9 moved 6:33
	// 6:1 same 6:1
	// 0:10 out_of_range
	// 7:0 dangling
}

func ExampleTranslator_Inverse() {
	tr := translate.New(history(), live, nil, translate.Options{})
	addrs := []fri.RowAddr{fri.Addr(6, 8), fri.Addr(6, 34)}
	r := translate.Results{New: make([]fri.RowAddr, 2), Outcome: make([]translate.Outcome, 2)}
	if err := tr.Inverse(context.Background(), addrs, &r); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.New, r.Outcome)
	// Output:
	// [1:2 5:0] [moved moved]
}

func ExampleTranslator_Push() {
	tr := translate.New(history(), live, nil, translate.Options{})
	p, err := tr.Push(context.Background(), 0, 0, 10) // all rows of fragment 0
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Rows[translate.Moved], p.Rows[translate.DeletedNow], p.Rows[translate.Dropped], p.Ranges)
	// Output:
	// 5 1 4 [{6 0 6}]
}

func ExampleTranslator_Trace() {
	tr := translate.New(history(), live, nil, translate.Options{})
	hops, outcome, last, err := tr.Trace(context.Background(), fri.Addr(1, 2))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range hops {
		fmt.Println("transition", h.Seq, h.From, "->", h.To)
	}
	fmt.Println(outcome, last)
	// Output:
	// transition 1 1:2 -> 4:10
	// transition 2 4:10 -> 6:8
	// moved 6:8
}

func ExampleCover() {
	// One segment was built over fragments 0 to 3, another over 5 only: both contribute to fragment 6.
	segments := []translate.Segment{
		{Name: "id_idx", State: translate.BitmapPresent, Bitmap: roaring.BitmapOf(0, 1, 2, 3), Usable: true},
		{Name: "id_idx", State: translate.BitmapPresent, Bitmap: roaring.BitmapOf(5), Usable: true},
		{Name: "other", State: translate.BitmapPresent, Bitmap: roaring.BitmapOf(0, 1), Usable: true},
	}
	for i, c := range translate.Cover(history(), roaring.BitmapOf(6), segments) {
		fmt.Println(segments[i].Name, c.Live, len(c.Straddles))
	}
	// Output:
	// id_idx {6} 0
	// id_idx {6} 0
	// other {} 1
}
