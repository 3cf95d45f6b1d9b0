"""Switch/Merge branches and loops, as made by TensorFlow 1, and kernels to run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphcore as gc

Tensor = gc.Tensor
Body = Callable[..., Sequence[Any]]


def kernel_of(node: gc.Node, context: Any) -> Any:
    """The kernel of the node's op."""
    assert node.registration.kernel is not None
    return node.registration.kernel(context)


def op(name: str, inputs: Sequence[Any] = (), attrs: dict[str, Any] | None = None) -> Any:
    """Output 0 of a new node, or the node itself if it has no outputs."""
    return gc.apply_op(name, list(inputs), attrs or {})


def outputs(name: str, inputs: Sequence[Any], attrs: dict[str, Any] | None = None, node_name: str = "") -> list[Tensor]:
    """All outputs of a new node."""
    graph = gc.get_default_graph()
    return list(graph.apply_op(name, list(inputs), attrs or {}, name=node_name or None).outputs)


def switch(data: Any, pred: Any) -> tuple[Tensor, Tensor]:
    """`data` on the false and on the true output."""
    no, yes = outputs("RefSwitch" if data.dtype.is_ref else "Switch", [data, pred])
    return no, yes


def merge(*values: Any) -> Tensor:
    """The live one of `values`."""
    return outputs("Merge", [list(values)])[0]


def cond(pred: Any, values: Sequence[Any], yes: Body, no: Body) -> list[Tensor]:
    """`yes` of `values` if `pred` is true, else `no`."""
    sides = [switch(value, pred) for value in values]
    return [merge(b, a) for a, b in zip(yes(*[side[1] for side in sides]), no(*[side[0] for side in sides]), strict=True)]


def enter(value: Any, frame: str, *, constant: bool = False, parallel: int = 10) -> Tensor:
    """`value` within the frame."""
    op_name = "RefEnter" if value.dtype.is_ref else "Enter"
    return outputs(op_name, [value], {"frame_name": frame, "is_constant": constant, "parallel_iterations": parallel})[0]


def while_loop(condition: Callable[..., Any], body: Body, values: Sequence[Any], frame: str = "loop", parallel: int = 10) -> list[Tensor]:
    """Values after the loop, with `values` as initial ones."""
    graph = gc.get_default_graph()
    entered = [enter(value, frame, parallel=parallel) for value in values]
    merges = [graph.apply_op("Merge", [[value, value]]) for value in entered]
    pivot = op("LoopCond", [condition(*[node.outputs[0] for node in merges])])
    sides = [switch(node.outputs[0], pivot) for node in merges]
    turned = body(*[op("Identity", [side[1]]) for side in sides])
    for node, value in zip(merges, turned, strict=True):
        back = graph.apply_op("NextIteration", [value])
        graph.update_edge(back, 0, node, 1)
    return [op("Exit", [side[0]]) for side in sides]
