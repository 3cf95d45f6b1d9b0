"""`%nodes` and `%why`: which nodes there are, and the reasons for a shape, a device or a gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from IPython.core.error import UsageError

import graphcore as gc
from graphcore.api.gradients.gradients import GradientCall
from graphcore.graph import Graph, Tensor, get_default_graph
from kernelext.magics.framework_gradients import of_framework
from kernelext.magics.named import element, tensor, words_of
from kernelext.magics.node_table import NodeTable
from widgets.scene.find import matching

QUESTIONS: Final = ("shape", "place", "grad")


def nodes(line: str, variables: Mapping[str, Any]) -> NodeTable:  # noqa: ARG001 - the form of all magics
    """List nodes of the default graph.

        %nodes                       all
        %nodes hidden op:MatMul      those with such names, ops, shapes, dtypes, devices, cells or attrs

    The words are those of the search in the picture: `op:`, `shape:`, `dtype:`, `device:`, `cell:` and `strides=2` narrow it down.
    """
    graph = get_default_graph()
    graph.settle()
    return NodeTable(matching(line.strip(), graph.op_nodes()) if line.strip() else list(graph.op_nodes()))


def why(line: str, variables: Mapping[str, Any]) -> Any:
    """Explain a shape, a device or a gradient.

        %why shape NAME              the origin of each size, back to the line that wrote it
        %why place NAME              the reasons for the device of a node
        %why grad NAME               the path of the gradient that was built last with respect to NAME, or what cuts it
        %why grad Y X                the path of the gradient of Y with respect to X
        %why grad loss(model(x), y) model.fc.weight
                                     the same for PyTorch and JAX, of an expression that is computed once on copies

    A name is a variable of yours, or a name in the default graph.
    """
    question, _, rest = line.strip().partition(" ")
    asked_gradient = of_framework(rest.strip(), variables) if question == "grad" else None
    if asked_gradient is not None:
        return asked_gradient
    question, *names = words_of(line, "why") or [""]
    if question not in QUESTIONS or not 1 <= len(names) <= (2 if question == "grad" else 1):
        raise UsageError(f"%why needs one of {', '.join(QUESTIONS)} and a name, as in %why shape y; got '{line}'.")
    if question == "shape":
        return gc.explain_shape(tensor(names[0], variables, "why"))
    if question == "place":
        asked = element(names[0], variables, "why")
        return gc.explain_placement(asked.node if isinstance(asked, Tensor) else asked)
    x: Any = variables.get(names[-1])
    x = x if isinstance(x, gc.Variable) else tensor(names[-1], variables, "why")
    y = tensor(names[0], variables, "why") if len(names) == 2 else last_differentiated(x.graph)
    return gc.explain_gradient(y, x)


def last_differentiated(graph: Graph) -> Tensor:
    """The first y of the last call of `gc.gradients` in a graph.

    Raises:
        UsageError: there was none.
    """
    calls = graph.derivations.made_by(GradientCall)
    if not calls:
        raise UsageError("%why grad: no gradients were built; name the tensor to differentiate, as in %why grad loss W.")
    return calls[-1][0].ys[0]
