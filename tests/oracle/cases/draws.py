"""Hypothesis draws for ops: inputs and attrs of any shape, valid and invalid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import graphcore as gc
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn, reduction_shape, unchanged_shape
from graphcore.registry import OpRegistration

Array = npt.NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
TYPES = [
    *(gc.float16, gc.bfloat16, gc.float32, gc.float64, gc.complex64, gc.complex128, gc.bool_),
    *(gc.int8, gc.int16, gc.int32, gc.int64, gc.uint8, gc.uint16, gc.uint32, gc.uint64),
]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30])
SIZES = st.sampled_from([1, 2, 3, 4, 0, 2, 3])


@dataclass(frozen=True)
class Drawn:
    """One use of an op."""

    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]


Drawer = Callable[[Draw, OpRegistration], Drawn]


def dtype_of(draw: Draw, entry: OpRegistration, attr: str = "T", among: str = "") -> gc.DType:
    """A type that the op's signature allows."""
    found = next(item for item in entry.op_def.attr if item.name == attr)
    allowed = [dtype for dtype in TYPES if found.allowed_values is None or dtype in found.allowed_values]
    if among:
        allowed = [dtype for dtype in allowed if dtype.text in among.split()]
    return draw(st.sampled_from(allowed))  # type: ignore[no-any-return]  # an element of the list


def shape_of(draw: Draw, least: int = 0, most: int = 4) -> tuple[int, ...]:
    return tuple(draw(st.lists(SIZES, min_size=least, max_size=most)))


def values(draw: Draw, dtype: gc.DType, shape: tuple[int, ...], *, low: float = -4, high: float = 4, special: bool = True) -> Array:
    """Numbers of a type; floats include NaN and infinities."""
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    numpy: Any = dtype.as_numpy
    if dtype is gc.bool_:
        return random.random(shape) < 0.5
    if dtype.is_integer:
        return random.integers(0 if dtype.text.startswith("u") else int(low), int(high) + 1, shape).astype(numpy)
    array = random.uniform(low, high, shape)
    if special and dtype.is_floating and draw(st.booleans()):
        array = np.where(random.random(shape) < 0.3, random.choice(SPECIAL, shape), array)
    if dtype.is_complex:
        array = array + 1j * random.uniform(low, high, shape)
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(numpy)


def ints(values_: Any, dtype: str = "int32") -> Array:
    return np.asarray(values_, dtype)


def axis_of(draw: Draw, rank: int) -> int:
    """An axis, rarely one out of range."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([rank, -rank - 1]))  # type: ignore[no-any-return]  # an element of the list
    return draw(st.integers(-rank, rank - 1)) if rank else 0


def part_of(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with `shape`, rarely one that does not."""
    part = [size if draw(st.booleans()) else 1 for size in shape]
    part = part[draw(st.integers(0, len(part))) :]
    if part and draw(st.integers(0, 9)) == 0:
        part[0] += 1
    return tuple(part)


def unary(draw: Draw, entry: OpRegistration) -> Drawn:
    return Drawn((values(draw, dtype_of(draw, entry), shape_of(draw)),), {})


def binary(draw: Draw, entry: OpRegistration) -> Drawn:
    dtype, shape = dtype_of(draw, entry), shape_of(draw)
    other = part_of(draw, shape)
    pair = (shape, other) if draw(st.booleans()) else (other, shape)
    right = values(draw, dtype, pair[1])
    if dtype.is_integer and ("Div" in entry.op_def.name or "Mod" in entry.op_def.name):
        right = np.where(right == 0, right.dtype.type(3), right)  # dividing by zero ends TensorFlow's process
    if dtype.is_integer and entry.op_def.name in {"Pow", "LeftShift", "RightShift"}:
        right = abs(right)
    return Drawn((values(draw, dtype, pair[0]), right), {})


def reduction(draw: Draw, entry: OpRegistration) -> Drawn:
    boolean = entry.op_def.find_attr("T") is None
    shape = shape_of(draw)
    x = values(draw, gc.bool_ if boolean else dtype_of(draw, entry), shape)
    axes = (
        draw(st.lists(st.integers(-len(shape), len(shape) - 1), max_size=len(shape), unique_by=lambda i: i % len(shape))) if shape else []
    )
    if draw(st.integers(0, 9)) == 0:
        axes = [*axes, len(shape)]
    single = len(axes) == 1 and draw(st.booleans())
    kind = draw(st.sampled_from(["int32", "int64"]))
    return Drawn((x, ints(axes[0] if single else axes, kind)), {"keep_dims": draw(st.booleans())})


def scan(draw: Draw, entry: OpRegistration) -> Drawn:
    shape = shape_of(draw, 1)
    x = values(draw, dtype_of(draw, entry), shape)
    return Drawn((x, ints(axis_of(draw, len(shape)))), {"exclusive": draw(st.booleans()), "reverse": draw(st.booleans())})


def arg_reduction(draw: Draw, entry: OpRegistration) -> Drawn:
    shape = shape_of(draw, 1)
    x = values(draw, dtype_of(draw, entry), shape)
    return Drawn((x, ints(axis_of(draw, len(shape)))), {"output_type": draw(st.sampled_from(["int32", "int64"]))})


def matrices(draw: Draw, entry: OpRegistration) -> Drawn:
    """MatMul and its batched forms, with transposed operands."""
    name = entry.op_def.name
    dtype = dtype_of(draw, entry)
    rows, inner, columns = (draw(SIZES) for _ in range(3))
    flags = ("transpose_a", "transpose_b") if name == "MatMul" else ("adj_x", "adj_y")
    turned = [draw(st.booleans()) for _ in flags]
    batch = () if name == "MatMul" else shape_of(draw, 0, 2)
    other = part_of(draw, batch) if "V" in name else batch
    wrong = inner + (draw(st.integers(0, 9)) == 0)
    left, right = ((rows, inner), (wrong, columns))
    shapes = [(*some, *(pair[::-1] if flag else pair)) for some, pair, flag in ((batch, left, turned[0]), (other, right, turned[1]))]
    x, y = (values(draw, dtype, shape) for shape in shapes)
    return Drawn((x, y), dict(zip(flags, turned, strict=True)))


def convolution(draw: Draw, entry: OpRegistration) -> Drawn:
    dtype = dtype_of(draw, entry, among="half float double")
    batch, rows, columns = (draw(st.integers(1, 3)), draw(st.integers(1, 7)), draw(st.integers(1, 7)))
    channels, out = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    window = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    depthwise = entry.op_def.name.startswith("Depthwise")
    stride = draw(st.integers(1, 3))
    strides = [1, stride, stride if depthwise else draw(st.integers(1, 3)), 1]
    dilation = draw(st.integers(1, 2))
    attrs = {
        "strides": strides,
        "padding": draw(st.sampled_from(["SAME", "VALID"])),
        "dilations": [1, dilation, dilation, 1] if not depthwise or stride == 1 else [1, 1, 1, 1],
    }
    x = values(draw, dtype, (batch, rows, columns, channels))
    return Drawn((x, values(draw, dtype, (*window, channels, out))), attrs)


def pooling(draw: Draw, entry: OpRegistration) -> Drawn:
    dtype = dtype_of(draw, entry, among="half float double")
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 7)), draw(st.integers(1, 7)), draw(st.integers(1, 3)))
    attrs = {
        "ksize": [1, draw(st.integers(1, 3)), draw(st.integers(1, 3)), 1],
        "strides": [1, draw(st.integers(1, 3)), draw(st.integers(1, 3)), 1],
        "padding": draw(st.sampled_from(["SAME", "VALID"])),
    }
    # TensorFlow's MaxPool ignores NaN in a window, but neither along channels nor with argmax; ours propagates it.
    return Drawn((values(draw, dtype, shape, special=entry.op_def.name != "MaxPool"),), attrs)


def signature_of(entry: OpRegistration) -> tuple[str, ...]:
    return tuple([arg.type_attr or (arg.type.text if arg.type else "*") for arg in entry.op_def.input_arg])


def general(entry: OpRegistration) -> Drawer | None:
    """Inputs that fit the op by its signature and shape function, None if there are none."""
    op_def = entry.op_def
    simple = len(op_def.output_arg) == 1 and not op_def.is_stateful and not any(arg.is_ref for arg in op_def.input_arg)
    required = [attr for attr in op_def.attr if attr.default_value is None and attr.name != "T"]
    if not simple or required:
        return None
    if entry.shape_fn is unchanged_shape and signature_of(entry) == ("T",):
        return unary
    if entry.shape_fn is broadcast_binary_op_shape_fn and signature_of(entry) == ("T", "T"):
        return binary
    numeric = op_def.find_attr("Tidx") is not None  # ReduceJoin, of strings, takes axes of one type
    return reduction if entry.shape_fn is reduction_shape and numeric else None
