#!/usr/bin/env bash
# Tests and times the GPU part in at most 8 minutes, on a machine with an NVIDIA GPU, Python 3.12, CuPy, PyTorch, JAX, NumPy, pytest and no network.
# Wheels of what is missing there are in tests/gpu/wheels, by `make gpu-wheels` on another machine. Results: text files in $OUT.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-artefacts/gpu}
mkdir -p "$out"
site=$(mktemp -d)
python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" tests/gpu/wheels/*.whl || exit
export PYTHONPATH=$site:$PWD PYTHONUNBUFFERED=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 XLA_PYTHON_CLIENT_PREALLOCATE=false
unset OPENBLAS_CORETYPE
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/machine.txt"

workers=$(python3 -c "import importlib.util as u, os; print(min(12, os.cpu_count()) if u.find_spec('xdist') else 0)")
((workers)) && set -- -p xdist.plugin -n "$workers" "$@"
timeout 270 python3 -m pytest -q -p no:cacheprovider --maxfail=50 --tb=short tests/gpu "$@" 2>&1 | tee "$out/tests.txt" | tail -n 40
tested=$?
timeout 200 python3 -m tests.gpu.benchmark 2>&1 | tee "$out/bench.txt"
timed=$?
exit $((tested | timed))
