"""MLIR modules: StableHLO and other dialects, as text, as bytecode, and of JAX's objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.mlir_reader.modules import read_module
from graphcore.frontends.reading import source_bytes

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source

KIND: Final = "MLIR module, StableHLO and others (.mlir, .mlirbc; jax.stages.Lowered, jax.export.Exported)"
_BYTECODE: Final = b"ML\xefR"
_SPACE: Final = rb"(?:\s|//[^\n]*(?:\n|$)|#[\w.]+\s*=[^\n]*(?:\n|$)|![\w.]+\s*=[^\n]*(?:\n|$)|\{-#.*?#-\})*"
# A table of places may be longer than the bytes that are looked at.
_BEGINNING: Final = re.compile(
    rb"#loc\d*\s*=\s*loc\(|"
    + _SPACE
    + rb'(?:module(?:\s+@[^\s{]+)?(?:\s+attributes\s*\{|\s*\{)|"?(?:builtin\.module|func\.func)"?[\s(]|(?:%[\w:]+\s*=\s*)?"[a-z_]\w*\.[\w.]+"\()',
    re.DOTALL,
)


def sniff(source: Source) -> bool:
    """True iff the source is an MLIR module, or an object of JAX that has one."""
    if source.path is not None:
        head = source.head
        return not source.members and (head.startswith(_BYTECODE) or _BEGINNING.match(head) is not None)
    kind = type(source.value)
    if isinstance(source.value, str):
        return _BEGINNING.match(source.value[:4096].encode(errors="replace")) is not None
    return kind.__name__ in {"Lowered", "Exported"} and kind.__module__.partition(".")[0] == "jax"


def read(source: Source) -> ForeignGraph:
    """Read an MLIR module.

    Raises:
        GraphError: it is damaged, or `jaxlib` is missing.
    """
    value: Any = source.value
    if source.path is not None:
        return read_module(source_bytes(source))
    if isinstance(value, str):
        return read_module(value.encode())
    if type(value).__name__ == "Exported":
        graph = read_module(bytes(value.mlir_module_serialized))
        graph.name = str(value.fun_name)
        graph.facts["platforms"] = ", ".join([str(platform) for platform in value.platforms])
        graph.facts["arguments"] = ", ".join([str(aval) for aval in value.in_avals])[:1000]
        graph.facts["results"] = ", ".join([str(aval) for aval in value.out_avals])[:1000]
        return graph
    text = value.as_text(debug_info=True)
    if not isinstance(text, str):
        raise InvalidArgumentError("The lowered program gives no text")
    return read_module(text.encode())
