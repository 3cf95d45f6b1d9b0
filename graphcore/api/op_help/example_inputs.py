"""The inputs of an op's example as arrays of the op's types."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.definitions import ArgDef, OpDef
from graphcore.dtypes import DType, as_dtype, resource, variant

_OF_PYTHON: Final[dict[str, Any]] = {"float64": np.float32, "int64": np.int32}


def example_inputs(op_def: OpDef, example: Any) -> list[list[Array]] | None:
    """The arrays of each argument, one for an argument that is no list.

    None for an op on variables, resources or lists of tensors.
    """
    if any(arg.is_ref or arg.type in (resource, variant) or arg.type_list_attr for arg in op_def.input_arg):
        return None
    types = {name: as_dtype(value) for name, value in example.attrs.items() if _is_type(op_def, name)}
    examples = []
    for arg, value in zip(op_def.input_arg, example.inputs, strict=True):
        arrays = [_array(part, arg.type or types.get(arg.type_attr)) for part in (value if arg.number_attr else [value])]
        if arg.type_attr and arrays:
            types.setdefault(arg.type_attr, as_dtype(arrays[0].dtype))
        examples.append(arrays)
    return examples


def argument(arg: ArgDef, tensors: list[Any]) -> Any:
    """The value of an argument of an op: a tensor, or a list of them."""
    return tensors if arg.number_attr else tensors[0]


def _is_type(op_def: OpDef, name: str) -> bool:
    attr = op_def.find_attr(name)
    return attr is not None and attr.type == "type"


def _array(value: Any, dtype: DType | None) -> Array:
    array = np.asarray(value)
    if dtype is not None:
        return array.astype(dtype.as_numpy)
    if array.dtype.kind == "S":
        return array.astype(np.object_)
    return array if isinstance(value, np.ndarray | np.generic) else array.astype(_OF_PYTHON.get(array.dtype.name, array.dtype))
