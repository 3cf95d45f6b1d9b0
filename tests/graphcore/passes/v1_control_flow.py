"""Branches and loops in Switch/Merge form, built as TensorFlow's Python front end builds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import graphcore as gc
from graphcore.graph import Graph

Tensors = list[gc.Tensor]


class V1Loop:
    """A loop under construction: `cond` and `body` take loop variables, and `capture` outer tensors."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph: Graph = gc.get_default_graph()
        self.pivot: gc.Node | None = None

    def enter(self, tensor: gc.Tensor, *, constant: bool = False) -> gc.Tensor:
        attrs = {"frame_name": self.name, "is_constant": constant, "parallel_iterations": 10}
        with self.graph.control_dependencies(None):
            return self.graph.apply_op("Enter", [tensor], attrs, f"{self.name}/Enter").outputs[0]

    def capture(self, tensor: gc.Tensor) -> gc.Tensor:
        """A value from outside, constant in all iterations."""
        return self.enter(tensor, constant=True)

    def constant(self, value: object, dtype: gc.DType = gc.float64) -> gc.Tensor:
        assert self.pivot is not None
        with self.within(self.pivot):
            return gc.constant(value, dtype, name=f"{self.name}/const")

    @contextmanager
    def within(self, pivot: gc.Node) -> Iterator[None]:
        """Nodes made here run once an iteration, including constants."""
        with self.graph.control_dependencies(None), self.graph.control_dependencies([pivot]):
            yield

    def run(self, cond: Callable[[Tensors], gc.Tensor], body: Callable[[Tensors], Tensors], start: Sequence[gc.Tensor]) -> Tensors:
        """The final values of the loop variables."""
        with self.graph.control_dependencies(None):
            return self._run(cond, body, start)

    def _run(self, cond: Callable[[Tensors], gc.Tensor], body: Callable[[Tensors], Tensors], start: Sequence[gc.Tensor]) -> Tensors:
        graph, name = self.graph, self.name
        entered = [self.enter(tensor) for tensor in start]
        merges = [graph.apply_op("Merge", [[tensor, tensor]], None, f"{name}/Merge") for tensor in entered]
        self.pivot = merges[0]
        with self.within(self.pivot):
            wanted = cond([merge.outputs[0] for merge in merges])
        more = graph.apply_op("LoopCond", [wanted], None, f"{name}/LoopCond").outputs[0]
        switches = [graph.apply_op("Switch", [merge.outputs[0], more], None, f"{name}/Switch") for merge in merges]
        inside = [graph.apply_op("Identity", [switch.outputs[1]], None, f"{name}/Identity").outputs[0] for switch in switches]
        self.pivot = inside[0].node
        with self.within(self.pivot):
            results = body(inside)
        for merge, value in zip(merges, results, strict=True):
            following = graph.apply_op("NextIteration", [value], None, f"{name}/NextIteration")
            graph.update_edge(following, 0, merge, 1)
        return [graph.apply_op("Exit", [switch.outputs[0]], None, f"{name}/Exit").outputs[0] for switch in switches]


def v1_while(
    name: str,
    times: gc.Tensor | int,
    body: Callable[[V1Loop, gc.Tensor, Tensors], Tensors],
    start: Sequence[gc.Tensor],
    around: V1Loop | None = None,
) -> Tensors:
    """Run `body(loop, i, variables)` for i = 0, 1, ... below `times`; `around` is the enclosing loop."""
    loop = V1Loop(name)
    zero = around.constant(0, gc.int32) if around is not None else gc.constant(0, name=f"{name}/zero")
    if isinstance(times, int):
        times = around.constant(times, gc.int32) if around is not None else gc.constant(times, name=f"{name}/times")
    limit = loop.capture(times)

    def step(values: Tensors) -> Tensors:
        return [values[0] + loop.constant(1, gc.int32), *body(loop, values[0], values[1:])]

    return loop.run(lambda values: values[0] < limit, step, [zero, *start])[1:]


class V1Branch:
    """One branch of a conditional; `capture` brings in outer tensors."""

    def __init__(self, pred: gc.Tensor, branch: int, name: str) -> None:
        self.graph: Graph = gc.get_default_graph()
        self.pred = pred
        self.branch = branch
        self.name = name
        switch = self.graph.apply_op("Switch", [pred, pred], None, f"{name}/pivot_switch")
        self.pivot = self.graph.apply_op("Identity", [switch.outputs[branch]], None, f"{name}/pivot_{branch}")

    def capture(self, tensor: gc.Tensor) -> gc.Tensor:
        return self.graph.apply_op("Switch", [tensor, self.pred], None, f"{self.name}/Switch").outputs[self.branch]

    def constant(self, value: object, dtype: gc.DType = gc.float64) -> gc.Tensor:
        with self.graph.control_dependencies([self.pivot]):
            return gc.constant(value, dtype, name=f"{self.name}/const")


def v1_cond(name: str, pred: gc.Tensor, if_true: Callable[[V1Branch], gc.Tensor], if_false: Callable[[V1Branch], gc.Tensor]) -> gc.Tensor:
    """`if_true(branch)` if `pred`, else `if_false(branch)`."""
    graph = gc.get_default_graph()
    copied = graph.apply_op("Identity", [pred], None, f"{name}/pred_id").outputs[0]
    results = [make(V1Branch(copied, branch, name)) for branch, make in ((1, if_true), (0, if_false))]
    return graph.apply_op("Merge", [results[::-1]], None, f"{name}/Merge").outputs[0]
