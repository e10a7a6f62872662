package rowmap_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// content is a tagged history of one ordered compaction (vector V9): fragments 10 (8 rows, 2 and 5 deleted) and 11 (4
// rows) became fragment 200.
const content = "125d0a06080a100818020a04080b1004120508c801100a1a460a4402000000000000000a0000003a3000000100" +
	"000000000500100000000000010003000400060007000b0000003a3000000100000000000300100000000000010002000300"

// mapping opens the example's mapping.
func mapping() *rowmap.Ordered {
	b, err := hex.DecodeString(content)
	if err != nil {
		panic(err)
	}
	h, err := fri.Open(context.Background(), bytes.NewReader(b), fri.Options{IndexVersion: 1})
	if err != nil {
		panic(err)
	}
	m, err := rowmap.NewOrdered(h.Transitions[0], rowmap.Options{})
	if err != nil {
		panic(err)
	}
	return m
}

func ExampleOrdered_Forward() {
	addrs := []fri.RowAddr{fri.Addr(11, 0), fri.Addr(10, 2), fri.Addr(10, 3), fri.Addr(10, 8)}
	out, st := make([]fri.RowAddr, len(addrs)), make([]rowmap.Status, len(addrs))
	if err := mapping().Forward(context.Background(), addrs, out, st); err != nil {
		fmt.Println(err)
		return
	}
	for i, a := range addrs {
		fmt.Print(a, " ", st[i])
		if st[i] == rowmap.Moved {
			fmt.Print(" ", out[i])
		}
		fmt.Println()
	}
	// Output:
	// 11:0 moved 200:6
	// 10:2 dropped
	// 10:3 moved 200:2
	// 10:8 out_of_range
}

func ExampleOrdered_InverseRun() {
	out := make([]fri.RowAddr, 3)
	if err := mapping().InverseRun(context.Background(), 0, 4, out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out)
	// Output:
	// [10:6 10:7 11:0]
}

func ExampleOrdered_Received() {
	counts := make([]uint64, 1)
	if err := mapping().Received(context.Background(), 0, 4, counts); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the first 4 rows of fragment 10 fill offsets up to", counts[0])
	// Output:
	// the first 4 rows of fragment 10 fill offsets up to 3
}
