#!/bin/sh
# Regenerates the Go code of the .proto files in this directory: all of them, or the ones named as arguments
# (`generate.sh table.proto`). Needs protoc on PATH; protoc-gen-go is built from the module, so its version is the
# one of go.mod. `make proto` runs this script.
set -eu
cd "$(dirname "$0")/../.."
command -v protoc >/dev/null || { echo "generate.sh: protoc is not on PATH (package protobuf-compiler)" >&2; exit 1; }

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT INT TERM
go build -o "$bin/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go

[ $# -gt 0 ] || set -- $(cd internal/pb && ls -- *.proto)
for name in "$@"; do
	# The import path "pb/<name>" keeps the registered file names apart from those of other modules.
	protoc -I internal --plugin="protoc-gen-go=$bin/protoc-gen-go" \
		--go_out=internal --go_opt=paths=source_relative "internal/pb/$(basename "$name")"
done
