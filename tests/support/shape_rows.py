"""The row notation of shape functions: `[1,?];?` for inputs, `[d0_0|d1_0,2];in1|in2;?` for results.

`?` is an unknown shape or size, `inN` the handle of input N itself, `dI_J` the dimension J of input I itself, `a|b` either. A number or `?`
must not be a handle of an input, but a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from graphcore.attrs import AttrValue, as_attr_value
from graphcore.definitions.types import PRODUCER_VERSION, ArgDef, OpDef
from graphcore.dtypes import float32
from graphcore.errors import InvalidArgumentError
from graphcore.inference import DimensionHandle, InferenceContext, ShapeHandle, shape_of_sizes

ShapeFunction = Callable[[InferenceContext], None]


def shape(text: str) -> ShapeHandle:
    """A new handle for `?`, `[]`, `[1,?,3]`."""
    if text == "?":
        return ShapeHandle()
    inner = text.strip()[1:-1]
    return shape_of_sizes([-1 if size.strip() == "?" else int(size) for size in inner.split(",")] if inner else [])


def shapes(text: str) -> list[ShapeHandle]:
    """New handles for shapes between semicolons."""
    return [shape(part) for part in text.split(";")] if text else []


def context(
    inputs: str | list[ShapeHandle],
    *,
    op: str = "Op",
    outputs: int = 1,
    attrs: Mapping[str, object] | None = None,
    values: Sequence[object] = (),
    partial: Mapping[int, str] | None = None,
    producer: int = PRODUCER_VERSION,
) -> InferenceContext:
    """A context for a node `x`.

    Args:
        inputs: the shapes, in row notation or as handles.
        op, outputs: the name of the op and the number of its outputs.
        attrs: as in user code.
        values: constant input values by slot, None for unknown ones; Python ints become int32.
        partial: inputs whose value is known as a shape, by slot.
        producer: the version of the graph.
    """
    op_def = OpDef(name=op, output_arg=tuple([ArgDef(name=f"y{i}", type=float32) for i in range(outputs)]))
    arrays = [None if value is None else as_array(value) for value in values]
    as_shapes = {slot: shape(text) for slot, text in (partial or {}).items()}
    attr_values: dict[str, AttrValue] = {name: as_attr_value(value) for name, value in (attrs or {}).items()}

    def input_tensor(i: int) -> npt.NDArray[Any] | None:
        return arrays[i] if i < len(arrays) else None

    handles = shapes(inputs) if isinstance(inputs, str) else inputs
    return InferenceContext(
        "x", op_def, attr_values, handles, graph_def_version=producer, input_tensor=input_tensor, input_partial_shape=as_shapes.get
    )


def as_array(value: object) -> npt.NDArray[Any]:
    """An array; Python ints become int32, Python floats float32."""
    array = np.asarray(value)
    if isinstance(value, np.ndarray | np.generic):
        return array
    if array.size == 0:
        return array.astype(np.int32)
    return array.astype({"i": np.int32, "f": np.float32}.get(array.dtype.kind, array.dtype))


def infer(function: ShapeFunction, inputs: str, **given: Any) -> InferenceContext:
    """Run a shape function on a new context. Returns the context."""
    c = context(inputs, **given)
    c.run(function)
    return c


def assert_row(c: InferenceContext, expected: str) -> None:
    """Check the outputs against the row, handles included."""
    rows = expected.split(";") if expected else []
    assert len(rows) == c.num_outputs, f"{len(rows)} outputs expected, {c.num_outputs} there"
    for i, row in enumerate(rows):
        _assert_shape(c, c.output(i), row, f"output {i}")


def assert_handle(c: InferenceContext, got: ShapeHandle, expected: str) -> None:
    """Check one shape against the row."""
    _assert_shape(c, got, expected, "shape")


def _assert_shape(c: InferenceContext, got: ShapeHandle, row: str, where: str) -> None:
    same_as = [f"in{i}" for i, given in enumerate(c.inputs) if given is got]
    if row.startswith("in"):
        assert set(row.split("|")) & set(same_as), f"{where}: expected {row}, got {got}, same as {same_as}"
        return
    assert not same_as, f"{where}: expected {row}, got the handle of {same_as}"
    if row == "?":
        assert got.dims is None, f"{where}: expected ?, got {got}"
        return
    wanted = row[1:-1].split(",") if row != "[]" else []
    assert got.dims is not None, f"{where}: expected {row}, got ?"
    assert len(got.dims) == len(wanted), f"{where}: expected {row}, got {got}"
    for j, (dim, text) in enumerate(zip(got.dims, wanted, strict=True)):
        _assert_dim(c, dim, text.strip(), f"{where}, dimension {j} of {got}")


def _assert_dim(c: InferenceContext, got: DimensionHandle, text: str, where: str) -> None:
    same_as = [f"d{i}_{j}" for i, given in enumerate(c.inputs) for j, dim in enumerate(given.dims or ()) if dim is got]
    if text.startswith("d"):
        assert set(text.split("|")) & set(same_as), f"{where}: expected {text}, got {got}, same as {same_as}"
        return
    assert not same_as, f"{where}: expected {text}, got the handle of {same_as}"
    assert str(got) == text, f"{where}: expected {text}, got {got}"


def case(name: str, function: ShapeFunction, inputs: str, expected: str, **given: Any) -> Any:
    """A parameter set for `(function, inputs, expected, given)` with the row as id."""
    return pytest.param(function, inputs, expected, given, id=f"{name} {inputs} -> {expected}")


def bad(name: str, function: ShapeFunction, inputs: str, text: str, **given: Any) -> Any:
    """A parameter set for `(function, inputs, text, given)`: refused with that text."""
    return pytest.param(function, inputs, text, given, id=f"{name} {inputs} !! {text[:50]}")


def refusal(function: ShapeFunction, inputs: str, **given: Any) -> str:
    """The whole error message of a shape function."""
    with pytest.raises(InvalidArgumentError) as caught:
        infer(function, inputs, **given)
    return caught.value.message
