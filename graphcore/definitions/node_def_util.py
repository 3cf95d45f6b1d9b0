"""Prints, checks and completes NodeDefs."""

from __future__ import annotations

import msgspec

from graphcore.attrs import Attrs, Placeholder
from graphcore.definitions.attr_equality import attr_values_equal
from graphcore.definitions.attr_value_util import validate_attr_value
from graphcore.definitions.op_def_util import summarize_op_def
from graphcore.definitions.op_tables import OpTables, in_out_types_for_node, tables_of
from graphcore.definitions.types import NodeDef, OpDef
from graphcore.definitions.value_text import summarize_attr_value
from graphcore.dtypes import DType
from graphcore.errors import GraphError, InvalidArgumentError


def format_node_for_error(node_def: NodeDef) -> str:
    """`{{node n}}`, or the original nodes that it was made from.

    The latter reads `{{function_node f}}{{node n}}, ...`.
    """
    if not node_def.original_node_names:
        return f"{{{{node {node_def.name}}}}}"
    functions = node_def.original_func_names
    return ", ".join(
        (f"{{{{function_node {functions[i]}}}}}" if i < len(functions) else "") + f"{{{{node {name}}}}}"
        for i, name in enumerate(node_def.original_node_names)
    )


def attach_def(error: GraphError, node_def: NodeDef, *, allow_multiple: bool = False) -> GraphError:
    r"""Return an error of the same class with the node appended: `...\n\t [[{{node a}}]]`.

    Args:
        error: the error.
        node_def: the node.
        allow_multiple: mark up this node even if the message contains a marked-up one; otherwise it is named plainly.
    """
    plain = not allow_multiple and "{{node " in error.message
    where = node_def.name if plain else format_node_for_error(node_def)
    return type(error)(
        f"{error.message}\n\t [[{where}]]",
        op=error.op or node_def.op,
        node=error.node or node_def.name,
        attr=error.attr,
        input=error.input,
        source=error.source,
    )


def summarize_attrs(attrs: Attrs, device: str = "") -> str:
    """`T=DT_FLOAT, _device="/cpu:0"`: sorted by name, the device last."""
    parts = [f"{name}={summarize_attr_value(attrs[name])}" for name in sorted(attrs)]
    if device:
        parts.append(f'_device="{device}"')
    return ", ".join(parts)


def summarize_node_def(node_def: NodeDef) -> str:
    """`{{node n}} = Op[T=DT_FLOAT](a, b:1, ^c)`."""
    attrs = summarize_attrs(node_def.attr, node_def.device)
    return f"{{{{node {node_def.name}}}}} = {node_def.op}[{attrs}]({', '.join(node_def.input)})"


def validate_node_def(node_def: NodeDef, op_def: OpDef) -> None:
    """Check that a node fits its op: name, inputs, and presence, kind and limits of attrs.

    Raises:
        InvalidArgumentError: it does not.
        NotFoundError: an attr that decides types is missing.
    """
    if node_def.op != op_def.name:
        raise _error(f"NodeDef op '{node_def.op}' does not match {_both(node_def, op_def)}", node_def)
    tables = tables_of(op_def)
    num_inputs = 0
    for name in node_def.input:
        if name[:1] == "^":
            check_control_inputs(node_def, num_inputs)
            break
        num_inputs += 1
    if check_attrs(node_def.attr, node_def, tables) < len(op_def.attr):
        fail_missing_attrs(node_def, op_def)
    inputs, _ = in_out_types_for_node(node_def, op_def)
    if num_inputs != len(inputs):
        expected = ", ".join(dtype.text for dtype in inputs)
        raise _error(
            f"NodeDef expected inputs '{expected}' do not match {num_inputs} inputs specified; {_both(node_def, op_def)}", node_def
        )


def check_attrs(attrs: Attrs, node_def: NodeDef, tables: OpTables) -> int:
    """Check the attrs `attrs` of the node. Returns the number of those that belong to the op.

    Raises:
        InvalidArgumentError: one is unknown to the op, of the wrong kind, or beyond its limits.
    """
    checks = tables.checks
    seen = 0
    for name, value in attrs.items():
        check = checks.get(name)
        if check is None:
            _require_internal(name, node_def, tables.op_def)
            continue
        seen += 1
        kind = type(value)
        if kind is check.scalar or (check.allowed is not None and value in check.allowed) or kind is Placeholder:
            continue
        if kind is int and check.minimum is not None and value >= check.minimum:  # type: ignore[operator]  # an int, as just seen
            continue
        try:
            validate_attr_value(value, check.attr)
        except GraphError as error:
            text = f"{error.message}\n\t; NodeDef: {format_node_for_error(node_def)}; {summarize_op_def(tables.op_def)}"
            raise type(error)(text, op=node_def.op, node=node_def.name, attr=name) from None
    return seen


def _error(text: str, node_def: NodeDef, attr: str = "") -> InvalidArgumentError:
    return InvalidArgumentError(text, op=node_def.op, node=node_def.name, attr=attr)


def _both(node_def: NodeDef, op_def: OpDef) -> str:
    return f"{summarize_op_def(op_def)}; NodeDef: {format_node_for_error(node_def)}"


def check_control_inputs(node_def: NodeDef, start: int) -> None:
    """Require all inputs from `start` on to be control inputs without a port.

    Raises:
        InvalidArgumentError: one is not.
    """
    for name in node_def.input[start:]:
        if name[:1] != "^":
            raise _error(f"Non-control input '{name}' after control input in NodeDef: {format_node_for_error(node_def)}", node_def)
        if ":" in name:
            raise _error(f"Control input '{name}' must not have ':' in NodeDef: {format_node_for_error(node_def)}", node_def)


def _require_internal(name: str, node_def: NodeDef, op_def: OpDef) -> None:
    if name[:1] != "_":
        raise _error(
            f"NodeDef mentions attr '{name}' not in {_both(node_def, op_def)}. "
            f"(The graph may have been made for a newer definition of this op.)",
            node_def,
            name,
        )


def fail_missing_attrs(node_def: NodeDef, op_def: OpDef) -> None:
    """Raise an error that names the op's attrs that the node lacks.

    Raises:
        InvalidArgumentError: always.
    """
    missing = [attr.name for attr in op_def.attr if attr.name not in node_def.attr or attr.name.startswith("_")]
    if not missing:
        raise _error(f"OpDef has duplicate attr name '{_duplicate(op_def)}': {summarize_op_def(op_def)}", node_def)
    names = "', '".join(missing)
    raise _error(f"NodeDef missing attr{'s' if len(missing) > 1 else ''} '{names}' from {_both(node_def, op_def)}", node_def, missing[0])


def _duplicate(op_def: OpDef) -> str:
    names = [attr.name for attr in op_def.attr]
    return next(name for name in names if names.count(name) > 1)


def add_default_attrs(node_def: NodeDef, op_def: OpDef) -> NodeDef:
    """The node with the op's default for every attr that it lacks; the node itself if it lacks none."""
    defaults = tables_of(op_def).defaults
    attr = node_def.attr
    for name in defaults:
        if name not in attr:
            break
    else:
        return node_def
    missing = {name: value for name, value in defaults.items() if name not in attr}
    return msgspec.structs.replace(node_def, attr={**attr, **missing})


def strip_default_attrs(node_def: NodeDef, op_def: OpDef) -> NodeDef:
    """The node without the attrs that equal the op's default, for readers with fewer attrs."""
    defaults = tables_of(op_def).defaults
    kept = {name: value for name, value in node_def.attr.items() if name not in defaults or not attr_values_equal(defaults[name], value)}
    return msgspec.structs.replace(node_def, attr=kept) if len(kept) < len(node_def.attr) else node_def


def input_type_for_node(node_def: NodeDef, op_def: OpDef, index: int) -> DType:
    """The type of input `index`.

    Raises:
        InvalidArgumentError: there is no such input.
    """
    return _type_at(in_out_types_for_node(node_def, op_def)[0], index, "Input", node_def)


def output_type_for_node(node_def: NodeDef, op_def: OpDef, index: int) -> DType:
    """The type of output `index`.

    Raises:
        InvalidArgumentError: there is no such output.
    """
    return _type_at(in_out_types_for_node(node_def, op_def)[1], index, "Output", node_def)


def _type_at(types: tuple[DType, ...], index: int, direction: str, node_def: NodeDef) -> DType:
    if not 0 <= index < len(types):
        raise InvalidArgumentError(f"{direction} {index} not found for node {node_def.name}", op=node_def.op, node=node_def.name)
    return types[index]
