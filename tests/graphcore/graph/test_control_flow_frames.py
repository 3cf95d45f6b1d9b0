"""The frames of loops, and errors for malformed ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import GraphError, InternalError, InvalidArgumentError


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def node(op: str, name: str, inputs: list[Any] | None = None, controls: list[gc.Node] | None = None, **attrs: Any) -> gc.Node:
    with gc.control_dependencies(controls or []):
        return gc.get_default_graph().apply_op(op, inputs or [], attrs, name=name)


def entered(name: str, value: gc.Node, frame: str) -> gc.Node:
    return node("Enter", name, [value.outputs[0]], frame_name=frame)


def frames() -> dict[str, str]:
    info = gc.build_control_flow_info(gc.get_default_graph())
    return {found.name: where.frame_name for found, where in info.items() if found.is_op}


def test_cfi_the_source_is_its_own_frame_and_parent() -> None:
    source = gc.get_default_graph().source_node
    info = gc.build_control_flow_info(gc.get_default_graph())
    assert info == {source: (source, source, "")}


def test_cfi_what_an_enter_gives_is_in_its_frame_and_what_an_exit_gives_is_outside_again() -> None:
    x = node("Const", "x", dtype=gc.float32, value=1.0)
    outer = entered("outer", x, "a")
    inner = entered("inner", outer, "b")
    y = node("Neg", "y", [inner.outputs[0]])
    out = node("Exit", "out", [y.outputs[0]])
    z = node("Neg", "z", [out.outputs[0]])
    end = node("Exit", "end", [z.outputs[0]])
    node("Neg", "w", [end.outputs[0]])
    node("NoOp", "after", controls=[end])
    assert frames() == {"x": "", "outer": "a", "inner": "b", "y": "b", "out": "b", "z": "a", "end": "a", "w": "", "after": ""}
    info = gc.build_control_flow_info(gc.get_default_graph())
    assert (info[y].frame, info[y].parent_frame) == (inner, outer)
    assert (info[outer].frame, info[outer].parent_frame) == (outer, None)
    assert (info[x].frame, info[x].parent_frame) == (None, None)


def test_cfi_nodes_that_nothing_leads_to_have_no_frame() -> None:
    flag = node("Const", "flag", dtype=gc.bool_, value=True)
    merge = node("Merge", "merge", [[flag.outputs[0], flag.outputs[0]]])
    back = node("NextIteration", "back", [merge.outputs[0]])
    graph = gc.get_default_graph()
    graph.update_edge(back, 0, merge, 0)
    graph.update_edge(back, 0, merge, 1)
    assert frames() == {"flag": ""}


def test_cfi_an_enter_without_a_frame_name_is_refused() -> None:
    entered("E", node("Const", "x", dtype=gc.float32, value=1.0), "")
    with pytest.raises(InvalidArgumentError) as caught:
        frames()
    assert caught.value.message == "The Enter {{node E}} must have a frame name."
    assert caught.value.source is not None


def test_cfi_a_merge_of_values_from_different_frames_names_all_three_nodes() -> None:
    x = node("Const", "x", dtype=gc.float32, value=1.0)
    flag = node("Const", "flag", dtype=gc.bool_, value=True)
    start, pred = entered("outer/Enter", x, "outer_loop"), entered("outer/pred", flag, "outer_loop")
    switch = node("Switch", "outer/Switch", [start.outputs[0], pred.outputs[0]])
    inner = entered("inner/Enter", switch, "inner_loop")
    node("Merge", "inner/Merge", [[inner.outputs[0], switch.outputs[1]]])
    with pytest.raises(InvalidArgumentError) as caught:
        frames()
    assert caught.value.message == (
        "{{node inner/Merge}} has inputs from different frames. The input {{node inner/Enter}} is in frame 'inner_loop'. "
        "The input {{node outer/Switch}} is in frame 'outer_loop'."
    )


def test_cfi_a_node_may_not_wait_for_a_node_of_another_frame() -> None:
    x = node("Const", "i", dtype=gc.float32, value=1.0)
    enter = entered("enter", x, "while")
    node("Neg", "add", [enter.outputs[0]], controls=[x])
    with pytest.raises(InvalidArgumentError) as caught:
        frames()
    assert caught.value.message == (
        "{{node add}} has inputs from different frames. The input {{node enter}} is in frame 'while'. The input {{node i}} is in frame ''."
    )


def test_cfi_an_enter_takes_all_it_takes_from_one_frame() -> None:
    x = node("Const", "x", dtype=gc.float32, value=1.0)
    one = entered("one", x, "a")
    node("Enter", "two", [x.outputs[0]], controls=[one], frame_name="b")
    with pytest.raises(InvalidArgumentError) as caught:
        frames()
    assert caught.value.message == (
        "{{node two}} has inputs from different frames. The input {{node one}} is in frame 'a'. The input {{node x}} is in frame ''."
    )


def test_cfi_one_frame_name_in_two_frames_is_an_internal_error() -> None:
    x = node("Const", "x", dtype=gc.float32, value=1.0)
    entered("Enter2", entered("Enter", x, "test_loop"), "test_loop")
    with pytest.raises(InternalError) as caught:
        frames()
    assert caught.value.message == (
        'Invalid loop structure: Mismatched parent frames for "test_loop": "test_loop" vs "". The node giving this error: {{node Enter2}}.'
    )


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [("LoopCond", "sub/LoopCond", False), ("LoopCounter/LoopCond", "LoopCond", True), ("LoopCond", "a/LoopCounter1", True)],
)
def test_cfi_a_loop_has_one_loop_cond_but_for_counters(first: str, second: str, fits: bool) -> None:
    enter = entered("enter", node("Const", "x", dtype=gc.bool_, value=True), "test_loop")
    node("LoopCond", first, [enter.outputs[0]])
    node("LoopCond", second, [enter.outputs[0]])
    if fits:
        assert set(frames().values()) == {"", "test_loop"}
        return
    with pytest.raises(InvalidArgumentError) as caught:
        frames()
    assert caught.value.message == (
        'Invalid loop structure: Loop "test_loop" has more than one LoopCond node: {{node sub/LoopCond}} and {{node LoopCond}}.'
    )


@pytest.mark.parametrize("engine", ["auto", "plan", "dataflow"])
def test_cfi_a_malformed_loop_is_refused_when_it_is_run(engine: str) -> None:
    x = node("Const", "x", dtype=gc.float32, value=1.0)
    enter = entered("enter", x, "while")
    out = node("Exit", "out", [node("AddV2", "add", [enter.outputs[0], x.outputs[0]]).outputs[0]])
    with gc.Session(engine=engine) as session, pytest.raises(InvalidArgumentError, match="has inputs from different frames"):
        session.run(out.outputs[0])
    stray = node("Exit", "stray", [x.outputs[0]])
    with gc.Session(engine=engine) as session, pytest.raises(InvalidArgumentError, match=r"\{\{node stray\}\} is in no loop"):
        session.run(stray.outputs[0])


@pytest.mark.parametrize("engine", ["auto", "plan", "dataflow"])
def test_a_value_within_a_loop_is_neither_fetched_nor_fed(engine: str) -> None:
    x = node("Const", "x", dtype=gc.float32, value=1.0)
    y = node("Neg", "y", [entered("enter", x, "while").outputs[0]])
    out = node("Exit", "out", [y.outputs[0]])
    with gc.Session(engine=engine) as session:
        with pytest.raises(GraphError, match="'y:0' cannot be fetched: it has a value in each iteration of loop 'while'"):
            session.run(y.outputs[0])
        with pytest.raises(GraphError, match="'y:0' cannot be fed: it has a value in each iteration of loop 'while'"):
            session.run(out.outputs[0], {y.outputs[0]: 3.0})
        assert session.run(out.outputs[0], {out.outputs[0]: 3.0}) == 3.0
