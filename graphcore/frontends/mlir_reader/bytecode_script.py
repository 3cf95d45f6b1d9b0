"""A script that writes the text of MLIR bytecode, its input. It runs in a process of its own."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Write the text. The argument is "portable" for a portable artifact of StableHLO, "" for other bytecode."""
    mlir = "jaxlib.mlir"
    ir: Any = import_module(f"{mlir}.ir")
    stablehlo: Any = import_module(f"{mlir}.dialects.stablehlo")
    context, registry = ir.Context(), ir.DialectRegistry()
    import_module(f"{mlir}._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context.append_dialect_registry(registry)
    for dialect in (stablehlo, import_module(f"{mlir}.dialects.chlo")):
        dialect.register_dialect(context)
    import_module(f"{mlir}.dialects.mhlo").register_mhlo_dialect(context)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    data = sys.stdin.buffer.read()
    with context:
        module = stablehlo.deserialize_portable_artifact(context, data) if sys.argv[1] else ir.Module.parse(data)
        sys.stdout.buffer.write(module.operation.get_asm(enable_debug_info=True, binary=True))


if __name__ == "__main__":
    main()
