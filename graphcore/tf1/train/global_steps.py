"""`tf.train`: the variable that counts the steps of a training."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.brief import brief
from graphcore.dtypes import int64
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, Tensor, get_default_graph
from graphcore.tf1.train.optimizers.slots import is_in_graph, scope_prefix
from graphcore.tf1.variables.collections import GraphKeys
from graphcore.tf1.variables.variables import Variable


def get_global_step(graph: Graph | None = None) -> Any:
    """The global step of a graph: the one in its collection, or `global_step:0`; None without one.

    Args:
        graph: the graph; the default graph if None.

    Raises:
        InvalidArgumentError: there are several, or it is no integer scalar.
    """
    graph = graph or get_default_graph()
    steps = [variable for variable in graph.get_collection(GraphKeys.GLOBAL_STEP) if not _is_replaced(variable, graph)]
    if len(steps) > 1:
        raise InvalidArgumentError("Multiple tensors in global_step collection.")
    if steps:
        step = steps[0]
    else:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except NotFoundError:
            return None
        if graph.cells.may_replace(step.node):
            return None
    assert_global_step(step)
    return step


def _is_replaced(step: Any, graph: Graph) -> bool:
    """True iff the running cell made it in an earlier run."""
    return isinstance(step, Variable) and not is_in_graph(step, graph)


def create_global_step(graph: Graph | None = None) -> Variable:
    """Make the variable `global_step`, an int64 of 0, and put it into the collection of global steps.

    Raises:
        InvalidArgumentError: there is one.
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise InvalidArgumentError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return Variable(
            np.int64(0),
            trainable=False,
            name=f"{scope_prefix(graph)}global_step",
            dtype=int64,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The global step of a graph, made if there is none."""
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def assert_global_step(global_step_tensor: Any) -> None:
    """Check that a global step is an integer scalar.

    Raises:
        InvalidArgumentError: it is not.
    """
    if not isinstance(global_step_tensor, Tensor | Variable):
        raise InvalidArgumentError(f'Existing "global_step" must be a Variable or Tensor: {brief(global_step_tensor)}.')
    if not global_step_tensor.dtype.base.is_integer:
        raise InvalidArgumentError(f'Existing "global_step" does not have integer type: {global_step_tensor.dtype.text}')
    if global_step_tensor.shape.rank not in {0, None}:
        raise InvalidArgumentError(f'Existing "global_step" is not scalar: {global_step_tensor.shape}')


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps so far in a session."""
    return int(sess.run(global_step_tensor))
