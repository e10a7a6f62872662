package dataset

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

const (
	fragmentsField = 2 // of the Manifest message
	// fragmentCost is what a fragment takes in memory beside its encoded bytes, with room for what is odd about it.
	fragmentCost = 160
)

// splitManifest takes a manifest message apart: the encoded fragments in their order, pointing into body, and the
// message of all other fields. Nothing of a fragment is decoded; each is only found to be decodable.
//
// Errors are those of decode, with the position counted from base.
func splitManifest(body []byte, where string, base int64) (p *pb.Manifest, frags [][]byte, restBytes int64, err error) {
	const op = "dataset.decode"
	n, others := 0, 0
	for off := 0; off < len(body); {
		num, typ, k := protowire.ConsumeField(body[off:])
		if k < 0 {
			return nil, nil, 0, fault.New(op, at(where, base+int64(off)), fault.Corrupt, "the Manifest message does not decode: %v", protowire.ParseError(k))
		}
		if num == fragmentsField && typ == protowire.BytesType {
			n++
		} else {
			others += k
		}
		off += k
	}
	if len(body) > guardFrom && fragmentCost*int64(n) > maxGrowth*int64(len(body)) {
		return nil, nil, 0, fault.New(op, at(where, base), fault.TooLarge,
			"the message of %d bytes has %d fragments, which would take about %d bytes of memory (limit: %d times its size)", len(body), n, fragmentCost*int64(n), maxGrowth)
	}
	p = &pb.Manifest{}
	if n == 0 {
		return p, nil, int64(len(body)), decode(body, p, where, base)
	}
	frags = make([][]byte, 0, n)
	rest := make([]byte, 0, others)
	fragment := shapeOf((&pb.DataFragment{}).ProtoReflect().Descriptor())
	for off := 0; off < len(body); {
		num, typ, k := protowire.ConsumeField(body[off:])
		if num == fragmentsField && typ == protowire.BytesType {
			_, _, t := protowire.ConsumeTag(body[off:])
			v, _ := protowire.ConsumeBytes(body[off+t : off+k])
			if bad := fragment.broken(v); bad >= 0 {
				at := at(where, base+int64(off+k-len(v)+bad))
				return nil, nil, 0, fault.New(op, at, fault.Corrupt, "the Manifest message does not decode: fragment %d of the list is broken here", len(frags))
			}
			frags = append(frags, v[:len(v):len(v)])
		} else {
			rest = append(rest, body[off:off+k]...)
		}
		off += k
	}
	err = decode(rest, p, where, base)
	if fault.Is(err, fault.Corrupt) { // at a place in rest; the file has it at another
		err = undecodable(body, p, where, base, err)
	}
	return p, frags, int64(len(rest)), err
}
