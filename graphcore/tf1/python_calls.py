"""`tf.py_func`: a call of a Python function within a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from graphcore.dtypes import as_dtype
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.graph.graph import outermost
from graphcore.graph.model.argument_errors import refuse
from graphcore.opset.numerics.python_functions import PythonFunction
from graphcore.tf1.framework import convert_to_tensor

__all__ = ["numpy_function", "py_func"]

_KEPT: Final = "python_functions"
"""The collection that keeps the functions of a graph alive."""


def py_func(func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None) -> Any:  # noqa: N803 - TF1's name
    """Call a Python function at each run.

    The function exists in this process only: a graph that is saved and loaded elsewhere has the node, and refuses to run it.

    Args:
        func: takes an array for each input (bytes for a scalar string), and returns as many values as `Tout` has types.
        inp: tensors or values.
        Tout: the dtypes of the results, or one dtype.
        stateful: False promises that equal inputs give equal results, so that calls may be joined or left out.
        name: the name of the node.

    Returns:
        A tensor for one dtype, a list of tensors for several, and the node for none. Their shapes are unknown.

    Raises:
        InvalidArgumentError: `func` is no function.
    """
    if not callable(func):
        refuse("func", "a function", func)
    types = [as_dtype(dtype) for dtype in Tout] if isinstance(Tout, list | tuple) else [as_dtype(Tout)]
    node = python_call(func, [convert_to_tensor(value) for value in inp], types, name, stateful=stateful)
    if not node.outputs:
        return node
    return list(node.outputs) if isinstance(Tout, list | tuple) else node.outputs[0]


def numpy_function(func: Callable[..., Any], inp: Sequence[Any], Tout: Any, name: str | None = None) -> Any:  # noqa: N803 - TF1's name
    """`py_func` under its name in later versions."""
    return py_func(func, inp, Tout, name=name)


def python_call(
    func: Callable[..., Any], inputs: Sequence[Tensor], types: Sequence[Any], name: str | None, *, stateful: bool = True
) -> Node:
    """Add the node that calls a Python function."""
    graph = get_default_graph()
    function = PythonFunction(func)
    outermost(graph).get_collection_ref(_KEPT).append(function)
    return graph.apply_op(
        "PyFunc" if stateful else "PyFuncStateless", [list(inputs)], {"token": function.token, "Tout": tuple(types)}, name
    )
