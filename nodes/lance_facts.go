package nodes

import (
	"fmt"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
)

// lanceFact is one sentence on what official Lance does with an index. wrong marks wrong answers and failures.
type lanceFact struct {
	text  string
	wrong bool
}

// IfHNSW begins what holds of vector indices with a graph alone, in version.json and index.json: which kind an index is
// stands in its files, which those documents do not read; segment.json does.
const IfHNSW = "if this is an IVF_HNSW index, "

// lanceFacts says what released Lance versions do with the stored files of an index under this version's history
// (docs/FORMAT.md, "Index details"; tested releases: 4.0.2, 7.1.0, 12.0.0, 14.0.2).
func lanceFacts(m *dataset.Manifest, h *fri.History, li *logicalIndex) []lanceFact {
	ix := li.segments[0].ix
	var out []lanceFact
	say := func(wrong bool, format string, args ...any) {
		out = append(out, lanceFact{fmt.Sprintf(format, args...), wrong})
	}
	if systemEntry(ix) {
		say(false, "a system index: never used for a query, its bitmap is no coverage of data")
		return out
	}
	if ix.Type == "" {
		say(false, "an index of unknown type is ignored for queries and stays in the manifest")
		return out
	}
	if limit, ok := maxIndexVersion(ix.Type); ok && ix.PB.GetIndexVersion() > limit {
		say(false, "index_version %d is above %d, the highest that Lance 14.0.2 reads for %s: the entry is ignored for queries", ix.PB.GetIndexVersion(), limit, ix.Type)
	}
	if len(h.Transitions) == 0 || h.Broken != nil {
		return out
	}
	if m.StableRowIDs() {
		if ix.Type == "ZONEMAP" || ix.Type == "BLOOMFILTER" || (ix.Type == "BTREE" && ix.PB.GetIndexVersion() >= 1) {
			say(false, "used beside a fragment reuse index on a table with stable row ids (14.0.2)")
		} else {
			say(false, "hidden by 14.0.2: on a table with stable row ids and a fragment reuse index only ZONEMAP, BLOOMFILTER and BTREE from version 1 on are listed")
		}
		return out
	}
	drops := false
	for _, t := range h.Transitions {
		if _, _, dropped, ok := t.Rows(); !ok || dropped > 0 {
			drops = true
		}
	}
	batch := true // can be translated in batch, which a tagged history needs
	switch ix.Type {
	case "FM":
		batch = false
		if !h.Tagged {
			say(true, "FM ignores the fragment reuse index: Lance 12.0.0 to 14.0.2 silently miss the rows of rewritten fragments")
		}
	case "VECTOR":
		if drops {
			say(true, IfHNSW+"every query through it fails in Lance 4.0.2 to 14.0.2: rows were dropped, the graph still counts them")
		}
		if !h.Tagged {
			say(true, "Lance 7.1.0 fails or answers wrongly through every vector index under a pending history, 4.0.2 through IVF_PQ and IVF_RQ; 12.0.0 and 14.0.2 translate")
		}
	case "ZONEMAP", "BLOOMFILTER":
		if !h.Tagged {
			say(true, "Lance 4.0.2 and 7.1.0 answer wrongly under a pending history; 12.0.0 and 14.0.2 translate the result")
		}
	case "INVERTED":
		if drops && !h.Tagged {
			say(true, "Lance 4.0.2 and 7.1.0 fail or answer wrongly once rows were dropped; 12.0.0 and 14.0.2 keep the slot of a dropped row")
		}
	case "JSON", "MINHASH_LSH":
		batch = false
	default:
		say(false, "Lance 12.0.0 and 14.0.2 translate the stored addresses as they read them")
	}
	if h.Tagged && !batch {
		say(false, "Lance 14.0.2 does not list %s under a tagged history: queries scan", ix.Type)
	}
	return out
}

// maxIndexVersion is the highest index_version that Lance 14.0.2 reads of a type.
func maxIndexVersion(typ string) (int32, bool) {
	switch typ {
	case "BITMAP", "NGRAM", "ZONEMAP", "BLOOMFILTER", "RTREE", "JSON", "MINHASH_LSH":
		return 0, true
	case "BTREE", "LABEL_LIST":
		return 1, true
	case "VECTOR":
		return 2, true
	case "INVERTED":
		return 3, true
	case "FM":
		return 10, true
	}
	return 0, false
}
