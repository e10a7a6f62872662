package dataset

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

func marshal(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestTransactionSources(t *testing.T) {
	const name = "4-u-u.txn"
	rewrite := &pb.Transaction{ReadVersion: proto.Uint64(4), Uuid: proto.String("u-u"),
		Operation: &pb.Transaction_Rewrite_{Rewrite: &pb.Transaction_Rewrite{}}}
	stranger := &pb.Transaction{Uuid: proto.String("older"), Operation: &pb.Transaction_Append_{Append: &pb.Transaction_Append{}}}
	file := map[string][]byte{"_transactions/" + name: marshal(t, rewrite)}
	broken := map[string][]byte{"_transactions/" + name: {0x0A, 0xFF}}
	for _, tt := range []struct {
		name      string
		inline    *pb.Transaction
		recorded  string
		others    map[string][]byte
		source    string
		operation string
		kind      fault.Kind
		warnings  int
	}{
		{"inline", rewrite, name, nil, TransactionInline, "Rewrite", 0, 0},
		{"inline, no name", rewrite, "", nil, TransactionInline, "Rewrite", 0, 0},
		{"inline wins over the file", rewrite, name, broken, TransactionInline, "Rewrite", 0, 0},
		{"file", nil, name, file, TransactionFile, "Rewrite", 0, 0},
		{"inline is another one", stranger, name, file, TransactionFile, "Rewrite", 0, 1},
		{"inline is another one, no file", stranger, name, nil, TransactionInline, "Append", 0, 0},
		{"file missing", nil, name, nil, TransactionNone, "", 0, 0},
		{"none", nil, "", nil, TransactionNone, "", 0, 0},
		{"file broken", nil, name, broken, TransactionFile, "", fault.Corrupt, 0},
		{"name with a slash", nil, "../" + name, file, TransactionNone, "", fault.Corrupt, 0},
		{"name dotdot", nil, "..", file, TransactionNone, "", fault.Corrupt, 0},
	} {
		m := &pb.Manifest{Version: proto.Uint64(1)}
		if tt.recorded != "" {
			m.TransactionFile = proto.String(tt.recorded)
		}
		d, _, ref := memDataset(t, build(manifestParts{manifest: m, transaction: tt.inline}), Options{}, tt.others)
		man, err := d.Manifest(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := d.Transaction(t.Context(), man)
		if tx.Source != tt.source || tx.Operation != tt.operation || fault.KindOf(err) != tt.kind || len(tx.Warnings) != tt.warnings {
			t.Errorf("%s: %s %q, warnings %q, %v", tt.name, tx.Source, tx.Operation, tx.Warnings, err)
		}
		if (tx.Source == TransactionNone) != (tx.Reason != "") || (tx.Source == TransactionNone) != (tx.Path == "") {
			t.Errorf("%s: reason %q, path %q", tt.name, tx.Reason, tx.Path)
		}
		if tx.Source != TransactionNone && err == nil && tx.Operation == "Rewrite" && (*tx.ReadVersion != 4 || tx.UUID != "u-u") {
			t.Errorf("%s: read version %v, uuid %q", tt.name, tx.ReadVersion, tx.UUID)
		}
	}
}

// An unknown operation never breaks a version; a known one that does not decode still gives its name.
func TestUnknownAndBrokenOperations(t *testing.T) {
	field := func(num protowire.Number, body ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
	}
	for _, tt := range []struct {
		name      string
		message   []byte
		operation string
		kind      fault.Kind
	}{
		{"116", field(116, 1, 2, 3), "unknown operation (116)", 0},
		{"199", field(199), "unknown operation (199)", 0},
		{"200 is reserved", field(200), "", 0},
		{"115", field(115), "DataOverlay", 0},
		{"112 with fields", field(112, field(1, 5)...), "UpdateMemWalState", 0},
		{"a Rewrite that does not decode", field(104, 0x0A, 0xFF), "Rewrite", fault.Corrupt},
		{"the last one of two counts", append(field(100), field(101)...), "Delete", 0},
		{"empty", nil, "", 0},
		{"no message", []byte{0xFF}, "", fault.Corrupt},
	} {
		m := &pb.Manifest{Version: proto.Uint64(1), TransactionFile: proto.String("1-x.txn")}
		d, _, ref := memDataset(t, build(manifestParts{manifest: m}), Options{}, map[string][]byte{"_transactions/1-x.txn": tt.message})
		man, err := d.Manifest(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := d.Transaction(t.Context(), man)
		if tx.Operation != tt.operation || fault.KindOf(err) != tt.kind {
			t.Errorf("%s: operation %q, %v, want %q and %v", tt.name, tx.Operation, err, tt.operation, tt.kind)
		}
		if err == nil && tx.PB == nil {
			t.Errorf("%s: no message", tt.name)
		}
	}
}

func TestTransactionsAreLazy(t *testing.T) {
	big := &pb.Transaction{Uuid: proto.String(string(make([]byte, 200_000)))}
	d, c, ref := memDataset(t, build(manifestParts{transaction: big}), Options{}, nil)
	m, err := d.Manifest(t.Context(), ref)
	if err != nil || c.Bytes() > tailBytes {
		t.Fatalf("%v, %d bytes read for a manifest of %d", err, c.Bytes(), proto.Size(m.PB))
	}
	if tx, err := d.Transaction(t.Context(), m); err != nil || len(tx.UUID) != 200_000 {
		t.Errorf("uuid of %d bytes, %v", len(tx.UUID), err)
	}
	c.Fail("ReadRange", ref.Path(), fault.New("test", "", fault.Unavailable, "down"))
	if tx, err := d.Transaction(t.Context(), m); !fault.Is(err, fault.Unavailable) || tx.Source != TransactionInline {
		t.Errorf("%+v, %v, want unavailable", tx, err)
	}
}
