"""The work and memory of a graph, a model or a call: `gc.costs`."""

from __future__ import annotations

from typing import Any

from graphcore.api.show import graph_behind
from graphcore.costing import Costs, count_costs
from graphcore.frontends.frontend import Call


def costs(value: Any, *args: Any, **kwargs: Any) -> Costs:
    """Count the work and memory of a graph, a model or a call from shapes, without a run.

    Multiply-adds are those of matrix products, convolutions, contractions and recurrent layers: the "FLOPs" of papers about models. Gradients
    count as far as they are in the graph. A size that is not known stays a name, as in `1.8 G x batch`. Nodes that cannot be counted are listed with
    the reason.

    Args:
        value: a `gc.Graph` or something that has one; the path of a file; a model of another framework; a PyTorch module, or a function of
            PyTorch or JAX, with the arguments of a call.
        args, kwargs: these arguments.

    Returns:
        The costs of each node, of scopes, and their sum.

    Raises:
        InvalidArgumentError: it has no graph; the message lists what can be opened.
        GraphError: it cannot be read.

    Example:
        >>> x = gc.placeholder(gc.float32, [None, 784], name="x")
        >>> y = gc.matmul(x, gc.zeros([784, 10]), name="y")
        >>> costs = gc.costs(y)
        >>> print(costs.nodes["y"].multiply_adds)
        7840*batch
        >>> print(costs.at(batch=32).operations)
        501760
    """
    return count_costs(graph_behind(Call(value, args, kwargs) if args or kwargs else value))
