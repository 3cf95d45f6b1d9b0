"""Slices and strided slices of a tensor, and their gradients."""

from __future__ import annotations

from typing import Any, Final

from graphcore.attrs import Attrs
from graphcore.inference import partial_rules
from graphcore.inference.shape_fns.common_shape_fns import slice_shape, strided_slice_grad_shape, strided_slice_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import INDEX_TYPE, index_type, index_typed, required_int, scalar
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.traits import FailsOn

_X: Final = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]


def _slice_grad(attrs: Attrs) -> str:
    """The gradient of the slice, padded with zeros around the slice.

    As in TensorFlow, it takes no size of -1; gradient builders substitute the actual sizes (`with_actual_sizes`).
    """
    wide = index_type(attrs, "Index").text == "int64"
    cast = "".join([f"  {name}_32 = Cast[DstT=int32, SrcT=int64]({name})\n" for name in ("begin", "size")]) if wide else ""
    begin, size = ("begin_32", "size_32") if wide else ("begin", "size")
    return index_typed(
        "Index",
        f"""[T:type](x:T, begin:{INDEX_TYPE}, size:{INDEX_TYPE}, dy:T) -> (dx:T, begin_grad:{INDEX_TYPE}, size_grad:{INDEX_TYPE}) {{
{cast}  one = {scalar("int32", 1)}
  b1 = ExpandDims[T=int32]({begin}, one)
  xs = Shape[T=$T](x)
  xs_b = Sub[T=int32](xs, {begin})
  xs_b_s = Sub[T=int32](xs_b, {size})
  a1 = ExpandDims[T=int32](xs_b_s, one)
  paddings = Concat[N=2, T=int32](one, b1, a1)
  dx = Pad[T=$T](dy, paddings)
  begin_grad = ZerosLike[T={INDEX_TYPE}](begin)
  size_grad = ZerosLike[T={INDEX_TYPE}](size)
}}""",
    )(attrs)


@op
class Slice:
    """The part of a tensor that begins at `begin` and has the sizes `size`.

    begin: the first index in each dimension, [rank]
    size: the size in each dimension, [rank]; -1 stands for the rest
    """

    pure = True
    signature = f"Slice[T:type, Index:{INDEX}](input:T, begin:Index, size:Index) -> (output:T)"
    shape = slice_shape
    partial_rule = partial_rules.SLICE
    can_fail = FailsOn(values=("begin", "size"))
    memory = "strided view"
    gradient = _slice_grad
    examples = (
        Example([_X, [1, 1], [1, 2]], outputs=[[[6.0, 7.0]]]),
        Example([_X, [0, 0], [3, 4]]),
        Example([_X, [0, 2], [2, 1]]),
        Example([_X, [1, 1], [-1, -1]]),
    )
    failures = (Example([_X, [-1, -1], [1, 2]]),)

    def kernel(k: KernelContext) -> Kernel:
        fixed_begin, fixed_size = constant_ints(k, 1), constant_ints(k, 2)
        if fixed_begin is not None and fixed_size is not None:
            return _fixed_slice(k, fixed_begin, fixed_size)

        def slice_(x: Any, begin: Any, size: Any) -> Any:
            low, high = ints(begin), ints(size)
            _check_slice(k, x.shape, low, high)
            return x[_slices(low, high)]

        return slice_


def _fixed_slice(k: KernelContext, begin: tuple[int, ...], size: tuple[int, ...]) -> Kernel:
    index = _slices(begin, size)
    if k.input_shapes and k.input_shapes[0].is_fully_defined:
        _check_slice(k, tuple([dim or 0 for dim in k.input_shapes[0]]), begin, size)
        return lambda x, *_: x[index]

    def checked(x: Any, *_: Any) -> Any:
        _check_slice(k, x.shape, begin, size)
        return x[index]

    return checked


def _slices(begin: tuple[int, ...], size: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple([slice(b, None if s == -1 else b + s) for b, s in zip(begin, size, strict=True)])


def _check_slice(k: KernelContext, shape: tuple[int, ...], begin: tuple[int, ...], size: tuple[int, ...]) -> None:
    if len(begin) != len(shape) or len(size) != len(shape):
        raise invalid(
            k, f"Expected begin and size arguments to be 1-D tensors of size {len(shape)}, but got {list(begin)} and {list(size)}"
        )
    for i, (b, s, n) in enumerate(zip(begin, size, shape, strict=True)):
        if not 0 <= b <= n:
            raise invalid(k, f"Expected begin[{i}] in [0, {n}], but got {b}")
        if s < -1 or b + s > n:
            raise invalid(k, f"Expected size[{i}] in [0, {n - b}], but got {s}")


MASKS: Final = "begin_mask:int = 0, end_mask:int = 0, ellipsis_mask:int = 0, new_axis_mask:int = 0, shrink_axis_mask:int = 0"
_MASK_ARGS: Final = "begin_mask=$begin_mask, ellipsis_mask=$ellipsis_mask, end_mask=$end_mask, new_axis_mask=$new_axis_mask, shrink_axis_mask=$shrink_axis_mask"
_MASK_ATTRS: Final = "begin_mask:int, end_mask:int, ellipsis_mask:int, new_axis_mask:int, shrink_axis_mask:int"


def _basic_index(k: KernelContext, begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Any, ...]:
    """NumPy's index expression for the masks; bit i of a mask refers to entry i."""
    masks = [required_int(k.attrs, name) for name in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")]
    index: list[Any] = []
    for i, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        no_begin, no_end, ellipsis, new_axis, shrink = (bool(mask >> i & 1) for mask in masks)
        if s == 0:
            raise invalid(k, f"strides[{i}] must be non-zero")
        if ellipsis:
            index.append(Ellipsis)
        elif new_axis:
            index.append(None)
        elif shrink:
            index.append(b)
        else:
            index.append(slice(None if no_begin else b, None if no_end else e, s))
    return tuple(index)


def with_index(k: KernelContext, first: int, use: Any) -> Kernel:
    """A kernel with begin, end, strides from input `first` on; `use(index, inputs)` computes."""
    constant_bounds = [constant_ints(k, first + i) for i in range(3)]
    begin, end, strides = constant_bounds
    if begin is not None and end is not None and strides is not None:
        index = _basic_index(k, begin, end, strides)
        return lambda *inputs: use(index, inputs)
    return lambda *inputs: use(_basic_index(k, *[ints(value) for value in inputs[first : first + 3]]), inputs)


@op
class StridedSlice:
    """A part of a tensor, as `input[begin:end:strides, ...]` in NumPy.

    begin: the first index in each entry
    end: the end, not included
    strides: the steps, not 0
    begin_mask: bit i set: entry i begins at its end of the dimension.
    end_mask: bit i set: entry i goes to the other end of the dimension.
    ellipsis_mask: the bit of the entry `...`.
    new_axis_mask: bit i set: entry i is a new dimension of size 1.
    shrink_axis_mask: bit i set: entry i is one index, and its dimension goes away.
    """

    pure = True
    signature = (
        f"StridedSlice[T:type, Index:{{int16, int32, int64}}, {MASKS}](input:T, begin:Index, end:Index, strides:Index) -> (output:T)"
    )
    shape = strided_slice_shape
    partial_rule = partial_rules.STRIDED_SLICE
    can_fail = FailsOn(values=("begin", "end", "strides"))
    memory = "strided view"
    examples = (
        Example([_X, [0, 1], [2, 4], [1, 2]], outputs=[[[2.0, 4.0], [6.0, 8.0]]]),
        Example([_X, [1, 0], [2, 0], [1, 1]], {"shrink_axis_mask": 1, "end_mask": 2}, outputs=[[5.0, 6.0, 7.0, 8.0]]),
        Example([_X, [0, -1], [0, 0], [1, -1]], {"ellipsis_mask": 1, "begin_mask": 2, "end_mask": 2}),
        Example([_X, [0, 1], [0, 3], [1, 1]], {"new_axis_mask": 1}),
        Example([_X, [-1, -1], [0, 0], [1, 1]], {"shrink_axis_mask": 3}, outputs=[12.0]),
    )
    failures = (Example([_X, [0, 1], [2, 4], [0, 0]]),)

    def gradient(attrs: Attrs) -> str:
        shape_type = ", out_type=int64" if index_type(attrs, "Index").text == "int64" else ""
        zeros = "".join(f"  {name}_grad = ZerosLike[T={INDEX_TYPE}]({name})\n" for name in ("begin", "end", "stride"))
        return index_typed(
            "Index",
            f"[T:type, Index:{{int32, int64}}, {_MASK_ATTRS}](x:T, begin:{INDEX_TYPE}, end:{INDEX_TYPE}, stride:{INDEX_TYPE}, dy:T)"
            f" -> (dx:T, begin_grad:{INDEX_TYPE}, end_grad:{INDEX_TYPE}, stride_grad:{INDEX_TYPE}) {{\n"
            f"  xs = Shape[T=$T{shape_type}](x)\n"
            f"  dx = StridedSliceGrad[Index=$Index, T=$T, {_MASK_ARGS}](xs, begin, end, stride, dy)\n"
            f"{zeros}}}",
        )(attrs)

    def kernel(k: KernelContext) -> Kernel:
        def take(index: tuple[Any, ...], inputs: tuple[Any, ...]) -> Any:
            try:
                return inputs[0][index]
            except IndexError as error:
                raise invalid(k, f"cannot take {written(index)} of a tensor of shape {list(inputs[0].shape)}: {error}") from error

        return with_index(k, 1, take)


def written(index: tuple[Any, ...]) -> str:
    """An index expression as in Python: `[1:3:1, ...]`."""

    def part(entry: Any) -> str:
        if isinstance(entry, slice):
            return ":".join("" if bound is None else str(bound) for bound in (entry.start, entry.stop, entry.step))
        return {None: "newaxis", Ellipsis: "..."}.get(entry, str(entry))

    return f"[{', '.join(part(entry) for entry in index)}]"


@op
class StridedSliceGrad:
    """Zeros of shape `shape`, with dy at the slice that StridedSlice takes for the same arguments.

    shape: the shape of the sliced tensor
    begin: the first index in each entry
    end: the end, not included
    strides: the steps, not 0
    dy: the values of the slice
    """

    pure = True
    signature = f"StridedSliceGrad[T:type, Index:{INDEX}, {MASKS}](shape:Index, begin:Index, end:Index, strides:Index, dy:T) -> (output:T)"
    shape = strided_slice_grad_shape
    examples = (
        Example([[3, 4], [0, 1], [2, 4], [1, 2], [[1.0, 2.0], [3.0, 4.0]]]),
        Example([[3, 4], [1, 0], [2, 0], [1, 1], [1.0, 2.0, 3.0, 4.0]], {"shrink_axis_mask": 1, "end_mask": 2}),
    )
    failures = (Example([[-1, -1], [0, 1], [2, 4], [1, 2], [[1.0, 2.0], [3.0, 4.0]]]),)

    def gradient(attrs: Attrs) -> str:
        names = ("shape", "begin", "end", "stride")
        zeros = "".join(f"  {name}_grad = ZerosLike[T={INDEX_TYPE}]({name})\n" for name in names)
        return index_typed(
            "Index",
            f"[T:type, Index:{{int32, int64}}, {_MASK_ATTRS}]({', '.join(f'{name}:{INDEX_TYPE}' for name in names)}, dy:T, grad:T)"
            f" -> ({', '.join(f'{name}_grad:{INDEX_TYPE}' for name in names)}, dy_grad:T) {{\n"
            f"{zeros}"
            f"  dy_grad = StridedSlice[Index=$Index, T=$T, {_MASK_ARGS}](grad, begin, end, stride)\n"
            "}",
        )(attrs)

    def kernel(k: KernelContext) -> Kernel:
        zeros, dtype = k.xp.zeros, k.dtype("T")

        def put(index: tuple[Any, ...], inputs: tuple[Any, ...]) -> Any:
            whole = zeros(ints(inputs[0]), dtype)
            whole[index] = inputs[4]
            return whole

        return with_index(k, 1, put)
