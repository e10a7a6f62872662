package fri

import (
	"context"
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/frifs/frifs/fault"
)

// ContainerKind is how a container of a survivor bitmap is stored.
type ContainerKind uint8

// The kinds of containers of the portable Roaring format.
const (
	ContainerUnknown ContainerKind = iota
	ContainerArray                 // Card u16 values, strictly ascending
	ContainerBitmap                // 8192 bytes, one bit per value
	ContainerRun                   // u16 number of runs, then (start, length-1) pairs of u16
)

// Container is the header of one container: up to 65,536 consecutive offsets of one fragment.
type Container struct {
	Key  uint16 // offsets Key<<16 ... Key<<16 + 65535
	Kind ContainerKind
	Card uint32 // number of survivors, 1 to 65,536
	Len  uint32 // of the payload in bytes
	Off  int64  // of the payload, in bytes from the start of the record's message value
}

// FragSurvivors is the header index of one fragment's survivors.
type FragSurvivors struct {
	Containers []Container // ascending by Key; shared, must not be changed
	Rows       uint64      // survivors of the fragment = sum of Card
	Max        uint32      // highest surviving offset; 0 where Rows is 0
}

// Survivors is the set of old addresses that an ordered compaction carried over (docs/FORMAT.md, "Survivor bitmap"):
// a 64-bit Roaring treemap of which only the headers are in memory. It is safe for concurrent use.
type Survivors struct {
	idx  *survivorIndex
	r    Reader
	base int64     // offset of the record in r
	bufs sync.Pool // *[]byte, payload buffers of Load
}

// survivorIndex is the part of Survivors that does not depend on where the record lies; shared between histories.
type survivorIndex struct {
	keys  []FragID // strictly ascending
	frags []FragSurvivors
	total uint64
	nCont int
	// trailing counts the bytes behind the treemap, from offset end of the record on.
	trailing, end int64
	// checked: every payload was read and obeys the format.
	checked bool
}

// Keys returns the fragments that the set names, ascending; a fragment with no survivors may be among them. The slice
// is shared and must not be changed.
func (s *Survivors) Keys() []FragID { return s.idx.keys }

// Total returns the number of survivors of all fragments.
func (s *Survivors) Total() uint64 { return s.idx.total }

// Containers returns the number of containers of all fragments.
func (s *Survivors) Containers() int { return s.idx.nCont }

// Checked reports that every payload was read and checked when the record was opened. Larger records are checked
// container by container, in Load.
func (s *Survivors) Checked() bool { return s.idx.checked }

// Fragment returns the headers of f's containers; ok is false where the set does not name f, which means that none of
// its rows survived.
func (s *Survivors) Fragment(f FragID) (fs FragSurvivors, ok bool) { return s.idx.fragment(f) }

func (x *survivorIndex) fragment(f FragID) (FragSurvivors, bool) {
	i := sort.Search(len(x.keys), func(i int) bool { return x.keys[i] >= f })
	if i == len(x.keys) || x.keys[i] != f {
		return FragSurvivors{}, false
	}
	return x.frags[i], true
}

// Load reads the payload of c, checks it, and stores it as bits: bit i of words[j] is offset c.Key<<16 + 64*j + i.
// A payload that violates the format or disagrees with its header gives fault.Corrupt with the byte offset in the
// content; words is then undefined. Errors of the Reader keep their kind.
func (s *Survivors) Load(ctx context.Context, c Container, words *[1024]uint64) error {
	bp, _ := s.bufs.Get().(*[]byte)
	if bp == nil {
		bp = new([]byte)
	}
	defer s.bufs.Put(bp)
	if c.Len > maxContainerLen {
		return fault.New("fri.Survivors.Load", "", fault.Invalid, "container of %d bytes; the limit is %d", c.Len, maxContainerLen)
	}
	if cap(*bp) < int(c.Len) {
		*bp = make([]byte, max(int(c.Len), 8192))
	}
	buf := (*bp)[:c.Len]
	off := s.base + c.Off
	if err := readFull(ctx, s.r, buf, off); err != nil {
		return err
	}
	if rel, msg := decodeContainer(c, buf, words); msg != "" {
		return fault.New("fri.Survivors.Load", fmt.Sprintf("@%d", off+int64(rel)), fault.Corrupt, "%s", msg)
	}
	return nil
}

// Verify reads and checks every container. It gives the error that Load would give for the first bad one.
func (s *Survivors) Verify(ctx context.Context) error {
	var words [1024]uint64
	for i := range s.idx.frags {
		for _, c := range s.idx.frags[i].Containers {
			if err := s.Load(ctx, c, &words); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxContainerLen is the longest payload: 32,768 runs that do not touch.
const maxContainerLen = 2 + 4*(math.MaxUint16/2+1)
