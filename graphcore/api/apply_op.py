"""Adds a node of any op to the default graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphcore.definitions import OpDef
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor, get_default_graph


def apply_op(
    op: str, inputs: Any = (), attrs: Mapping[str, Any] | None = None, name: str | None = None, **keywords: Any
) -> Tensor | list[Tensor] | Node:
    """Add a node of a registered op to the default graph.

    `gc.apply_op("Assign", [ref, value], {"use_locking": False})` and `gc.apply_op("Assign", ref=ref, value=value, use_locking=False)`
    are the same.

    Args:
        op: the op's name, such as `"AddN"`.
        inputs: one item an input of its OpDef, a list for a list input; values become constants. For an op with one input
            a list is optional.
        attrs: attrs that do not follow from the inputs.
        name: the node's name, made unique; the op's name by default.
        keywords: inputs that follow those of `inputs`, and attrs, by their names in the OpDef; None for an attr is its default.

    Returns:
        Its output; a list of several; the node itself if it has none.

    Raises:
        NotFoundError: `Op type not registered`.
        InvalidArgumentError: inputs or attrs do not fit.
    """
    graph = get_default_graph()
    op_def = graph.look_up(op).op_def
    if _is_one_value(inputs):
        inputs = [inputs]
    if (
        len(op_def.input_arg) == 1
        and op_def.input_arg[0].name == "inputs"
        and inputs
        and not any(isinstance(item, list | tuple) for item in inputs)
    ):
        inputs = [inputs]  # `inputs=[a, b]` for an op with a single list input of that name
    if keywords:
        inputs, attrs = _by_name(op_def, inputs, attrs or {}, keywords)
    node = graph.apply_op(op, inputs, attrs, name)
    if not node.outputs:
        return node
    return node.outputs[0] if len(node.outputs) == 1 else list(node.outputs)


def _is_one_value(inputs: Any) -> bool:
    """True iff it is a tensor, variable, array or scalar, and so not a list of inputs."""
    return isinstance(inputs, str | bytes) or hasattr(inputs, "dtype") or not isinstance(inputs, Iterable)


def _by_name(
    op_def: OpDef, inputs: Sequence[Any], attrs: Mapping[str, Any], keywords: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Combine positional inputs and attrs with those given by name."""
    by_name = dict(keywords)
    following = [arg.name for arg in op_def.input_arg[len(inputs) :]]
    missing = [name for name in following if name not in by_name]
    if missing:
        raise InvalidArgumentError(
            f"Op {op_def.name} takes the inputs {', '.join(map(repr, following))}; {missing[0]!r} is not given", op=op_def.name
        )
    whole = [*inputs, *[by_name.pop(name) for name in following]]
    twice = next((name for name in by_name if name in attrs), None)
    if twice is not None:
        raise InvalidArgumentError(f"Attr '{twice}' is given twice to op {op_def.name}", op=op_def.name, attr=twice)
    return whole, {**attrs, **{name: value for name, value in by_name.items() if value is not None}}
