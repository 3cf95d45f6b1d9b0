#!/bin/sh
# Check, test and build the viewer's TypeScript, then compare the build with the committed one.
# The build goes to widgets/static: where that was stale, the fresh files are there to be committed.
set -eu
cd "$(dirname "$0")/../../widgets/js"
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || {
  echo "make front needs Node 20 or newer with npm; using Graphloupe does not." >&2
  exit 1
}
stamp=node_modules/.installed
if [ ! -e "$stamp" ] || [ package-lock.json -nt "$stamp" ]; then
  npm ci --no-audit --no-fund
  touch "$stamp"
fi
npm run check
npm test

committed=$(mktemp -d)
trap 'rm -rf "$committed"' EXIT
cp -R ../static/. "$committed"
npm run build
diff -rq "$committed" ../static || {
  echo "widgets/static differs from what the sources build: commit the new build, which is there now." >&2
  exit 1
}
