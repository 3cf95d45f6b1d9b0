"""Locations of MLIR's operations as scopes and source lines."""

from __future__ import annotations

import re
from typing import Any, Final

from graphcore.frontends.foreign import ModuleCall, SourceFrame
from graphcore.frontends.jax_reader.programs import scopes_of

_MAX_FRAMES: Final = 20
_FIRST_TEXT: Final = re.compile(r'loc\("((?:[^"\\]|\\.)*)"')
_ESCAPE: Final = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_JITTED: Final = re.compile(r"(p?jit|eval_jaxpr)\b")


def placed(ir: Any, location: Any) -> tuple[tuple[ModuleCall, ...], tuple[SourceFrame, ...], str]:
    """The scopes around an operation, its source lines with the innermost last, and its own name."""
    frames: list[SourceFrame] = []
    names: list[str] = []
    _collect(ir, location, "", frames, names, 0)
    path = next((name for name in names if "/" in name), "")
    scopes = tuple([call for call in scopes_of(path)[:-1] if not _JITTED.match(call.path)])
    name = names[0] if names and "/" not in names[0] else ""
    return scopes, tuple(reversed(frames[:_MAX_FRAMES])), name


def _collect(ir: Any, location: Any, function: str, frames: list[SourceFrame], names: list[str], depth: int) -> None:
    """Gather the lines of a location, the innermost first, and its names."""
    if depth > _MAX_FRAMES:
        return
    if isinstance(location, ir.NameLoc):
        name = _first_text(location) or str(location.name_str)
        names.append(name)
        _collect(ir, location.child_loc, name, frames, names, depth + 1)
    elif isinstance(location, ir.CallSiteLoc):
        _collect(ir, location.callee, function, frames, names, depth + 1)
        _collect(ir, location.caller, "", frames, names, depth + 1)
    elif isinstance(location, ir.FusedLoc):
        for inner in location.locations[:4]:
            _collect(ir, inner, function, frames, names, depth + 1)
    elif isinstance(location, ir.FileLineColLoc):
        file = _first_text(location) or str(location.filename)
        frame = SourceFrame(file, int(location.start_line), "", "" if "/" in function else function)
        if file != "-" and frame not in frames[-1:]:  # "-" is the text itself
            frames.append(frame)


def _first_text(location: Any) -> str:
    """The name or file of a location that is written with escapes; "" for all others.

    A text that is no UTF-8 ends the process when it is asked for by itself.
    """
    match = _FIRST_TEXT.match(str(location))
    if match is None or "\\" not in match[1]:
        return ""
    plain = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()) if len(escape[1]) == 2 else escape[1], match[1].encode())
    return plain.decode(errors="replace")
