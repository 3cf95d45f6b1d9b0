"""Whatever an op refuses because of shapes, the error has the origins of the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphcore as gc
from graphcore.errors import GraphError
from tests.graphcore.opset.op_cases import Case, all_cases
from tests.support.op_checks import checked_for

CASES: dict[str, Case] = {}
for _case in all_cases():
    if _case.runs and not _case.takes_variable and _case.arrays and not any(array.dtype.kind == "O" for array in _case.arrays):
        CASES.setdefault(_case.op_def.name, _case)


def distorted(case: Case) -> Iterator[list[gc.Shape]]:
    """The shapes of the inputs with one error: a size, a missing dimension, an extra one."""
    shapes = [list(array.shape) for array in case.arrays]
    for i, sizes in enumerate(shapes):
        wrong = [[*sizes[:j], sizes[j] + 1, *sizes[j + 1 :]] for j in range(len(sizes))] + [[*sizes, 2]] + ([sizes[1:]] if sizes else [])
        for changed in wrong:
            yield [gc.Shape(changed if i == k else other) for k, other in enumerate(shapes)]


def refusals(case: Case) -> list[GraphError]:
    """The errors for distorted inputs."""
    found: list[GraphError] = []
    for shapes in distorted(case):
        with gc.Graph().as_default():
            tensors: list[Any] = [
                gc.constant(array) if gc.Shape(array.shape) == shape and array.size < 5 else gc.placeholder(gc.as_dtype(array.dtype), shape)
                for array, shape in zip(case.arrays, shapes, strict=True)
            ]
            try:
                case.build(tensors)
            except GraphError as error:
                found.append(error)
    return found


@checked_for(CASES)
def an_error_names_the_clashing_numbers_and_their_origins(name: str) -> None:
    for error in refusals(CASES[name]):
        assert error.chains, error.message
        assert all(root.source is not None for chain in error.chains for root in chain.roots)
        assert all(str(chain) for chain in error.chains)


def test_many_ops_refuse_something() -> None:
    assert sum(bool(refusals(CASES[name])) for name in ("MatMul", "AddN", "ConcatV2", "Conv2D", "BiasAdd", "Select", "Pack", "Tile")) == 8
