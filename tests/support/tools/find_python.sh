#!/bin/sh
# Print the first of the given Python versions that runs and can make environments: `find_python.sh 3.11 3.12`.
# A name on PATH is not yet an interpreter: a version manager's shim may refuse to run, and Debian ships Python without ensurepip.
# So each candidate is run. Where the name does not work, the versions that pyenv keeps are tried.
for version in "$@"; do
  for python in "python$version" "$(pyenv root 2>/dev/null)/versions/$version".*/bin/python3; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      command -v "$python"
      exit 0
    fi
  done
done
exit 1
