"""Bytecode of MLIR as text, by a process of its own, which damaged bytecode may end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Final

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError

SECONDS: Final = 120
"""The seconds after which the process is stopped."""
_PROGRAM: Final = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, stablehlo
context, registry = ir.Context(), ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context.append_dialect_registry(registry)
for dialect in (stablehlo, chlo):
    dialect.register_dialect(context)
mhlo.register_mhlo_dialect(context)
context.load_all_available_dialects()
context.allow_unregistered_dialects = True
data = sys.stdin.buffer.read()
with context:
    module = stablehlo.deserialize_portable_artifact(context, data) if sys.argv[2] else ir.Module.parse(data)
    sys.stdout.buffer.write(module.operation.get_asm(enable_debug_info=True, binary=True))
"""
_PORTABLE: Final = re.compile(rb"StableHLO_v\d")


def text_of(data: bytes) -> str:
    """The text of a module in bytecode.

    Raises:
        InvalidArgumentError: it is damaged.
        ResourceExhaustedError: it takes more than `SECONDS`.
    """
    is_portable = _PORTABLE.search(data[:40]) is not None
    command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path), "portable" if is_portable else ""]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, check=False)  # noqa: S603 - our own program; the data are its input
    except subprocess.TimeoutExpired:
        raise ResourceExhaustedError(f"The MLIR bytecode takes more than {SECONDS} seconds to parse, the limit") from None
    if done.returncode:
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        reason = next((line for line in lines if "error:" in line), lines[-1] if lines else f"the parser ended with {done.returncode}")
        raise InvalidArgumentError(f"The MLIR bytecode is damaged: {reason.strip()[:300]}")
    return done.stdout.decode(errors="replace")
