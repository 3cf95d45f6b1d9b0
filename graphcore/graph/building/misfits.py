"""Errors for unsupported input dtypes, in plain words: each input's dtype, and the line that made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from graphcore import dtypes
from graphcore.attrs import AttrValue
from graphcore.definitions import ArgDef, OpDef
from graphcore.dtypes import DType
from graphcore.errors import GraphError
from graphcore.graph.model.node import Tensor

_MOST_INPUTS: Final = 8
_MOST_DTYPES: Final = 6
_NOT_CAST: Final = (dtypes.string, dtypes.resource, dtypes.variant)

Inputs = Sequence[Tensor | list[Tensor]]
"""One item an input of the OpDef, a list for a list input."""


def dtype_misfit(op_def: OpDef, inputs: Inputs, attrs: Mapping[str, AttrValue]) -> tuple[str, str]:
    """Find the first input with an unsupported dtype.

    Args:
        op_def: the op.
        inputs: its inputs.
        attrs: the attrs given with them.

    Returns:
        The input's name, and the error; two empty texts if the dtypes are right.
    """
    types: dict[str, tuple[str, DType]] = {}
    for attr, value in attrs.items():
        if isinstance(value, DType):
            types[attr] = (f"attr '{attr}'", value)
    for name, arg, tensor in _named(op_def, inputs):
        actual = tensor.dtype.base
        wanted = arg.type.base if arg.type is not None else None
        if wanted is not None and actual is not wanted:
            return name, f"Input '{name}' of {op_def.name} must be {wanted.text}, but is {actual.text}{_advice(actual, wanted)}"
        if not arg.type_attr:
            continue
        before, wanted = types.setdefault(arg.type_attr, (f"'{name}'", actual))
        if actual is not wanted:
            text = f"{op_def.name} takes inputs of one dtype, but {before} is {wanted.text} and '{name}' is {actual.text}"
            return name, text + _advice(actual, wanted)
        allowed = next((attr.allowed_values for attr in op_def.attr if attr.name == arg.type_attr), None)
        if allowed is not None and actual not in allowed:
            return name, _not_allowed(op_def, name, actual, [dtype for dtype in allowed if isinstance(dtype, DType)])
    return "", ""


def cast_advice(error: GraphError, op_def: OpDef, inputs: Inputs) -> None:
    """Suggest the conversion of one input: integers to floats, else the second to the dtype of the first."""
    named = [(name, arg, tensor) for name, arg, tensor in _named(op_def, inputs) if arg.type_attr or arg.type is not None]
    wrong = next((tensor for name, _, tensor in named if name == error.input), None)
    arg = next((arg for name, arg, _ in named if name == error.input), None)
    if wrong is None or arg is None:
        return
    others = [tensor for _, other, tensor in named if other.type_attr == arg.type_attr and tensor.dtype.base is not wrong.dtype.base]
    if arg.type is not None or not others:
        _advise_on_one(error, op_def, arg, wrong)
        return
    target, source = others[0], wrong
    if source.dtype.is_floating and not target.dtype.is_floating:
        target, source = source, target
    if target.dtype.base in _NOT_CAST or source.dtype.base in _NOT_CAST:
        return
    error.advise(
        f"Convert one of them: `gc.cast(\u00ab{source.name}\u00bb, gc.{target.dtype.public_name})`.",
        required="inputs of one dtype",
        came=f"{others[0].dtype.base.text} and {wrong.dtype.base.text}",
    )


def _advise_on_one(error: GraphError, op_def: OpDef, arg: ArgDef, wrong: Tensor) -> None:
    """Suggest a conversion of an input that fits no dtype of its argument."""
    choices = next((attr.allowed_values for attr in op_def.attr if attr.name == arg.type_attr), None)
    wanted = [arg.type.base] if arg.type is not None else [dtype for dtype in choices or () if isinstance(dtype, DType)]
    if not wanted:
        return
    floats = [dtype for dtype in wanted if dtype in (dtypes.float32, dtypes.float64)]
    target = (floats or wanted)[0]
    if wrong.dtype.base in _NOT_CAST or target in _NOT_CAST:
        text = f"Give a tensor of type {target.text} here: there is no conversion from {wrong.dtype.base.text}."
    else:
        text = f"Convert it: `gc.cast(\u00ab{wrong.name}\u00bb, gc.{target.public_name})`."
    error.advise(
        text,
        required=f"a tensor of {target.text}{' or another of these types' if len(wanted) > 1 else ''}",
        came=f"one of {wrong.dtype.base.text}",
    )


def inputs_text(op_def: OpDef, inputs: Inputs) -> str:
    """The inputs, one a line: name, tensor, dtype, shape, and the line that made it."""
    named = list(_named(op_def, inputs))
    lines = [f"\n  {name}: '{tensor.name}' {tensor.dtype.text} {tensor.shape}{_made(tensor)}" for name, _, tensor in named[:_MOST_INPUTS]]
    return "".join(lines) + (f"\n  ... ({len(named)} inputs in all)" if len(named) > _MOST_INPUTS else "")


def _named(op_def: OpDef, inputs: Inputs) -> Iterator[tuple[str, ArgDef, Tensor]]:
    for arg, item in zip(op_def.input_arg, inputs, strict=False):
        if isinstance(item, list):
            yield from ((f"{arg.name}[{index}]", arg, tensor) for index, tensor in enumerate(item))
        else:
            yield arg.name, arg, item


def _made(tensor: Tensor) -> str:
    source = tensor.node.source
    return "" if source is None else f", made in {source.where}"


def _not_allowed(op_def: OpDef, name: str, actual: DType, allowed: list[DType]) -> str:
    if len(allowed) > _MOST_DTYPES:
        return f"Input '{name}' of {op_def.name} cannot be {actual.text}"
    choices = " or ".join([", ".join([dtype.text for dtype in allowed[:-1]]), allowed[-1].text] if len(allowed) > 1 else [allowed[0].text])
    return f"Input '{name}' of {op_def.name} must be {choices}, but is {actual.text}{_advice(actual, allowed[0])}"


def _advice(actual: DType, wanted: DType) -> str:
    return "" if actual in _NOT_CAST or wanted in _NOT_CAST else "; convert with gc.cast"
