"""Values in the dataflow engine: non-blocking receives, branches, long chains, memory, errors."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import GraphError
from tests.graphcore.runtime.loop_graphs import cond, enter, merge, op, outputs, switch, while_loop

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def edge(name: str) -> dict[str, Any]:
    return {"tensor_name": name, "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_receive_of_an_answer_never_blocks_the_send_of_its_question(data: st.DataObject) -> None:
    """Each answer follows its question, and questions depend on other answers in any way."""
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [], name="x")
        p = gc.placeholder(gc.bool_, [], name="p")
        made, known = [x, gc.constant(1.0)], [np.float32(0.5), np.float32(1.0)]
        targets, pairs = [], 0
        for _ in range(data.draw(st.integers(3, 20))):
            i, j = (data.draw(st.integers(0, len(made) - 1)) for _ in range(2))
            kind = data.draw(st.integers(0, 4))
            if kind <= 1:
                made.append(op("AddV2", [made[i], made[j]]))
                known.append(known[i] + known[j])
            elif kind == 2:
                made.append(cond(p, [made[i]], lambda a: [op("Neg", [a])], lambda a: [op("Abs", [a])])[0])
                known.append(-known[i])
            else:
                targets.append(graph.apply_op("_Send", [made[i]], edge(f"question {pairs}")))
                made.append(outputs("_Recv", [], {"tensor_type": gc.float32, **edge(f"answer {pairs}")}, f"answer_{pairs}")[0])
                known.append(known[i] * np.float32(0.5))
                pairs += 1
        with gc.Session(engine="dataflow") as session:
            rendezvous = session.rendezvous

            def ask(number: int) -> None:
                def answer(status: GraphError | None, _sent: Any, _own: Any, value: Any, _is_dead: bool) -> None:
                    if status is None:
                        rendezvous.send(gc.create_key(DEVICE, 1, DEVICE, f"answer {number}"), None, value * np.float32(0.5))

                rendezvous.recv_async(gc.create_key(DEVICE, 1, DEVICE, f"question {number}"), None, answer)

            for number in range(pairs):
                ask(number)
            got = session.run([made, targets], {x: 0.5, p: True}, gc.RunOptions(timeout_in_ms=20_000))[0]
        assert [float(value) for value in got] == [float(value) for value in known]


def test_nodes_on_a_branch_run_only_if_it_is_taken() -> None:
    x, p = gc.placeholder(gc.float32, [None], name="x"), gc.placeholder(gc.bool_, [], name="p")
    no, yes = switch(op("Abs", [x]) * 1.0, op("LogicalNot", [op("LogicalNot", [p])]))
    inner_no, inner_yes = switch(op("Abs", [no]), op("Greater", [op("Sum", [no, gc.constant(0)]), gc.constant(4.0)]))
    checked = merge(
        op("Reshape", [inner_no, gc.constant([3])]), op("Sqrt", [inner_yes])
    )  # two elements are no three: refused where it runs
    result = merge(checked, op("Neg", [op("AddV2", [yes, x])]))
    for engine in ("dataflow", "plan"):
        session = gc.Session(engine=engine)
        assert session.run(result, {x: [1.0, 2.0], p: True}).tolist() == [-2.0, -4.0]
        assert session.run(result, {x: [-1.0, 4.0], p: False}).tolist() == [1.0, 2.0]
        with pytest.raises(GraphError, match="Reshape"):
            session.run(result, {x: [-1.0, -2.0], p: False})
        with pytest.raises(GraphError, match=r"[Dd]ead|not taken|no value"):
            session.run(op("Exp", [yes]), {x: [1.0, 2.0], p: False})
        assert session.run(op("Exp", [no]), {x: [0.0, 0.0], p: False}).tolist() == [1.0, 1.0]


def test_long_chains_of_branches_merges_and_loops_need_no_stack() -> None:
    y = gc.constant(1.0)
    for _ in range(600):
        y = cond(gc.constant(True), [y], lambda a: [op("Neg", [a])], lambda a: [a])[0]
    for _ in range(3_000):
        y = outputs("Merge", [[y, y]])[0]
    for i in range(100):
        one = enter(gc.constant(1), f"f{i}", constant=True)
        y = while_loop(lambda n, _: op("Less", [n, n]), lambda n, a, one=one: [op("AddV2", [n, one]), a], [gc.constant(0), y], f"f{i}")[1]
    with gc.Session(engine="dataflow") as session:
        assert session.run(y) == 1.0


def test_a_value_is_released_after_its_last_use() -> None:
    x = gc.placeholder(gc.float32, [250_000], name="x")
    y = x
    for _ in range(40):
        y = gc.tanh(y) + gc.abs(y)
    last = gc.reduce_sum(y)
    feeds = {x: np.ones(250_000, np.float32)}
    with gc.Session(engine="dataflow") as session:
        session.run(last, feeds)
        tracemalloc.start()
        session.run(last, feeds)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 6_000_000  # a value takes 1 MB, and there are 120


def test_an_error_names_its_node_and_its_inputs() -> None:
    x = gc.placeholder(gc.float32, None, name="x")
    y = gc.placeholder(gc.float32, None, name="y")
    total = gc.tanh(gc.add(gc.exp(x), gc.abs(y), name="sum"))
    with gc.Session(engine="dataflow") as session:
        with pytest.raises(GraphError) as caught:
            session.run(total, {x: [1.0, 2.0, 3.0], y: [1.0, 2.0]})
        assert (caught.value.node, caught.value.op) == ("sum", total.node.inputs[0].node.op)
        assert "on float32 [3], float32 [2]" in caught.value.message
        assert session.run(total, {x: [0.0], y: [0.0]}).shape == (1,)
