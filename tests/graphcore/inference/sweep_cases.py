"""The cases of every op in the sweep: registry examples, and further ones for shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

import graphcore as gc
from graphcore.attrs import Func
from graphcore.opset.framework.gradient_text import scalar
from tests.graphcore.inference.surroundings import LOOP_OPS, Held
from tests.graphcore.opset.op_cases import Case, all_cases

X: Final = np.array([[1.0, -2.0, 3.0], [3.0, 0.5, 4.0]], np.float32)
COLUMN: Final = np.array([[1.0], [2.0]], np.float32)
NUMBERS: Final = "\n".join([f"  {name} = {scalar(kind, value)}" for name, kind, value in (
    ("one", "float", "1"), ("three", "float", "3"), ("zero", "int32", "0"), ("all", "int32", "-1"),
)])  # fmt: skip
FUNCTIONS: Final = tuple([f"{signature} {{\n{NUMBERS}\n  {body}\n}}" for signature, body in {
    "Same(x:float, y:float) -> (z:float)": "z = Identity[T=float](x)",
    "Sum2(x:float, y:float) -> (z:float)": "z = Add[T=float](x, y)",
    "Flat(x:float, y:float) -> (z:float)": "sizes = ExpandDims[T=int32](all, zero)\n  z = Reshape[T=float](x, sizes)",
    "Below3(i:float, x:float) -> (y:bool)": "y = Less[T=float](i, three)",
    "Next(i:float, x:float) -> (j:float, y:float)": "j = Add[T=float](i, one)\n  y = Identity[T=float](x)",
    "Grow(i:float, x:float) -> (j:float, y:float)": "j = Add[T=float](i, one)\n  y = ConcatV2[T=float, N=2](x, x, zero)",
    "Read(v:resource, x:float) -> (y:float)": "r = ReadVariableOp[dtype=float](v)\n  y = Add[T=float](r, x)",
}.items()])  # fmt: skip


def use(op: str, *inputs: Any, **attrs: Any) -> tuple[str, tuple[Any, ...], Mapping[str, Any]]:
    """One use of an op on these arrays."""
    return op, inputs, attrs


def calls() -> Iterator[tuple[str, tuple[Any, ...], Mapping[str, Any]]]:
    """Cases of ops that run functions: bodies that keep or change a shape, branches that agree or differ."""
    branches, index = [Func("Same"), Func("Sum2"), Func("Flat")], np.int32
    for op in ("If", "StatelessIf"):
        for taken in (True, False):
            for then, other in (("Same", "Sum2"), ("Sum2", "Flat"), ("Flat", "Same")):
                attrs = {"Tout": ["float"], "then_branch": Func(then), "else_branch": Func(other)}
                yield use(op, np.array(taken), [X, COLUMN], **attrs)
    for op in ("Case", "StatelessCase"):
        for number in range(3):
            yield use(op, np.array(number, index), [X, COLUMN], Tout=["float"], branches=branches)
            yield use(op, np.array(number, index), [X, COLUMN], Tout=["float"], branches=branches[:2])
    for op in ("While", "StatelessWhile"):
        for body in ("Next", "Grow"):
            yield use(op, [np.float32(0), X], cond=Func("Below3"), body=Func(body))
        yield use(op, [np.float32(0), X], cond=Func("Below3"), body=Func("Next"), output_shapes=[[], [2, 3]])
    yield use("_WhileGradient", [np.float32(0), X], [np.float32(1), X], cond=Func("Below3"), body=Func("Next"))
    for op in ("PartitionedCall", "StatefulPartitionedCall"):
        for name in ("Same", "Sum2", "Flat"):
            yield use(op, [X, COLUMN], Tout=["float"], f=Func(name))
        yield use(op, [Held(X), COLUMN], Tout=["float"], f=Func("Read"))


def sweep_cases() -> dict[str, list[Case]]:
    """All uses by the name of the op."""
    found: dict[str, list[Case]] = {}
    for case in all_cases():
        found.setdefault(case.op_def.name, []).append(case)
    for op, inputs, attrs in calls():
        found[op].append(Case(gc.op_registry.look_up(op), len(found[op]), inputs, attrs, None, False, FUNCTIONS))
    for op in LOOP_OPS:  # the second loop doubles its value in each iteration
        found[op].append(replace(found[op][0], number=len(found[op])))
    return found
