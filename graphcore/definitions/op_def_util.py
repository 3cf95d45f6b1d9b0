"""Prints OpDefs in one line."""

from __future__ import annotations

from collections.abc import Iterable

from graphcore.definitions.types import ArgDef, OpDef
from graphcore.definitions.value_text import summarize_attr_value


def summarize_op_def(op_def: OpDef) -> str:
    """`Op<name=Simple; signature=a:int32 -> out:float; attr=...; is_stateful=true>`."""
    parts = [f"Op<name={op_def.name}", f"signature={summarize_args(op_def.input_arg)} -> {summarize_args(op_def.output_arg)}"]
    for attr in op_def.attr:
        text = f"attr={attr.name}:{attr.type}"
        if attr.default_value is not None:
            text += f",default={summarize_attr_value(attr.default_value)}"
        if attr.has_minimum:
            text += f",min={attr.minimum}"
        if attr.allowed_values is not None:
            text += f",allowed={summarize_attr_value(attr.allowed_values)}"
        parts.append(text)
    flags = ("is_commutative", "is_aggregate", "is_stateful", "allows_uninitialized_input", "is_distributed_communication")
    parts += [f"{flag}=true" for flag in flags if getattr(op_def, flag)]
    return "; ".join(parts) + ">"


def summarize_args(args: Iterable[ArgDef]) -> str:
    """`a:int32, b:N*T, c:Ref(float)`; an arg typed by a list attr prints no type."""
    return ", ".join(f"{arg.name}:{_summarize_type(arg)}" for arg in args)


def _summarize_type(arg: ArgDef) -> str:
    text = f"{arg.number_attr}*" if arg.number_attr else ""
    text += arg.type_attr if arg.type is None else arg.type.text
    return f"Ref({text})" if arg.is_ref else text
