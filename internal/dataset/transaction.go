package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
)

// maxTransactionBytes bounds a transaction that is decoded. Lance inlines up to 20 MiB and spills larger ones.
const maxTransactionBytes = 256 << 20

// The places a transaction may come from.
const (
	TransactionInline = "inline"
	TransactionFile   = "file"
	TransactionNone   = "none"
)

// Transaction is what the commit of a version recorded of itself.
type Transaction struct {
	Source      string // TransactionInline, TransactionFile or TransactionNone
	Reason      string // for TransactionNone: why there is none
	Path        string // URI of the file that holds it; "" for TransactionNone
	Bytes       int64  // size of the message
	PB          *pb.Transaction
	Operation   string // "Append" ..., "unknown operation (116)", "" if the message names none
	Number      int    // field number of the operation, 0 if the message names none
	ReadVersion *uint64
	UUID        string
	Properties  map[string]string
	Warnings    []string
}

// operations are the names of docs/FORMAT.md, "Transactions", from field 100.
var operations = [...]string{"Append", "Delete", "Overwrite", "CreateIndex", "Rewrite", "Merge", "Restore", "ReserveFragments",
	"Update", "Project", "UpdateConfig", "DataReplacement", "UpdateMemWalState", "Clone", "UpdateBases", "DataOverlay"}

// OperationName names an operation by its field number in the transaction message.
func OperationName(number int) string {
	if i := number - 100; i >= 0 && i < len(operations) {
		return operations[i]
	}
	return fmt.Sprintf("unknown operation (%d)", number)
}

// Transaction returns the transaction of a version: inline, else the file that the manifest names, else none with a
// reason. It is read when asked for and never breaks the version. An inline one that does not decode, or is another one
// than the manifest names (an offset inherited from an older manifest), gives way to the file with a warning.
//
// Where the message does not decode, the result still holds its source and, if that much can be read, the operation;
// the error is fault.Corrupt or fault.TooLarge then. Failures of the store come with a result that holds the source
// alone. The result is never nil.
func (d *Dataset) Transaction(ctx context.Context, m *Manifest) (*Transaction, error) {
	const op = "dataset.Transaction"
	var inline *Transaction
	var inlineErr error
	var warnings []string
	if m.inline != nil {
		b, ok, err := d.inlineBytes(ctx, m)
		switch {
		case err != nil:
			return &Transaction{Source: TransactionInline, Path: m.where}, fault.Wrap(op, m.where, err)
		case ok:
			inline = &Transaction{Source: TransactionInline, Path: m.where}
			if inlineErr = inline.decode(b, m.where, m.inline.off+4); inlineErr == nil && inline.named(m.PB.GetTransactionFile()) {
				return inline, nil
			}
			warnings = append(warnings, fmt.Sprintf("what the manifest holds at %d is not the transaction it names: taken from the file", m.inline.off))
		default:
			warnings = append(warnings, fmt.Sprintf("the manifest puts its transaction at %d, where none can lie: stale, ignored", m.inline.off))
		}
	}
	t, err := d.transactionFile(ctx, m)
	if inline != nil && (err != nil || t.Source == TransactionNone) {
		return inline, inlineErr // the best there is
	}
	t.Warnings = append(warnings, t.Warnings...)
	return t, err
}

// named reports whether the transaction can be the one in the file of this name, {read_version}-{uuid}.txn; any can,
// where no name is recorded.
func (t *Transaction) named(file string) bool {
	_, uuid, ok := strings.Cut(strings.TrimSuffix(file, ".txn"), "-")
	return !ok || uuid == t.UUID
}

// transactionFile reads the file that the manifest names.
func (d *Dataset) transactionFile(ctx context.Context, m *Manifest) (*Transaction, error) {
	const op = "dataset.Transaction"
	t := &Transaction{Source: TransactionNone}
	name := m.PB.GetTransactionFile()
	if name == "" {
		t.Reason = "the manifest names none"
		return t, nil
	}
	path := store.Join(transactionsDir, name)
	if !plainName(name) {
		t.Reason = fmt.Sprintf("the manifest names %q, which is no bare file name", name)
		return t, fault.New(op, m.where, fault.Corrupt, "transaction_file %q is no bare file name", name)
	}
	where := store.Join(d.URI(), path)
	b, err := readWhole(ctx, d.st, path, maxTransactionBytes)
	if fault.Is(err, fault.NotFound) {
		t.Reason = fmt.Sprintf("the manifest names %s, which is not there", path)
		return t, nil
	}
	t.Source, t.Path = TransactionFile, where
	if err != nil {
		return t, fault.Wrap(op, where, err)
	}
	return t, t.decode(b, where, 0)
}

// inlineBytes returns the inline transaction, reading it again where it was not kept. ok is false where none lies.
func (d *Dataset) inlineBytes(ctx context.Context, m *Manifest) (b []byte, ok bool, err error) {
	in := m.inline
	if in.bytes != nil {
		return in.bytes, true, nil
	}
	obj := m.Ref.Object
	obj.Name = m.Ref.Path()
	head, err := store.ReadObject(ctx, d.st, obj, in.off, 4)
	if err != nil {
		return nil, false, err
	}
	if len(head) < 4 {
		return nil, false, fault.New("dataset.Transaction", at(m.where, in.off), fault.Stale, "the manifest file is shorter than it was")
	}
	size := int64(binary.LittleEndian.Uint32(head))
	if in.off+4+size > m.Bytes-trailerBytes-4 {
		return nil, false, nil
	}
	if size > maxTransactionBytes {
		return nil, false, fault.New("dataset.Transaction", at(m.where, in.off), fault.TooLarge, "the transaction has %d bytes, the limit is %d", size, maxTransactionBytes)
	}
	b, err = store.ReadObject(ctx, d.st, obj, in.off+4, size)
	if err == nil && int64(len(b)) != size {
		err = fault.New("dataset.Transaction", at(m.where, in.off), fault.Stale, "the manifest file is shorter than it was")
	}
	return b, err == nil, err
}

// readWhole reads a file of at most limit bytes. The size comes from the store, so nothing is allocated on trust.
func readWhole(ctx context.Context, st store.Store, name string, limit int64) ([]byte, error) {
	r, err := st.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size() > limit {
		return nil, fault.New("dataset.read", store.Join(st.URI(), name), fault.TooLarge, "the file has %d bytes, the limit is %d", r.Size(), limit)
	}
	b := make([]byte, r.Size())
	if len(b) == 0 {
		return b, nil
	}
	if _, err := store.ReadAt(ctx, r, b, 0); err != nil {
		return nil, err
	}
	return b, nil
}

// decode fills t from the message b, which lies at base of the file at where.
func (t *Transaction) decode(b []byte, where string, base int64) error {
	t.Bytes = int64(len(b))
	t.Number = operationNumber(b)
	if t.Number != 0 {
		t.Operation = OperationName(t.Number)
	}
	msg := &pb.Transaction{}
	if err := decode(b, msg, where, base); err != nil {
		return err
	}
	t.PB, t.ReadVersion, t.UUID, t.Properties = msg, msg.ReadVersion, msg.GetUuid(), msg.GetTransactionProperties()
	if t.ReadVersion == nil {
		t.ReadVersion = new(uint64) // a zero is left out on the wire: the transaction of a table's creation
	}
	return nil
}

// operationNumber returns the field number of the operation: the last field from 100 to 199, as one of a oneof counts.
// 0 means there is none, or the message ends before one could be seen.
func operationNumber(b []byte) int {
	number := 0
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return number
		}
		if num >= 100 && num <= 199 && typ == protowire.BytesType {
			number = int(num)
		}
		b = b[n:]
	}
	return number
}
