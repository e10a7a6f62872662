#!/usr/bin/env bash
# Makes Python environments for the tests: without an argument integration/.venv from integration/requirements.txt; for
# each NAME given integration/.venv-NAME from integration/requirements-NAME.txt (older releases of Lance, and lancedb);
# "node" installs integration/node (LanceDB for Node).
# Does nothing where that is up to date. Without python3 (or without its venv module) it says what will be skipped and
# succeeds, unless FRIFS_CI is set.
#
#	integration/venv.sh              # what `make test` needs
#	integration/venv.sh 4.0.2 7.1.0  # official Lance readers of those releases
set -euo pipefail
cd "$(dirname "$0")"

give_up() {
	if [ -n "${FRIFS_CI:-}" ]; then
		echo "integration/$1: $2" >&2
		exit 1
	fi
	echo "integration/$1: $2: $3 skipped." >&2
}

make_one() { # environment, requirements, what is skipped without it
	local stamp="$1/.requirements"
	if cmp -s "$2" "$stamp"; then
		return
	fi
	if ! [ -f "$2" ]; then
		echo "integration/$2: no such file; there are: $(ls requirements*.txt | tr '\n' ' ')" >&2
		exit 2
	fi
	if ! command -v python3 >/dev/null; then
		give_up "$1" "there is no python3" "$3"
		return
	fi
	if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
		give_up "$1" "python3 has no venv module (Debian: apt-get install python3-venv)" "$3"
		return
	fi
	rm -rf "$1"
	echo "integration/$1: installing what integration/$2 names (once, about a minute)" >&2
	python3 -m venv "$1"
	if ! "$1/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$2"; then
		rm -rf "$1"
		give_up "$1" "pip could not install the requirements" "$3"
		return
	fi
	cp "$2" "$stamp"
}

if [ $# = 0 ]; then
	make_one .venv requirements.txt "the tests against pandas, polars, DuckDB, pyarrow and the official Lance reader are"
	exit 0
fi
node_one() {
	local stamp=node/node_modules/.requirements
	if cmp -s node/package-lock.json "$stamp"; then
		return
	fi
	if ! command -v npm >/dev/null; then
		give_up node "there is no npm" "the tests with LanceDB for Node are"
		return
	fi
	echo "integration/node: installing what integration/node/package-lock.json names (once, about a minute)" >&2
	# Not `npm ci`: that refuses a lock without the packages for other platforms, which not every registry has.
	if ! (cd node && npm install --no-save --no-fund --no-audit --loglevel=error >&2); then
		rm -rf node/node_modules
		give_up node "npm could not install the packages" "the tests with LanceDB for Node are"
		return
	fi
	cp node/package-lock.json "$stamp"
}

for name; do
	if [ "$name" = node ]; then
		node_one
		continue
	fi
	make_one ".venv-$name" "requirements-$name.txt" "the tests with $name are"
done
