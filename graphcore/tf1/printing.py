"""`tf.print`: an operation that writes values whenever it runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from graphcore.dtypes import string
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.variables.variables import Variable


def print_(*inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n", name: str | None = None) -> Node:
    """An operation that writes tensors and other values, in the order given.

        with gc.control_dependencies([gc.print("loss", loss)]):
            loss = gc.identity(loss)

    Args:
        inputs: tensors, texts, numbers, and lists, tuples and dicts of these.
        output_stream: `sys.stderr` or `sys.stdout`; None for the former.
        summarize: the number of elements at both ends of each dimension that are written; -1 for all.
        sep: written between the inputs.
        end: written after them.
        name: the name scope of the nodes.

    Raises:
        InvalidArgumentError: the stream is another one.
    """
    streams = {id(sys.stdout): "stdout", id(sys.stderr): "stderr", id(sys.__stdout__): "stdout", id(sys.__stderr__): "stderr"}
    stream = "stderr" if output_stream is None else streams.get(id(output_stream))
    if stream is None:
        raise InvalidArgumentError(f"print: required sys.stderr or sys.stdout as output_stream, got {output_stream!r}")
    with name_scope(name or "print"):
        if len(inputs) == 1 and isinstance(inputs[0], Tensor) and inputs[0].dtype is string and inputs[0].shape.rank == 0:
            text = inputs[0]
        else:
            tensors: list[Tensor] = []
            literal = sep.join([_template(value, tensors, "{}", nested=False) for value in inputs])
            mark = "{}" if literal.count("{}") == len(tensors) else _unused(literal)
            template = literal if mark == "{}" else sep.join([_template(value, [], mark, nested=False) for value in inputs])
            text = apply_one("StringFormat", [tensors], None, {"template": template, "placeholder": mark, "summarize": summarize})
        return get_default_graph().apply_op("PrintV2", [text], {"output_stream": stream, "end": end})


def _template(value: Any, tensors: list[Tensor], mark: str, *, nested: bool) -> str:
    """The text of a value, with `mark` in the place of each tensor; these are added to `tensors`."""
    if isinstance(value, Tensor | Variable):
        tensors.append(convert_to_tensor(value))
        return mark
    if isinstance(value, Mapping):
        return f"{{{', '.join([f'{key!r}: {_template(item, tensors, mark, nested=True)}' for key, item in value.items()])}}}"
    if isinstance(value, list | tuple):
        items = ", ".join([_template(item, tensors, mark, nested=True) for item in value])
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' if len(value) == 1 else ''})"
    return repr(value) if nested else str(value)


def _unused(text: str) -> str:
    """A placeholder that does not occur in a text."""
    number = 0
    while (mark := f"{{tensor_{number}}}") in text:
        number += 1
    return mark
