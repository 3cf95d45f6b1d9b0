"""`gc.explain_shape`: the origins of a tensor's dimensions."""

from __future__ import annotations

from typing import Any

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor, get_default_graph
from graphcore.graph.provenance.explain_shape import explain_tensor
from graphcore.graph.provenance.origins import ShapeExplanation
from graphcore.support.budget import within_one_budget


@within_one_budget
def explain_shape(tensor: Any) -> ShapeExplanation:
    """Explain the origin of each dimension of a tensor, back to the lines where the numbers entered.

    Nothing is recorded while a graph is built: the explanation is computed on request.

    Args:
        tensor: a tensor, a variable, a node with one output, or the name of one in the default graph.

    Returns:
        The explanation: `.dimensions` as data, `.text`, and a display for notebooks. If the tensor's node has a shape error, `.chains` are the
        origins of the numbers that clash.

    Raises:
        InvalidArgumentError: it is no tensor, or one that was removed.
        NotFoundError: no such name.

    Example:
        >>> x = gc.placeholder(gc.float32, [None, 64], name="x")
        >>> y = gc.matmul(x, gc.ones([64, 10]), name="y")
        >>> print(gc.explain_shape(y))
        y:0 float [?,10]
          dimension 0 = ?
            is dimension 0 of `x:0`
            is known only when the graph runs; `x` (op Placeholder) leaves it open: ...
          dimension 1 = 10
            ...
    """
    graph = getattr(tensor, "graph", None) or get_default_graph()
    graph.settle()
    element = graph.as_graph_element(tensor)
    if isinstance(element, Node):
        if not element.outputs:
            raise InvalidArgumentError(
                f"Node '{element.name}' (op {element.op}) has no output whose shape could be explained", node=element.name
            )
        element = element.outputs[0]
    assert isinstance(element, Tensor)
    return explain_tensor(element)
