"""The sections on shapes and an example in the help of an op."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from graphcore.api.op_help.shape_rules import MOST_VALUES, Use, uses
from graphcore.attrs import Array, TensorValue
from graphcore.definitions import OpDef
from graphcore.dtypes import as_dtype, bool_, float32, int32, string
from graphcore.errors import GraphError
from graphcore.registry import op_registry
from graphcore.runtime import GraphRunner
from graphcore.shapes import Shape

_OF_PYTHON: Final = frozenset({float32, int32, string, bool_})
_NOT_FINITE: Final = re.compile(r"\b(inf|nan)\b")
_MOST_CHARACTERS: Final = 120
"""The most characters of the values of all inputs."""


def op_of(function: object) -> OpDef | None:
    """The op of a function of `gc.ops`, None for everything else."""
    name = getattr(function, "op_name", None) if callable(function) and not isinstance(function, type) else None
    return op_registry.look_up_op_def(name) if isinstance(name, str) else None


def help_sections(op_def: OpDef, function: str) -> str:
    """The formulas of shapes and an example as text.

    Empty for ops on variables, resources and lists of tensors.

    Args:
        op_def: the op.
        function: its name in `gc.ops`.
    """
    op_uses = uses(op_def)
    if not op_uses:
        return ""
    shapes = [f"    {line}" for line in shape_lines(op_uses)]
    example = [f"    {line}" for line in example_lines(op_uses[0], function)]
    return "\n".join(["Shapes:", *shapes, "", *(["Example:", *example, ""] if example else [])])


def shape_lines(op_uses: list[Use]) -> list[str]:
    """The formulas of all uses, each with its attrs."""
    return [line for use in op_uses for line in (*use.formula_lines, f"    {given_attrs(use)}") if line.strip()]


def given_attrs(use: Use) -> str:
    """`with strides=[1, 1, 1, 1], padding='SAME'`; "" without attrs."""
    attr_text = _attrs(use)
    return f"with {attr_text}" if attr_text else ""


def example_lines(use: Use, function: str) -> list[str]:
    """The call of an example, and the types, shapes and values that it takes and gives.

    No lines if an attr cannot be written.
    """
    if any(isinstance(value, TensorValue) for value in use.attrs.values()):
        return []
    values = [_input(array) for array in use.arrays.values()]
    small = all(0 < array.size <= MOST_VALUES for array in use.arrays.values()) and len(", ".join(values)) <= _MOST_CHARACTERS
    inputs = values if small else list(use.arrays)
    results = _results(use)
    lines = [f"gc.ops.{function}({', '.join([*_arguments(use, inputs), *filter(None, [_attrs(use)])])})"]
    taken = [] if small else [f"{name} {_type(array)}" for name, array in use.arrays.items()]
    result_texts = [_value(result) if result.size <= MOST_VALUES else _type(result) for result in results]
    arrow = " -> ".join(filter(None, [", ".join(taken), ", ".join(result_texts)]))
    return [*lines, f"    {arrow if taken or not result_texts else f'-> {arrow}'}"] if arrow else lines


def _arguments(use: Use, texts: list[str]) -> list[str]:
    """The texts of all arguments; those of a list argument in brackets."""
    arguments, left = [], iter(texts)
    for arg in use.node.registration.op_def.input_arg:
        if not arg.number_attr:
            arguments.append(next(left))
            continue
        count = use.node.node_def.attr[arg.number_attr]
        assert isinstance(count, int), "the attr of a list's length is a number"
        arguments.append(f"[{', '.join([next(left) for _ in range(count)])}]")
    return arguments


def _attrs(use: Use) -> str:
    """The attrs of the example that are arguments of the function."""
    op_def = use.node.registration.op_def
    inferred = {name for arg in op_def.input_arg for name in (arg.type_attr, arg.number_attr) if name}
    return ", ".join([f"{name}={_attr(value)}" for name, value in use.attrs.items() if name not in inferred])


def _attr(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join([_attr(item) for item in value])}]"
    return f"gc.{value!r}" if isinstance(value, Shape) else repr(value)


def _results(use: Use) -> list[Array]:
    """The outputs of the example, or none: an op with state, one that is not run here, or one that fails."""
    node = use.node
    if node.registration.op_def.is_stateful:
        return []
    feeds = {f"{name}:0": array for name, array in use.arrays.items() if node.graph[name].op != "Const"}
    try:
        return GraphRunner().run(node.graph, feeds, [tensor.name for tensor in node.outputs])
    except GraphError:
        return []


def _input(array: Array) -> str:
    """An array as an argument: a Python value where that becomes a tensor of its type."""
    dtype = as_dtype(array.dtype)
    return _value(array) if dtype in _OF_PYTHON else f"gc.constant({_value(array)}, {dtype!r})"


def _value(array: Array) -> str:
    rounded = array if array.dtype.kind in "OSUb" else np.asarray(array).astype(_wide(array)).round(4)
    values = rounded.tolist()
    return repr(values).replace("b'", "'") if array.dtype.kind in "OS" else _NOT_FINITE.sub(r"float('\1')", repr(values))


def _wide(array: Array) -> Any:
    return array.dtype if array.dtype.kind in "iuc" else np.float64


def _type(array: Array) -> str:
    return f"{as_dtype(array.dtype).text} [{','.join(map(str, array.shape))}]"
