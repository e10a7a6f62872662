// Package pb holds the protobuf messages that frifs reads: the table messages of a Lance manifest (table.proto,
// transaction.proto) and those of the Lance file container and its encodings (file2.proto, encodings*.proto), with
// the Go code generated from them.
//
// The .proto files are our own restatement of the wire facts of docs/FORMAT.md ("Manifest", "Transactions", "Lance
// file"): field numbers and types are those of the format, the proto packages are frifs.pb.* so that nothing clashes
// with another registration in the same process.
//
// The table messages use proto2 on purpose. There a scalar that is not on the wire is a nil pointer (most offsets of a
// manifest are legitimately 0, and an old writer's missing count is "unknown", not 0), and a string that is not UTF-8
// does not make a whole manifest undecodable. Enumerations are int32 fields, so that a number of a newer release is
// kept as it is. Fields that a message does not name stay in its unknown fields.
//
// The messages of the fragment reuse index are not here: package fri reads them in place from the raw wire.
package pb

//go:generate ./generate.sh
