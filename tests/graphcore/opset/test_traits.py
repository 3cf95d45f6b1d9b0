"""The declared traits of every op block hold of its kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import graphcore as gc
from graphcore.definitions import GraphDef, name_ranges_for_node
from graphcore.errors import GraphError
from graphcore.graph import Node
from graphcore.graph.shapes.evaluation import kernel_context
from graphcore.inference.partial_types import PartialValue, ValueView
from graphcore.kernel_context import KernelContext
from graphcore.registry import Kernel, OpRegistration
from graphcore.runtime.plan.buffers import is_elementwise
from graphcore.text import parse_nodes
from graphcore.traits import FailsOn
from tests.graphcore.opset.backend_cases import assert_same
from tests.graphcore.opset.hostile_inputs import argument_names, changed, other_sizes, other_types
from tests.graphcore.opset.op_cases import Array, Case, all_cases, as_case, run, with_variables
from tests.support.op_checks import checked_for

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
    if can_fail.vectors and any(array.ndim < 2 for array in given):
        return True
    return can_fail.empty and any(not size for size in [array.size for array in given] + [t.shape.num_elements for t in node.outputs])


def argument_names_of(node: Node) -> list[str]:
    ranges = name_ranges_for_node(node.node_def, node.op_def)[0]
    return [name for name, (start, end) in ranges.items() for _ in range(start, end)]


SAFE = [entry for entry in ENTRIES if entry.traits.can_fail is not True and cases_of(entry)]


@checked_for(SAFE)
def an_op_that_cannot_fail_fails_on_no_values_shapes_or_types(entry: OpRegistration) -> None:
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


@checked_for(SAFE)
def the_known_shape_of_a_result_of_an_op_that_cannot_fail_takes_no_kernel(entry: OpRegistration) -> None:
    known = checked_inputs(entry)
    for case in cases_of(entry):
        if case.op_def.is_stateful or entry.traits.role == "control":
            continue
        with gc.Graph().as_default(), gc.Session() as session:
            places = [
                gc.constant(array) if name in known else gc.placeholder(gc.as_dtype(array.dtype), array.shape)
                for name, array in zip(argument_names(case), case.arrays, strict=True)
            ]
            node = case.build_plain(places)
            shapes = [gc.ops.shape(output) for output in node.outputs if output.shape.is_fully_defined]
            if shapes and not fails_on(entry, node, case.arrays):
                plan = session.plan(shapes, {place: None for place in places if place.op.op == "Placeholder"})
                assert node not in plan.nodes


@checked_for(list(dict.fromkeys(case.entry for case in PLAIN)))
def shapes_follow_without_the_kernel_of_the_op(entry: OpRegistration) -> None:
    """A shape made of the known shape of an output is itself known, and no kernel ran for it."""
    made: list[KernelContext] = []
    factory = entry.kernel
    assert factory is not None

    def counted(context: KernelContext) -> Kernel:
        made.append(context)
        return factory(context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry, "kernel", counted)
        for case in cases_of(entry):
            with gc.Graph().as_default() as graph:
                node = case.build_plain([gc.constant(array) for array in case.arrays])
                for output in node.outputs:
                    if output.shape.is_fully_defined:
                        filled = graph.apply_op("Fill", [gc.ops.shape(output), gc.constant(0.0)])
                        assert filled.outputs[0].shape == output.shape
    assert not made


MEMORY = [entry for entry in ENTRIES if entry.traits.memory != "unknown" and cases_of(entry)]


@checked_for(MEMORY)
def outputs_are_of_the_memory_that_the_op_names(entry: OpRegistration) -> None:
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


@checked_for([entry for entry in ENTRIES if entry.traits.memory == "view"])
def an_op_that_gives_views_gives_one_of_its_first_input(entry: OpRegistration) -> None:
    shared = []
    for case in cases_of(entry):
        found = kernel_for(case, case.arrays, dict(case.attrs), checked_inputs(entry))
        assert found is not None
        shared.append(np.may_share_memory(called(found[1], case.arrays)[0], case.arrays[0]))
    assert any(shared)


@checked_for([entry for entry in ENTRIES if entry.traits.only_checks])
def an_op_that_only_checks_returns_its_input(entry: OpRegistration) -> None:
    for case in cases_of(entry):
        found = kernel_for(case, case.arrays, dict(case.attrs), checked_inputs(entry))
        assert found is not None
        np.testing.assert_array_equal(called(found[1], case.arrays)[0], case.arrays[0])
    assert cases_of(entry)
    assert entry.failures


@checked_for(list(dict.fromkeys(case.entry for case in PLAIN)))
def a_plan_may_write_results_into_inputs_of_just_the_ops_that_say_so(entry: OpRegistration) -> None:
    known = checked_inputs(entry)
    kernels = [
        kernel_for(case, changed(case, {}, types, [3], known), {**case.attrs, **types}, known)
        for case in cases_of(entry)
        for types in other_types(case)
    ]
    assert any(found is not None and is_elementwise(found[1]) for found in kernels) == entry.traits.reuses_input


def broadcast(arrays: Sequence[Array]) -> list[Array] | None:
    """The arrays in their common shape, flat; None where they have none."""
    try:
        return [array.reshape(-1).copy() for array in np.broadcast_arrays(*arrays)]
    except ValueError:
        return None


@checked_for([entry for entry in ENTRIES if entry.traits.elementwise])
def an_elementwise_op_computes_each_element_from_those_at_its_place(entry: OpRegistration) -> None:
    tried = 0
    for case in cases_of(entry):
        arrays = broadcast(case.arrays)
        found = None if arrays is None else kernel_for(case, arrays, dict(case.attrs), ())
        if arrays is None or found is None or not arrays[0].size:
            continue
        order = np.arange(arrays[0].size)[::-1]
        forward, backward = called(found[1], arrays)[0], called(found[1], [array[order].copy() for array in arrays])[0]
        assert_same(backward, forward[order])
        tried += 1
    assert tried


@checked_for([entry for entry in ENTRIES if entry.op_def.is_commutative])
def a_commutative_op_takes_its_inputs_in_any_order(entry: OpRegistration) -> None:
    for case in cases_of(entry):
        arrays = case.arrays
        found, turned = (kernel_for(case, each, dict(case.attrs), ()) for each in (arrays, arrays[::-1]))
        if found is not None and turned is not None:
            assert_same(called(turned[1], arrays[::-1])[0], called(found[1], arrays)[0])


@checked_for([entry for entry in ENTRIES if entry.traits.neutral])
def the_neutral_second_input_leaves_the_first_as_it_is(entry: OpRegistration) -> None:
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    if not isinstance(cases_of(entry)[0].arrays[0].dtype.type(0), np.floating):
        x = x.astype(cases_of(entry)[0].arrays[0].dtype)
    second: Any = np.array({"no axes": [], "own shape": [2, 3], "ones": [1, 1], "in order": [0, 1]}[entry.traits.neutral], np.int32)
    if entry.traits.neutral != "own shape":
        assert entry.traits.is_neutral(second)
        assert not entry.traits.is_neutral(np.array([1, 0], np.int32))
    inputs: list[Any] = [x, np.ones_like(x) if entry.traits.elementwise else second][: len(entry.op_def.input_arg)]
    with gc.Graph().as_default(), gc.Session() as session:
        assert_same(session.run(gc.apply_op(entry.op_def.name, [gc.identity(gc.constant(each)) for each in inputs])), x)


@checked_for([entry for entry in ENTRIES if entry.traits.needs_only_shapes])
def an_op_that_needs_only_shapes_gives_the_same_whatever_the_values(entry: OpRegistration) -> None:
    for case in cases_of(entry):
        found = kernel_for(case, case.arrays, dict(case.attrs), ())
        assert found is not None
        for value, other in zip(called(found[1], case.arrays), called(found[1], [array * 0 for array in case.arrays]), strict=True):
            assert_same(value, other)
        tell = entry.traits.numbers_from_shapes
        if tell is not None:
            told = tell([gc.Shape(array.shape) for array in case.arrays])
            assert told == [np.asarray(value).tolist() for value in called(found[1], case.arrays)]
            assert tell([gc.Shape(None)] * len(case.arrays)) is None


@checked_for([entry for entry in ENTRIES if entry.traits.partial_rule])
def the_rule_for_partial_values_agrees_with_the_kernel(entry: OpRegistration) -> None:
    rule = entry.traits.partial_rule
    assert rule is not None
    for case in cases_of(entry):
        with gc.Graph().as_default() as graph:
            node = case.build([gc.constant(array) for array in case.arrays])
            values = {(id(t.node), t.index): array for t, array in zip(node.inputs, case.arrays, strict=True)}
            found = {key: partial_of(array) for key, array in values.items()}
            view = ValueView(node, 0, found, graph.refiner.output_shape, constants_of(values))
            known, value = rule.apply(view), np.asarray(run(node)[0])
        if known is not None and value.ndim <= 1:
            told = [item if isinstance(item, int) else item.value for item in known.items]
            assert len(told) == value.size
            assert all(number in (-1, element) for number, element in zip(told, value.reshape(-1).tolist(), strict=True))


def constants_of(values: dict[tuple[int, int], Array]) -> Callable[[Any, int], Array | None]:
    return lambda node, index: values.get((id(node), index))


def partial_of(array: Array) -> PartialValue | None:
    is_known = array.dtype.kind in "iu" and array.ndim <= 1
    return PartialValue(tuple(array.reshape(-1).tolist()), array.ndim == 0) if is_known else None


CHANGING = [case for case in all_cases() if case.runs and case.takes_variable and not case.entry.traits.stores]


@checked_for(list(dict.fromkeys(case.entry for case in CHANGING)))
def only_declared_ops_change_their_variable(entry: OpRegistration) -> None:
    changed = []
    for case in CHANGING:
        if case.entry is not entry or any(value is None for value in case.inputs):
            continue
        with gc.Graph().as_default(), gc.Session() as session:
            node, start = with_variables(case)
            session.run(start)
            before = value_of(session, node.inputs[0])
            session.run(node)
            changed.append(not same(before, value_of(session, node.inputs[0])))
    assert any(changed) == entry.traits.writes_input


def value_of(session: gc.Session, variable: gc.Tensor) -> Array | None:
    """The value of a variable, None after it was destroyed."""
    if variable.dtype is not gc.resource:
        return np.asarray(session.run(variable)).copy()
    dtype = variable.node.node_def.attr["dtype"]
    try:
        return np.asarray(session.run(gc.apply_op("ReadVariableOp", [variable], {"dtype": dtype}))).copy()
    except GraphError:
        return None


def same(before: Array | None, after: Array | None) -> bool:
    return before is not None and after is not None and np.array_equal(before, after)


def of_floats(entry: OpRegistration) -> list[Case]:
    """The cases with a float as first input and as first output."""
    return [case for case in cases_of(entry) if case.arrays[0].dtype.kind == "f" and gives_float(case)]


def gives_float(case: Case) -> bool:
    found = kernel_for(case, case.arrays, dict(case.attrs), checked_inputs(case.entry))
    return found is not None and bool(found[0].outputs) and found[0].output_types[0].is_floating


@checked_for([entry for entry in ENTRIES if entry.gradient_kind != "function" and entry.traits.role != "control" and of_floats(entry)])
def a_gradient_stops_at_an_op_or_is_an_error_as_the_op_says(entry: OpRegistration) -> None:
    for case in of_floats(entry):
        with gc.Graph().as_default():
            node = case.build([gc.constant(array) for array in case.arrays])
            if entry.gradient_kind == "stop":
                assert gc.gradients(node.outputs[0], node.inputs[0]) == [None]
            else:
                with pytest.raises(GraphError, match="No gradient defined"):
                    gc.gradients(node.outputs[0], node.inputs[0])


@checked_for(ENTRIES)
def an_op_that_uses_state_elsewhere_must_be_where_that_is(entry: OpRegistration) -> None:
    traits, inputs = entry.traits, [arg.name for arg in entry.op_def.input_arg]
    if traits.writes_input or traits.reads_variable:
        assert entry.colocated_inputs[:1] == inputs[:1]
    if traits.elementwise or traits.needs_only_shapes:
        assert entry.colocated_inputs == []


NEVER_FAIL_ALONE = {
    **dict.fromkeys(["Merge", "RefMerge"], "forwards any value; plans keep it for its branches"),
    **dict.fromkeys(["_Retval", "_DeviceRetval"], "takes any value; a call collects it"),
    **dict.fromkeys(
        ["_Send", "_HostSend", "_Recv", "_HostRecv"], "fails with a lost partner in another partition; see the tests of rendezvous"
    ),
}
"""Ops that declare no freedom from failure, though no graph of one partition makes them fail, with the reason."""
FAILING = [entry for entry in ENTRIES if entry.traits.can_fail is not False and entry.op_def.name not in NEVER_FAIL_ALONE]


@checked_for(FAILING)
def an_op_that_can_fail_has_a_use_that_fails(entry: OpRegistration) -> None:
    """An op on a variable fails as long as that has no value; the other ops show what they refuse."""
    takes_variable = bool(entry.colocated_inputs)
    assert entry.failures or takes_variable
    for number, use in enumerate(entry.failures or entry.examples[:1]):
        with gc.Graph().as_default() as graph, gc.Session() as session:
            if isinstance(use, str):
                node, feeds = last_of(use), {}
                gc.Session().run([other for other in graph.nodes if other is not node])
            else:
                case = as_case(entry, number, use)
                places = [gc.placeholder(gc.as_dtype(array.dtype), array.shape) for array in case.arrays] if not takes_variable else []
                node = with_variables(case)[0] if takes_variable else case.build_plain(places)
                feeds = dict(zip(places, case.arrays, strict=False))
            assert node.op == entry.op_def.name
            with pytest.raises(GraphError):
                session.run(node, feeds)


def last_of(text: str) -> Node:
    """The last of the nodes in a text, which are added to the default graph."""
    nodes = parse_nodes(text)
    gc.import_graph_def(GraphDef(node=tuple(nodes)), allow_internal_ops=True, prefix="")
    return next(node for node in gc.get_default_graph().nodes if node.name == nodes[-1].name)


@checked_for([entry for entry in ENTRIES if entry.traits.can_fail is False])
def an_op_that_cannot_fail_shows_no_use_that_fails(entry: OpRegistration) -> None:
    assert not entry.failures
