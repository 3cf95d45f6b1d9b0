"""The declared traits of every op block hold of its kernel."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import graphcore as gc
from graphcore.definitions import name_ranges_for_node
from graphcore.errors import GraphError
from graphcore.graph import Node
from graphcore.graph.shapes.evaluation import kernel_context
from graphcore.registry import Kernel, OpRegistration
from graphcore.traits import FailsOn
from tests.graphcore.opset.hostile_inputs import argument_names, changed, other_sizes, other_types
from tests.graphcore.opset.op_cases import Array, Case, all_cases

pytestmark = pytest.mark.sweep

ENTRIES = list(gc.op_registry)
PLAIN = [case for case in all_cases() if case.arrays and not case.takes_variable and not case.is_of_lists and not case.functions]
SWEEP = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)


def cases_of(entry: OpRegistration) -> list[Case]:
    return [case for case in PLAIN if case.entry is entry]


def checked_inputs(entry: OpRegistration) -> Sequence[str]:
    """The inputs with constant values, if the op cannot fail."""
    return entry.traits.can_fail.values if isinstance(entry.traits.can_fail, FailsOn) else ()


def kernel_for(case: Case, arrays: Sequence[Array], attrs: dict[str, Any], known: Sequence[str]) -> tuple[Node, Kernel] | None:
    """The kernel for inputs of these shapes, None if the shape function or the types refuse them."""
    names = argument_names(case)
    with gc.Graph().as_default():
        places = [
            gc.constant(array) if name in known else gc.placeholder(gc.as_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        try:
            node = Case(case.entry, case.number, case.inputs, attrs, None, False).build_plain(places)
            factory = node.registration.kernel
            assert factory is not None
            return node, factory(kernel_context(node, tuple([a if n in known else None for n, a in zip(names, arrays, strict=True)])))
        except GraphError:
            return None


def called(kernel: Kernel, arrays: Sequence[Array]) -> list[Any]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of complex numbers cast to real ones
        result = kernel(*arrays)
    return list(result) if isinstance(result, tuple | list) else [] if result is None else [result]


def uses(case: Case, sizes: Any, picks: Sequence[int]) -> Iterator[tuple[list[Array], Kernel]]:
    """Kernels for a case in each type that the op takes, with inputs for them."""
    known = checked_inputs(case.entry)
    for types in other_types(case):
        attrs = {name: types.get(name, value) for name, value in case.attrs.items()}
        arrays = changed(case, sizes, types, picks, known)
        found = kernel_for(case, arrays, attrs, known)
        if found is not None and not fails_on(case.entry, found[0], arrays):
            yield arrays, found[1]


def fails_on(entry: OpRegistration, node: Node, arrays: Sequence[Array]) -> bool:
    """True iff the op's traits allow failure on these inputs."""
    can_fail = entry.traits.can_fail
    if not isinstance(can_fail, FailsOn):
        return can_fail
    given = [array for array, name in zip(arrays, argument_names_of(node), strict=True) if name not in can_fail.values]
    if can_fail.integers and any(array.dtype.kind in "iu" for array in given):
        return True
    return can_fail.empty and any(not size for size in [array.size for array in given] + [t.shape.num_elements for t in node.outputs])


def argument_names_of(node: Node) -> list[str]:
    ranges = name_ranges_for_node(node.node_def, node.op_def)[0]
    return [name for name, (start, end) in ranges.items() for _ in range(start, end)]


SAFE = [entry for entry in ENTRIES if entry.traits.can_fail is not True and cases_of(entry)]


@pytest.mark.parametrize("entry", SAFE, ids=lambda entry: entry.op_def.name)
def test_an_op_that_cannot_fail_fails_on_no_values_shapes_or_types(entry: OpRegistration) -> None:
    ran = 0

    @SWEEP
    @given(st.data())
    def sweep(data: st.DataObject) -> None:
        nonlocal ran
        case = data.draw(st.sampled_from(cases_of(entry)))
        sizes = data.draw(st.sampled_from(other_sizes(case)))
        for arrays, kernel in uses(case, sizes, data.draw(st.lists(st.integers(0, 99), min_size=5, max_size=9))):
            called(kernel, arrays)
            ran += 1

    sweep()
    assert ran


MEMORY = [entry for entry in ENTRIES if entry.traits.memory != "unknown" and cases_of(entry)]


@pytest.mark.parametrize("entry", MEMORY, ids=lambda entry: entry.op_def.name)
def test_outputs_are_of_the_memory_that_the_op_names(entry: OpRegistration) -> None:
    memory = entry.traits.memory
    for case in cases_of(entry):
        for known in ((), checked_inputs(entry)):
            found = kernel_for(case, case.arrays, dict(case.attrs), known)
            if found is None:
                continue
            given = [array.copy() for array in case.arrays]
            first, second = called(found[1], given), called(found[1], given)
            for number, (output, again) in enumerate(zip(first, second, strict=True)):
                if not getattr(output, "ndim", 0) or not output.size:
                    continue
                shares = any(np.may_share_memory(output, array) for array in given)
                if memory == "alias":
                    assert output is given[number]
                if memory in {"fresh", "separate"}:
                    assert not shares
                if memory == "fresh":
                    assert not np.may_share_memory(output, again)


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.traits.memory == "view"], ids=lambda entry: entry.op_def.name)
def test_an_op_that_gives_views_gives_one_of_its_first_input(entry: OpRegistration) -> None:
    shared = []
    for case in cases_of(entry):
        found = kernel_for(case, case.arrays, dict(case.attrs), checked_inputs(entry))
        assert found is not None
        shared.append(np.may_share_memory(called(found[1], case.arrays)[0], case.arrays[0]))
    assert any(shared)
