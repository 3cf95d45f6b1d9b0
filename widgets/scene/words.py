"""Short plain-text labels of nodes and tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from graphcore.attrs import AttrValue, Func, Placeholder, TensorValue
from graphcore.dtypes import INVALID, DType
from graphcore.errors import GraphError
from graphcore.frontends.record import foreign_of
from graphcore.op_names import plain_op
from graphcore.plumbing import USER_NAME
from graphcore.registry import op_registry
from graphcore.shapes import Shape
from widgets.scene.calls import callees, calls_functions
from widgets.scene.shapes.unknowns import shape_text
from widgets.scene.types import NodeKind

if TYPE_CHECKING:
    from graphcore.graph import Node, Tensor

MAX_VALUE: Final = 28
"""Characters of a constant's value that stand in its box."""
MAX_ITEMS: Final = 8
"""Larger constants show type and shape instead."""


def kind_of_op(op: str) -> NodeKind | None:
    """The kind of box that an op gives, None for plain ops and calls."""
    role = op_registry.look_up(op).traits.role if op in op_registry else "op"
    return None if role == "op" else role


def node_kind(node: Node) -> NodeKind:
    """The kind of box of an op node."""
    role = node.registration.traits.role
    return role if role != "op" or not calls_functions(node) else "function"


def op_label(node: Node) -> str:
    """The op as pictures name it: without the domain of another framework."""
    return plain_op(node.op) if node.is_opaque else node.op


def user_name(attrs: Mapping[str, AttrValue]) -> str:
    """The name that the user's code has for an argument with these attrs, "" if there is none."""
    name = attrs.get(USER_NAME)
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else ""


def called_functions(node: Node) -> list[str]:
    """Names of the functions that a node calls: itself if its op is a function, and those in its attrs."""
    return [callee.function.name for callee in callees(node)] if calls_functions(node) else []


def node_detail(node: Node, label: Callable[[Tensor], str] | None = None) -> str:
    """The most important detail: a constant's value, an input's type and shape, the called function.

    Args:
        node: the node.
        label: gives the type and shape of a tensor; `tensor_label` by default.
    """
    kind = node_kind(node)
    if node.is_opaque and kind in {"constant", "variable"}:
        return _held_text(node)
    if kind == "constant":
        value = node.attr.get("value")
        return value_text(value) if isinstance(value, TensorValue) else ""
    if kind == "variable":
        dtype, shape = node.attr.get("dtype"), node.attr.get("shape")
        return f"{dtype} {shape}" if isinstance(dtype, DType) and isinstance(shape, Shape) else ""
    if kind == "placeholder" and node.outputs:
        return (label or tensor_label)(node.outputs[0])
    if kind == "function":
        return ", ".join(name for name in called_functions(node) if name != node.op)
    return ", ".join(name for name, value in node.attr.items() if value is True and not _is_usual(node, name))


def _held_text(node: Node) -> str:
    """The value of a small constant of another framework, else the type and shape."""
    foreign = foreign_of(node.graph)
    try:
        value = None if foreign is None or node_kind(node) != "constant" else foreign.short_value(node)
        text = "" if value is None else value_text(TensorValue(value))
    except GraphError:
        text = ""
    return text or (tensor_label(node.outputs[0]) if node.outputs else "")


def _is_usual(node: Node, name: str) -> bool:
    """True iff an attr with value true is unremarkable: true by default, or internal."""
    attr = node.op_def.find_attr(name)
    return attr is None or attr.default_value is True


def tensor_label(tensor: Tensor) -> str:
    """Type and shape of a tensor: `float [?,10]`, `float ?` for unknown rank.

    Named sizes are shown by name, as in `float [batch,10]`; an unknown type gives "".
    """
    return "" if tensor.dtype is INVALID else f"{tensor.dtype.text} {shape_text(tensor)}"


def value_text(value: TensorValue) -> str:
    """A constant's value if it is short (`0.5`, `[1, 2]`), else its type and shape."""
    if value.array.size > MAX_ITEMS:
        return f"{value.dtype.text} {value.shape}"
    items = value.array.tolist()
    text = _item_text(items)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def is_short(node: Node) -> bool:
    """True iff `value_text` shows the value of this constant."""
    value = node.attr.get("value")
    return isinstance(value, TensorValue) and value.array.size <= MAX_ITEMS


def attr_text(value: AttrValue) -> str:
    """An attr's value for the inspector: one line, abbreviated."""
    if isinstance(value, TensorValue):
        return f"{value.dtype.text} {value.shape} {value_text(value)}" if value.array.size <= MAX_ITEMS else value_text(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(attr_text(item) for item in value) + "]"
    if isinstance(value, bytes):
        return repr(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, Func):
        inner = ", ".join(f"{name}={attr_text(item)}" for name, item in sorted(value.attr.items()))
        return f"{value.name}[{inner}]" if inner else value.name
    if isinstance(value, Placeholder):
        return f"${value.name}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def byte_count(count: int) -> str:
    """A number of bytes in words: `12 bytes`, `3.1 kB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return counted(count, "byte")


def counted(count: int, word: str, plural: str = "") -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {plural or word + 's'}"


def last_part(name: str) -> str:
    """The last component of a name."""
    return name.rpartition("/")[2]


def _item_text(item: object) -> str:
    if isinstance(item, list):
        return "[" + ", ".join(_item_text(inner) for inner in item) + "]"
    if isinstance(item, float):
        return f"{item:.6g}"
    if isinstance(item, bytes):
        return repr(item.decode("utf-8", "backslashreplace"))
    return str(item)
