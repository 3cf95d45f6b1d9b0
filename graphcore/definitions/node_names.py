"""The grammar of node and input names, and renaming on copies into another graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from graphcore.definitions.node_def_util import attach_def
from graphcore.definitions.op_tables import attr_of
from graphcore.definitions.types import NodeDef
from graphcore.errors import InvalidArgumentError
from graphcore.plumbing import ENTER

_PART: Final = r"[A-Za-z0-9.][A-Za-z0-9_./-]*"
_NAME: Final = re.compile(rf"{_PART}(?:>{_PART})*", re.ASCII)
_INTERNAL_NAME: Final = re.compile(rf"[A-Za-z0-9._][A-Za-z0-9_./-]*(?:>{_PART})*", re.ASCII)
# TensorFlow accepts text after a port (`a:0:1`), so it is accepted here.
_DATA_INPUT: Final = re.compile(rf"{_PART}(?:>{_PART}|:(?:0|[1-9][0-9]*))*", re.ASCII)
_COLOCATION: Final = b"loc:@"
_CLASS: Final = "_class"


def is_valid_node_name(name: str, *, allow_internal_ops: bool = False) -> bool:
    """True iff the name is valid for a node of an external graph. Internal names may begin with `_`."""
    return (_INTERNAL_NAME if allow_internal_ops else _NAME).fullmatch(name) is not None


def validate_external_node_def_syntax(node_def: NodeDef) -> None:
    """Require a node from outside to have well-formed names, and its control inputs last.

    Raises:
        InvalidArgumentError: a name is malformed, or a control input is not last; the node is attached to the message.
    """
    if _NAME.fullmatch(node_def.name) is None:
        raise _error(f"Illegal op name '{node_def.name}'", node_def)
    in_control_inputs = False
    for name in node_def.input:
        is_control = name[:1] == "^"
        if (_NAME.fullmatch(name, 1) if is_control else _DATA_INPUT.fullmatch(name)) is None:
            raise _error(f"Illegal op input name '{name}'", node_def)
        if in_control_inputs and not is_control:
            raise _error("All control inputs must follow all data inputs", node_def)
        in_control_inputs = is_control


def _error(text: str, node_def: NodeDef) -> Exception:
    return attach_def(InvalidArgumentError(text), node_def)


def add_prefix_and_suffix(prefix: str, suffix: str, node_def: NodeDef, *, uniquify_frame_name: bool = True) -> NodeDef:
    """Rename a node to prefix + name + suffix, and the frame of an Enter node likewise.

    Renamed frames keep copied loops apart.

    Raises:
        NotFoundError: an Enter node without `frame_name`.
    """
    renamed = msgspec.structs.replace(node_def, name=f"{prefix}{node_def.name}{suffix}")
    if not uniquify_frame_name or node_def.op not in ENTER:
        return renamed
    frame = attr_of(renamed, "frame_name")
    if not isinstance(frame, bytes):
        raise InvalidArgumentError("AttrValue for frame_name is no string", op=node_def.op, node=renamed.name, attr="frame_name")
    return msgspec.structs.replace(renamed, attr={**node_def.attr, "frame_name": prefix.encode() + frame + suffix.encode()})


def add_prefix_to_colocation(match: Collection[str], prefix: str, node_def: NodeDef) -> NodeDef:
    """The node with `prefix` before the nodes in its `_class` entries, where they are in `match`."""
    return map_colocation(node_def, lambda name: prefix + name if name in match else name)


def update_colocation_with_map(node_names: Mapping[str, str], node_def: NodeDef) -> NodeDef:
    """The node with the nodes in its `_class` entries replaced according to `node_names`."""
    return map_colocation(node_def, lambda name: node_names.get(name, name))


def map_colocation(node_def: NodeDef, rename: Callable[[str], str]) -> NodeDef:
    """The node with every node in its `_class` entries renamed."""
    entries = node_def.attr.get(_CLASS)
    if not isinstance(entries, tuple):
        return node_def
    changed = tuple(_renamed(entry, rename) for entry in entries)
    return node_def if changed == entries else msgspec.structs.replace(node_def, attr={**node_def.attr, _CLASS: changed})


def colocated_with(node_def: NodeDef) -> list[str]:
    """The nodes in the `_class` entries."""
    entries = node_def.attr.get(_CLASS)
    if not isinstance(entries, tuple):
        return []
    names = [entry[len(_COLOCATION) :] for entry in entries if isinstance(entry, bytes) and entry.startswith(_COLOCATION)]
    return [name.decode(errors="surrogateescape") for name in names]


def _renamed(entry: object, rename: Callable[[str], str]) -> object:
    if not isinstance(entry, bytes) or not entry.startswith(_COLOCATION):
        return entry
    name = entry[len(_COLOCATION) :].decode(errors="surrogateescape")
    return _COLOCATION + rename(name).encode(errors="surrogateescape")
