"""Partially known values, such as a vector of sizes with some known only at run time."""

from __future__ import annotations

from typing import Any

from graphcore.attrs import Array
from graphcore.errors import InvalidArgumentError
from graphcore.inference.handles import UNKNOWN, DimensionHandle, ShapeHandle, checked_rank
from graphcore.inference.partial_types import MAX_ITEMS, GetConstant, GetPartial, GetShape, NodeLike, PartialValue, ValueView
from graphcore.support.budget import may_take_steps


def partial_value(
    node: NodeLike, index: int, get_shape: GetShape, get_constant: GetConstant, get_known: GetPartial | None = None
) -> PartialValue | None:
    """The partial value of output `index` of `node`.

    None if not even its length is known, or the budget is used up.

    Dimensions that a Shape op reads remain the same handles, so that a shape made of them shares them. Iterative, so that chains may be of
    any length. Results of `get_known` are taken as given (a function's arguments).
    """
    values: dict[tuple[int, int], PartialValue | None] = {}
    if not may_take_steps(1):
        return None
    visited: set[tuple[int, int]] = set()
    pending: list[tuple[Any, int]] = [(node, index)]
    while pending:
        current, output = pending[-1]
        key = (id(current), output)
        rule = None
        if key not in visited:
            visited.add(key)
            constant = get_constant(current, output)
            if constant is not None:
                values[key] = _from_array(constant)
            elif get_known is not None and (partial := get_known(current, output)) is not None:
                values[key] = partial
            rule = current.registration.traits.partial_rule
        if key in values:
            pending.pop()
        elif rule is not None and rule.reads_values:
            pending.extend([(tensor.node, tensor.index) for tensor in current.inputs])
        else:
            pending.pop()
            values[key] = _evaluate(ValueView(current, output, values, get_shape, get_constant))
    may_take_steps(len(visited))
    return values[id(node), index]


def partial_shape(
    node: NodeLike, index: int, get_shape: GetShape, get_constant: GetConstant, get_known: GetPartial | None = None
) -> ShapeHandle | None:
    """The value of output `index` of `node` as a shape, -1 for an unknown size.

    None if nothing is known.

    Raises:
        InvalidArgumentError: a size below -1.
    """
    constant = get_constant(node, index)
    value = partial_value(node, index, get_shape, get_constant, get_known) if constant is None else _from_array(constant)
    return None if value is None or value.is_scalar else as_shape_handle(value)


def as_shape_handle(value: PartialValue) -> ShapeHandle:
    """A vector interpreted as a shape; dimensions are shared.

    Raises:
        InvalidArgumentError: a size below -1.
    """
    checked_rank(len(value.items))
    dims: list[DimensionHandle] = []
    for item in value.items:
        if isinstance(item, DimensionHandle):
            dims.append(item)
            continue
        if item < UNKNOWN:
            raise InvalidArgumentError(f"Invalid value in tensor used for shape: {item}")
        dims.append(DimensionHandle(item))
    return ShapeHandle(tuple(dims))


def _evaluate(view: ValueView) -> PartialValue | None:
    rule = view.node.registration.traits.partial_rule
    value = None if rule is None else rule.apply(view)
    return _of_unknown_items(view.own_shape()) if value is None else value


def _from_array(array: Array) -> PartialValue | None:
    if array.ndim > 1 or array.dtype.kind not in "iu" or array.size > MAX_ITEMS:
        return None
    return PartialValue(tuple(array.reshape(-1).tolist()), array.ndim == 0)


def _of_unknown_items(shape: ShapeHandle) -> PartialValue | None:
    """A vector of known length whose numbers are unknown."""
    if shape.dims is None or len(shape.dims) > 1:
        return None
    if not shape.dims:
        return PartialValue((DimensionHandle(),), is_scalar=True)
    length = shape.dims[0].value
    return None if not 0 <= length <= MAX_ITEMS else PartialValue(tuple([DimensionHandle() for _ in range(length)]))
