#!/bin/sh
# Check and test the viewer's TypeScript, and compare the committed build with what the sources give. Argument: the tests' Python.
set -eu
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../../../widgets/js"
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || {
  echo "make front needs Node 20 or newer with npm; using Graphloupe does not." >&2
  exit 1
}
stamp=node_modules/.installed
if [ ! -e "$stamp" ] || [ package-lock.json -nt "$stamp" ]; then
  # Not `npm ci`: it refuses a lock file that lacks the builds of optional packages for other systems.
  npm install --no-save --no-audit --no-fund
  touch "$stamp"
fi
"$python" generate_types.py --check
npm run check
npm test
npm run verify
