#!/usr/bin/env bash
# Makes integration/.venv from integration/requirements.txt. Does nothing when it is up to date. Without python3 (or
# without its venv module) it says what will be skipped and succeeds, unless FRIFS_CI is set.
set -euo pipefail
cd "$(dirname "$0")"

give_up() {
	if [ -n "${FRIFS_CI:-}" ]; then
		echo "integration/.venv: $1" >&2
		exit 1
	fi
	echo "integration/.venv: $1: the tests against pandas, polars, DuckDB, pyarrow and the official Lance reader are skipped." >&2
	exit 0
}

stamp=.venv/.requirements
if cmp -s requirements.txt "$stamp"; then
	exit 0
fi
command -v python3 >/dev/null || give_up "there is no python3"
python3 -c 'import venv, ensurepip' 2>/dev/null || give_up "python3 has no venv module (Debian: apt-get install python3-venv)"
rm -rf .venv
echo "integration/.venv: installing the clients named in integration/requirements.txt (once, about a minute)" >&2
python3 -m venv .venv
if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements.txt; then
	rm -rf .venv
	give_up "pip could not install the requirements"
fi
cp requirements.txt "$stamp"
