#!/usr/bin/env bash
# Installs the object-store servers that the tests of stores run against, from the package registries, into
# .cache/servers of the project: versitygw (S3, with users and bucket policies), fake-gcs-server and Azurite. Does nothing
# where they are there. What cannot be installed is said, and its tests are skipped, unless FRIFS_CI is set.
#
#	integration/stores/servers.sh    # once; the tests find them
set -euo pipefail
cd "$(dirname "$0")/../.."

versitygw=v1.8.0
fakegcs=v1.56.1
azurite=3.34.0
dir=$PWD/.cache/servers

give_up() {
	if [ -n "${FRIFS_CI:-}" ]; then
		echo "integration/stores: $1" >&2
		exit 1
	fi
	echo "integration/stores: $1: its tests are skipped." >&2
}

go_server() { # program, module path with version
	if [ -x "$dir/$1-${2##*@}" ]; then
		return
	fi
	echo "integration/stores: building $2 (once, a few minutes)" >&2
	# In a directory of its own: what a server needs is none of the project's business.
	mkdir -p "$dir/build"
	if ! (cd "$dir/build" && GOBIN="$dir/build" GOFLAGS=-buildvcs=false CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' "$2"); then
		give_up "$2 cannot be built"
		return
	fi
	mv "$dir/build/$1" "$dir/$1-${2##*@}"
}

node_server() {
	if [ -x "$dir/azurite-$azurite/node_modules/.bin/azurite-blob" ]; then
		return
	fi
	if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
		give_up "there is no node with npm for Azurite (Debian: apt-get install nodejs npm)"
		return
	fi
	echo "integration/stores: installing azurite $azurite (once)" >&2
	rm -rf "$dir/azurite-$azurite"
	mkdir -p "$dir/azurite-$azurite"
	if ! (cd "$dir/azurite-$azurite" && npm install --prefix . --no-audit --no-fund --ignore-scripts --loglevel=error "azurite@$azurite" >&2); then
		rm -rf "$dir/azurite-$azurite"
		give_up "azurite $azurite cannot be installed"
	fi
}

mkdir -p "$dir"
go_server versitygw "github.com/versity/versitygw/cmd/versitygw@$versitygw"
go_server fake-gcs-server "github.com/fsouza/fake-gcs-server@$fakegcs"
node_server
