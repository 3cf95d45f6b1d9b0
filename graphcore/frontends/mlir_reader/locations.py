"""Locations of MLIR's operations as scopes and source lines."""

from __future__ import annotations

import re
from typing import Any, Final

from graphcore.frontends.foreign import ModuleCall, SourceFrame
from graphcore.frontends.jax_reader.programs import scopes_of

_MAX_FRAMES: Final = 20
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
        name = str(location.name_str)
        names.append(name)
        _collect(ir, location.child_loc, name, frames, names, depth + 1)
    elif isinstance(location, ir.CallSiteLoc):
        _collect(ir, location.callee, function, frames, names, depth + 1)
        _collect(ir, location.caller, "", frames, names, depth + 1)
    elif isinstance(location, ir.FusedLoc):
        for each in location.locations[:4]:
            _collect(ir, each, function, frames, names, depth + 1)
    elif isinstance(location, ir.FileLineColLoc) and location.filename != "-":  # the text itself
        frame = SourceFrame(str(location.filename), int(location.start_line), "", "" if "/" in function else function)
        if frame not in frames[-1:]:
            frames.append(frame)
