"""Rules that compute the partial value of each op's output. A rule returns None if nothing is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from graphcore.errors import InvalidArgumentError
from graphcore.inference.expressions import unknown_result
from graphcore.inference.handles import UNKNOWN, DimensionHandle
from graphcore.inference.partial_types import MAX_ITEMS, Item, PartialValue, Rule, ValueView
from graphcore.inference.strided_slice import SliceSpec, strided_slice


def _number(item: Item) -> int | None:
    if isinstance(item, int):
        return item
    return None if item.value == UNKNOWN else item.value


def _shape_rule(view: ValueView) -> PartialValue | None:
    dims = view.shape(view.index).dims
    return None if dims is None else PartialValue(dims)


def _rank_rule(view: ValueView) -> PartialValue | None:
    dims = view.shape(0).dims
    return None if dims is None else PartialValue((len(dims),), is_scalar=True)


def _size_rule(view: ValueView) -> PartialValue | None:
    dims = view.shape(0).dims
    return None if dims is None else PartialValue((_product(dims),), is_scalar=True)


def _product(items: Sequence[Item]) -> Item:
    product: Item = 1
    for item in items:
        product = _multiply(product, item)
    return product


def _same_rule(view: ValueView) -> PartialValue | None:
    return view.value(0)


def _cast_rule(view: ValueView) -> PartialValue | None:
    types = [getattr(view.attrs.get(name), "name", "") for name in ("SrcT", "DstT")]
    return view.value(0) if all(name in {"int32", "int64"} for name in types) else None


def _pack_rule(view: ValueView) -> PartialValue | None:
    items: list[Item] = []
    for slot in range(len(view.node.inputs)):
        value = view.value(slot)
        if value is not None and not value.is_scalar:
            return None
        items.append(DimensionHandle() if value is None else value.items[0])
    return PartialValue(tuple(items))


def _concat_rule(values: slice) -> Callable[[ValueView], PartialValue | None]:
    def rule(view: ValueView) -> PartialValue | None:
        items: list[Item] = []
        for slot in range(len(view.node.inputs))[values]:
            value = view.value(slot)
            if value is None or value.is_scalar:
                return None
            items.extend(value.items)
        return PartialValue(tuple(items)) if len(items) <= MAX_ITEMS else None

    return rule


def _strided_slice_rule(view: ValueView) -> PartialValue | None:
    value = view.value(0)
    if value is None or value.is_scalar or view.int_attr("ellipsis_mask") or view.int_attr("new_axis_mask"):
        return None
    positions = _sliced_positions(view, len(value.items))
    if positions is None:
        return None
    return PartialValue(tuple([value.items[i] for i in positions]), bool(view.int_attr("shrink_axis_mask")))


def _sliced_positions(view: ValueView, length: int) -> range | None:
    begin, end, strides = view.constant(1), view.constant(2), view.constant(3)
    if begin is None or end is None or strides is None or not begin.shape == end.shape == strides.shape == (1,):
        return None  # a changed graph may be inconsistent; the error is reported at the slice
    masks = (view.int_attr("begin_mask"), view.int_attr("end_mask"), 0, 0, view.int_attr("shrink_axis_mask"))
    try:
        sliced = strided_slice([length], SliceSpec(begin.tolist(), end.tolist(), strides.tolist(), *masks))
    except InvalidArgumentError:
        return None  # the error is reported at the slice, not at the node that uses its value
    first, last = sliced.begin[0], sliced.end[0]
    return None if first is None or last is None else range(first, last, sliced.strides[0])


def _slice_rule(view: ValueView) -> PartialValue | None:
    value, begin, size = view.value(0), view.constant(1), view.constant(2)
    if value is None or value.is_scalar or begin is None or size is None or not begin.shape == size.shape == (1,):
        return None
    first, count = int(begin[0]), int(size[0])
    return PartialValue(value.items[first:] if count == -1 else value.items[first : first + count])


def _gather_rule(view: ValueView) -> PartialValue | None:
    value, indices = view.value(0), view.constant(1)
    if value is None or value.is_scalar or indices is None or indices.ndim > 1 or view.int_attr("batch_dims"):
        return None
    positions = indices.reshape(-1).tolist()
    if any(not 0 <= position < len(value.items) for position in positions):
        return None
    return PartialValue(tuple([value.items[position] for position in positions]), indices.ndim == 0)


def _unpack_rule(view: ValueView) -> PartialValue | None:
    value = view.value(0)
    if value is None or value.is_scalar or view.index >= len(value.items):
        return None
    return PartialValue((value.items[view.index],), is_scalar=True)


def _reshaping_rule(view: ValueView) -> PartialValue | None:
    """ExpandDims, Squeeze, Reshape: the same numbers in another shape."""
    value, shape = view.value(0), view.own_shape()
    if value is None or shape.dims is None or len(shape.dims) > 1:
        return None
    return PartialValue(value.items, is_scalar=not shape.dims)


def _product_rule(view: ValueView) -> PartialValue | None:
    value, out = view.value(0), view.own_shape().dims
    if value is None or value.is_scalar or out is None or [dim.value for dim in out] not in ([], [1]):
        return None
    return PartialValue((_product(value.items),), is_scalar=not out)


def _fill_rule(view: ValueView) -> PartialValue | None:
    dims, value = view.constant(0), view.value(1)
    if dims is None or value is None or dims.size != 1 or not 0 <= int(dims[0]) <= MAX_ITEMS:
        return None
    return PartialValue(value.items * int(dims[0]))


def _add(a: Item, b: Item) -> Item:
    return _combined("+", a, b, neutral=0, of=lambda x, y: x + y)


def _subtract(a: Item, b: Item) -> Item:
    if _number(b) == 0:
        return a
    x, y = _number(a), _number(b)
    return unknown_result("-", a, b) if x is None or y is None else x - y


def _multiply(a: Item, b: Item) -> Item:
    return 0 if 0 in {_number(a), _number(b)} else _combined("*", a, b, neutral=1, of=lambda x, y: x * y)


def _floor_div(a: Item, b: Item) -> Item:
    x, y = _number(a), _number(b)
    if y == 1:
        return a
    if y == 0:
        return DimensionHandle()
    return unknown_result("/", a, b) if x is None or y is None else x // y


def _maximum(a: Item, b: Item) -> Item:
    return _extreme(a, b, max)


def _minimum(a: Item, b: Item) -> Item:
    return _extreme(a, b, min)


def _combined(operator: str, a: Item, b: Item, *, neutral: int, of: Callable[[int, int], int]) -> Item:
    x, y = _number(a), _number(b)
    if x == neutral:
        return b
    if y == neutral:
        return a
    return unknown_result(operator, a, b) if x is None or y is None else of(x, y)


def _extreme(a: Item, b: Item, of: Callable[[int, int], int]) -> Item:
    if a is b:
        return a
    x, y = _number(a), _number(b)
    return DimensionHandle() if x is None or y is None else of(x, y)


def _elementwise(of: Callable[[Item, Item], Item]) -> Callable[[ValueView], PartialValue | None]:
    def rule(view: ValueView) -> PartialValue | None:
        first, second = view.value(0), view.value(1)
        if first is None or second is None:
            return None
        a, b = first.items, second.items
        if len(a) != len(b) and 1 not in {len(a), len(b)}:
            return None
        count = len(b) if len(a) == 1 else len(a)
        items = [of(a[i % len(a)], b[i % len(b)]) for i in range(count)]
        return PartialValue(tuple(items), first.is_scalar and second.is_scalar)

    return rule


SHAPE: Final = Rule(_shape_rule, reads_values=False)
RANK: Final = Rule(_rank_rule, reads_values=False, reads_rank=True)
SIZE: Final = Rule(_size_rule, reads_values=False, combines=True)
SAME: Final = Rule(_same_rule)
CAST: Final = Rule(_cast_rule)
PACK: Final = Rule(_pack_rule)
UNPACK: Final = Rule(_unpack_rule)
CONCAT_AXIS_FIRST: Final = Rule(_concat_rule(slice(1, None)))
CONCAT_AXIS_LAST: Final = Rule(_concat_rule(slice(None, -1)))
STRIDED_SLICE: Final = Rule(_strided_slice_rule)
SLICE: Final = Rule(_slice_rule)
GATHER: Final = Rule(_gather_rule)
RESHAPING: Final = Rule(_reshaping_rule)
PRODUCT: Final = Rule(_product_rule, combines=True)
FILL: Final = Rule(_fill_rule)
ADD: Final = Rule(_elementwise(_add))
SUBTRACT: Final = Rule(_elementwise(_subtract))
MULTIPLY: Final = Rule(_elementwise(_multiply))
FLOOR_DIVIDE: Final = Rule(_elementwise(_floor_div))
MAXIMUM: Final = Rule(_elementwise(_maximum))
MINIMUM: Final = Rule(_elementwise(_minimum))
