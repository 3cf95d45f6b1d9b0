"""`tf.contrib.slim.model_analyzer`: the sizes of variables and outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["analyze_ops", "analyze_vars", "tensor_description"]


def tensor_description(var: Any) -> str:
    """The dtype and the sizes of a variable or tensor, such as `(float32_ref 3x4)`."""
    shape = var.shape
    sizes = [] if shape.rank is None else ["?" if size is None else str(size) for size in shape.as_list()]
    return f"({_dtype(var)}{' ' if sizes else ''}{'x'.join(sizes)})"


def _dtype(var: Any) -> str:
    base = var.dtype.base.as_numpy_dtype.__name__
    return f"{base}_ref" if var.dtype.is_ref else base


def analyze_vars(variables: Sequence[Any], print_info: bool = False) -> tuple[int, int]:
    """The number of elements of variables, and of their bytes.

    Args:
        variables: the variables.
        print_info: print each with its sizes, and the sums.
    """
    counts = [math.prod(size or 0 for size in variable.shape.as_list()) for variable in variables]
    sizes = [count * variable.dtype.base.size for count, variable in zip(counts, variables, strict=True)]
    if print_info:
        lines = ["---------", "Variables: name (type shape) [size]", "---------"]
        for variable, count, size in zip(variables, counts, sizes, strict=True):
            lines.append(f"{variable.name} {tensor_description(variable)} [{count}, bytes: {size}]")
        _show([*lines, f"Total size of variables: {sum(counts)}", f"Total bytes of variables: {sum(sizes)}"])
    return sum(counts), sum(sizes)


def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """The number of elements of all outputs of known shape.

    Args:
        graph: the graph.
        print_info: print each node with the sizes of its outputs, and the sum.
    """
    outputs = [output for node in graph.get_operations() for output in node.outputs]
    counts = [math.prod(output.shape.as_list()) if output.shape.is_fully_defined else 0 for output in outputs]
    if print_info:
        lines = [f"{output.name} {tensor_description(output)} [{count}]" for output, count in zip(outputs, counts, strict=True)]
        _show([*lines, f"Total size of outputs: {sum(counts)}"])
    return sum(counts)


def _show(lines: Sequence[str]) -> None:
    print("\n".join(lines))  # noqa: T201 - the caller asks for it
