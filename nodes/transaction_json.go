package nodes

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/internal/dataset"
)

// transaction is what dataset.Transaction gave: lasting failures come with what could be read.
type transaction struct {
	*dataset.Transaction
	err error
}

// transaction returns the version's transaction; several documents look at it. Failures that may pass are errors, what
// is wrong with its bytes is part of the result.
func (n version) transaction(ctx context.Context, l *loaded) (*transaction, error) {
	return n.t.txns.get(ctx, n.key(), func(ctx context.Context) (*transaction, int64, error) {
		t, err := n.t.ds.Transaction(ctx, l.m)
		if err != nil && (t == nil || !lasting(err)) {
			return nil, 0, err
		}
		return &transaction{t, err}, 1024 + 4*t.Bytes, nil
	})
}

// transactionJSON is transaction.json: the decoded transaction, or why there is none. A transaction that does not
// decode is shown as far as it can be.
func (n version) transactionJSON(ctx context.Context) (*document, error) {
	l, err := n.load(ctx)
	if err != nil {
		return nil, err
	}
	t, err := n.transaction(ctx, l)
	if err != nil {
		return nil, err
	}
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(n.number())
		e.K("source").Str(t.Source)
		e.K("path").OptStr(t.Path)
		e.K("reason").OptStr(t.Reason)
		e.K("bytes")
		if t.Source == dataset.TransactionNone {
			e.Null()
		} else {
			e.Int(t.Bytes)
		}
		e.K("operation").OptStr(t.Operation)
		e.K("read_version").OptUint(t.ReadVersion)
		e.K("uuid").OptStr(t.UUID)
		e.K("properties").StrMap(t.Properties)
		e.K("warnings").Strs(t.Warnings)
		e.K("error").Err(t.err)
	})
	if t.PB == nil {
		j.Members(func(e *enc) {
			e.K("details").Null()
			e.K("unknown_fields").Arr(func() {})
		})
		return j.Done(), nil
	}
	m := t.PB.ProtoReflect()
	j.Members(func(e *enc) {
		op := m.WhichOneof(m.Descriptor().Oneofs().ByName("operation"))
		e.K("details")
		if op == nil {
			e.Null()
		} else {
			e.Proto(m.Get(op).Message())
		}
		e.K("unknown_fields").Unknown(boundedFields(m.GetUnknown()))
	})
	return j.Done(), nil
}

// maxUnknownField bounds an unknown field of a transaction that is shown, in bytes: an unknown operation may hold the
// whole table.
const maxUnknownField = 64 << 10

// boundedFields keeps the fields that are not too long to be shown.
func boundedFields(b []byte) []byte {
	if len(b) <= maxUnknownField {
		return b
	}
	var out []byte
	for len(b) > 0 {
		_, _, n := protowire.ConsumeField(b)
		if n < 0 {
			break
		}
		if n <= maxUnknownField {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}
