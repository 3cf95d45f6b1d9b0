"""Runs of ONNX models in sessions, compared with onnx's own evaluator."""

from __future__ import annotations

import gc as collector
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops._op import OpRunUnary

import graphcore as gc
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError, NotFoundError, UnimplementedError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, Port
from graphcore.frontends.lowering import lower
from graphcore.frontends.record import foreign_of
from widgets.scene.time_lens import recorded_times
from widgets.scene.value_lens import recorded_values

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
VALUES = gc.RunOptions(values=True)
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")


def floats(name: str, *shape: int | str | None) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def info(name: str, kind: int = TensorProto.FLOAT, shape: list[int] | None = None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes: list[Any], outputs: list[str], weights: dict[str, Any] | None = None, **rest: Any) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", [floats("x", "n", 4)], [info(name) for name in outputs], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("my.domain", 1)], **rest)


def branching() -> Any:
    """An If and a Loop, which take values from around them."""
    node = helper.make_node
    then = helper.make_graph([node("Log", ["h"], ["logarithm"], name="log")], "positive", [], [info("logarithm")])
    other = helper.make_graph([node("Neg", ["h"], ["negative"])], "negative", [], [info("negative")])
    inputs = [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("sum")]
    body = helper.make_graph(
        [node("Add", ["sum", "h"], ["more"], name="add"), node("Identity", ["c"], ["again"], name="again")],
        "adding",
        inputs,
        [info("again", TensorProto.BOOL, []), info("more")],
    )
    nodes = [
        node("MatMul", ["x", "W"], ["h"], name="/model/product"),
        node("ReduceSum", ["h"], ["total"], keepdims=0),
        node("Greater", ["total", "least"], ["p"]),
        node("If", ["p"], ["y"], name="if:a > b", then_branch=then, else_branch=other),
        node("Loop", ["count", "yes", "y"], ["z"], name="loop", body=body),
    ]
    weights = {"W": np.eye(4, 3, dtype=np.float32), "least": np.float32(-99), "count": np.int64(3), "yes": np.bool_(True)}
    return model_of(nodes, ["z", "h"], weights)


def calling() -> Any:
    """A function of the model, which two nodes call with different attributes."""
    call, power = helper.make_node("Pow", ["a", "e"], ["b"]), helper.make_node("Constant", [], ["e"])
    reference = onnx.AttributeProto(name="value_float", ref_attr_name="exponent", type=onnx.AttributeProto.FLOAT)
    power.attribute.append(reference)
    function = helper.make_function("my.domain", "Power", ["a"], ["b"], [power, call], [helper.make_opsetid("", 18)], ["exponent"])
    nodes = [
        helper.make_node("Power", ["x"], ["h"], domain="my.domain", exponent=2.0, name="first"),
        helper.make_node("Power", ["h"], ["y"], domain="my.domain", exponent=0.5, name="second"),
    ]
    return model_of(nodes, ["y"], functions=[function])


def recorded(graph: gc.Graph, feeds: dict[str, Any]) -> tuple[list[Any], gc.Trace, gc.ValueRecords]:
    results = gc.Session(graph).run(None, feeds, options=VALUES)
    trace = graph.trace
    assert isinstance(trace, gc.Trace)
    assert trace.values is not None
    return results, trace, trace.values


def assert_all_equal(model: Any, graph: gc.Graph, feeds: dict[str, Any]) -> None:
    """The results are those of the plain evaluator, and so are all values that a session fetches."""
    evaluator: Any = ReferenceEvaluator(model)
    for ours, theirs in zip(gc.Session(graph).run(None, feeds), evaluator.run(None, feeds), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
    everything = evaluator.run(None, feeds, intermediate=True)
    record = foreign_of(graph)
    assert record is not None
    ports = {f"{name}:{place}": port.name for name, node in record.nodes.items() for place, port in enumerate(node.outputs) if port.name}
    for ours, port in zip(gc.Session(graph).run(list(ports), feeds), ports.values(), strict=True):
        np.testing.assert_array_equal(ours, everything[port], strict=True)


@pytest.mark.parametrize("make", [branching, calling])
def test_all_values_are_those_of_the_plain_evaluator(make: Any) -> None:
    model = make()
    assert_all_equal(model, gc.from_source(model), {"x": X})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet"])
def test_values_of_a_network_are_those_of_the_plain_evaluator(name: str) -> None:
    path = LIGHT / f"{name}.onnx"
    graph = gc.load(path)
    feeds = {
        node.name: np.random.default_rng(0).random([size or 1 for size in node.outputs[0].shape.as_list()], np.float32)
        for node in graph.op_nodes()
        if node.op == "onnx.Input"
    }
    model = onnx.load(path)
    results, trace, values = recorded(graph, feeds)
    np.testing.assert_array_equal(results[0], ReferenceEvaluator(model).run(None, feeds)[0])  # type: ignore[index]  # a list
    assert len(trace.node_times()) == len(model.graph.node)
    assert len(values) >= len(model.graph.node)


@pytest.mark.parametrize("texts", [["a", "ç"], np.array(["a", "ç"]), np.array(["a", "ç"], dtype=object)], ids=["list", "fixed", "objects"])
def test_texts_are_fed_as_the_evaluator_takes_them(texts: Any) -> None:
    x, y = (info(name, TensorProto.STRING, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("StringConcat", ["x", "x"], ["y"])], "g", [x], [y])
    results, _, values = recorded(gc.from_source(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])), {"x": texts})
    assert results[0].tolist() == ["aa", "çç"]
    assert values["x"].dtype == "string"


def test_values_within_branches_and_loops_have_their_calls() -> None:
    graph = gc.from_source(branching())
    _, trace, values = recorded(graph, {"x": X})
    found = {(one.call, one.node): one for one in values}
    calls = [call for call, node in found if node == "add"]
    assert calls == ["model/loop:adding", "model/loop:adding#2", "model/loop:adding#3"]
    assert any(call.endswith(":positive") and node == "log" for call, node in found)
    assert not any(node == "Neg" for _, node in found), "the other branch did not run"
    assert trace.call_runs() == {call.partition("#")[0]: 3 if "loop" in call else 1 for call, _ in found if call}
    bad = values.first_bad
    assert bad is not None
    assert bad.tensor.node == "log"


def test_the_lenses_show_values_within_branches_and_loops() -> None:
    graph = gc.from_source(branching())
    recorded(graph, {"x": X})
    lens, times = recorded_values(graph), recorded_times(graph)
    assert lens is not None
    assert times is not None
    names = [lens.values.prefixes[place] + name for place, name in zip(lens.values.places, lens.values.names, strict=True)]
    assert {"model/loop:/add", "model/product"} <= set(names)
    assert any(name.endswith(":then/log") for name in names)
    assert lens.values.health.first is not None
    assert lens.values.health.first.node.endswith(":then/log")


def test_weights_and_inputs_are_recorded_too() -> None:
    graph = gc.from_source(branching())
    _, _, values = recorded(graph, {"x": X})
    assert (values["model/W"].max, values["x"].min) == (1.0, -1.0)
    assert [one.node for one in values].count("x") == 1


def test_any_value_can_be_fetched_by_its_name_in_any_structure() -> None:
    session = gc.Session(gc.from_source(branching()))
    found = session.run({"product": "model/product", "pair": ["model/product:0", "h"], "x": "x"}, {"x": X})
    np.testing.assert_array_equal(found["product"], X[:, :3])
    np.testing.assert_array_equal(found["pair"][1], X[:, :3])
    np.testing.assert_array_equal(found["x"], X)


def test_what_cannot_be_fetched_or_fed_is_named() -> None:
    session = gc.Session(gc.from_source(branching()))
    with pytest.raises(NotFoundError, match="nothing"):
        session.run("nothing", {"x": X})
    with pytest.raises(InvalidArgumentError, match="'model/product:0' cannot be fed; the inputs of the model are x"):
        session.run(None, {"model/product": X})
    with pytest.raises(InvalidArgumentError, match="none for x"):
        session.run(None)
    with pytest.raises(InvalidArgumentError, match=r"shape \[2,3\]"):
        session.run(None, {"x": X[:, :3]})
    with pytest.raises(UnimplementedError, match="engine 'plan'"):
        gc.Session(session.graph, engine="plan").run(None, {"x": X})


def test_a_node_without_an_implementation_is_named_and_what_comes_before_it_runs() -> None:
    nodes = [helper.make_node("Abs", ["x"], ["h"]), helper.make_node("Unknown", ["h"], ["y"], name="special", domain="my.domain")]
    session = gc.Session(gc.from_source(model_of(nodes, ["y"])))
    np.testing.assert_array_equal(session.run("Abs", {"x": X}), np.abs(X))
    with pytest.raises(UnimplementedError, match=r"no implementation of my\.domain\.Unknown") as caught:
        session.run(None, {"x": X}, options=VALUES)
    assert caught.value.node == "special"
    trace = session.trace
    assert trace is not None
    assert trace.values is not None
    assert trace.values["Abs"].min == np.abs(X).min(), "the values before it are kept"


def test_an_error_of_the_evaluator_names_the_node() -> None:
    session = gc.Session(gc.from_source(model_of([helper.make_node("MatMul", ["x", "x"], ["y"], name="product")], ["y"])))
    with pytest.raises(InvalidArgumentError, match="product") as caught:
        session.run(None, {"x": X})
    assert (caught.value.node, caught.value.op) == ("product", "onnx.MatMul")


def test_values_are_released_after_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    length = 12
    nodes = [helper.make_node("Abs", [f"h{place}" if place else "x"], [f"h{place + 1}"]) for place in range(length)]
    session = gc.Session(gc.from_source(model_of(nodes, [f"h{length}"])))
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []
    plain: Any = OpRunUnary.run

    def run(self: Any, *args: Any, **rest: Any) -> Any:
        outputs = plain(self, *args, **rest)
        made.extend(map(weakref.ref, outputs))
        collector.collect()
        alive.append(sum(ref() is not None for ref in made))
        return outputs

    monkeypatch.setattr(OpRunUnary, "run", run)
    session.run(None, {"x": X})
    assert len(alive) == length
    assert max(alive) <= 3


def test_the_peak_of_memory_is_that_of_values_that_are_still_needed() -> None:
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["b"]), helper.make_node("Add", ["a", "b"], ["y"])]
    _, trace, _ = recorded(gc.from_source(model_of(nodes, ["y"])), {"x": X})
    assert trace.peak_bytes == 3 * X.nbytes


def test_a_file_runs_with_its_external_data_and_only_of_its_folder(tmp_path: Path) -> None:
    weight = np.arange(4 * 512, dtype=np.float32).reshape(4, 512)
    model = model_of([helper.make_node("MatMul", ["x", "W"], ["y"])], ["y"], {"W": weight})
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    graph = gc.load(folder / "m.onnx")
    np.testing.assert_array_equal(gc.Session(graph).run(None, {"x": X})[0], X @ weight)
    (folder / "weights.bin").rename(tmp_path / "weights.bin")
    stored = onnx.load(folder / "m.onnx", load_external_data=False)
    stored.graph.initializer[0].external_data[0].value = "../weights.bin"
    onnx.save(stored, folder / "m.onnx")
    with pytest.raises(GraphError, match="outside of the model's folder"):
        gc.Session(gc.load(folder / "m.onnx")).run(None, {"x": X})


def test_a_large_file_runs_with_tensors_that_were_left_in_it(tmp_path: Path) -> None:
    weight = np.arange(4 * 300_000, dtype=np.float32).reshape(4, -1)
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(weight * 2))
    nodes = [helper.make_node("MatMul", ["x", "W"], ["h"]), constant, helper.make_node("MatMul", ["x", "c"], ["y"])]
    model = model_of(nodes, ["h", "y"], {"W": weight})
    onnx.save(model, tmp_path / "m.onnx")
    first, second = gc.Session(gc.load(tmp_path / "m.onnx")).run(None, {"x": X})
    np.testing.assert_array_equal(first, X @ weight)
    np.testing.assert_array_equal(second, X @ (weight * 2))


def test_a_model_of_the_user_stays_as_it_is() -> None:
    model = branching()
    before = model.SerializeToString()
    recorded(gc.from_source(model), {"x": X})
    assert model.SerializeToString() == before


def test_recording_that_a_view_asks_for_is_done_in_plain_runs() -> None:
    graph = gc.from_source(branching())
    graph.recording = VALUES
    gc.Session(graph).run("h", {"x": X})
    assert isinstance(graph.trace, gc.Trace)
    assert graph.trace.values is not None


def test_a_model_that_nothing_runs_says_what_it_is() -> None:
    main = ForeignFunction("main", outputs=(("x", 0),), nodes=[ForeignNode("x", "chain.Input", outputs=(Port("x"),), kind="input")])
    with pytest.raises(FailedPreconditionError, match="of the kind chain of ops, and nothing here runs such models"):
        gc.Session(lower(ForeignGraph("chain of ops", main))).run(None, {"x": X})


def is_same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list) or isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if ours is None or theirs is None:
        return ours is theirs
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    return bool((ours == theirs).all()) if ours.dtype.kind in "OU" else ours.tobytes() == theirs.tobytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_cases_of_onnx_give_what_the_plain_evaluator_gives() -> None:
    from onnx.backend.test.case.node import collect_testcases  # noqa: PLC0415 - it makes all cases, which takes seconds

    differing, count = [], 0
    cases: list[Any] = list(collect_testcases())
    for case in cases:
        feeds = dict(zip([info.name for info in case.model.graph.input], case.data_sets[0][0], strict=False))
        try:
            theirs: Any = ReferenceEvaluator(case.model).run(None, feeds)
        except Exception:  # noqa: BLE001 - it does not implement all ops
            continue
        graph = gc.from_source(case.model)
        record = foreign_of(graph)
        assert record is not None
        inputs = {node.outputs[0].name: name for name, node in record.nodes.items() if node.kind == "input"}
        ours, _, _ = recorded(graph, {inputs[name]: value for name, value in feeds.items() if name in inputs})
        count += 1
        if not is_same(list(ours), list(theirs)):
            differing.append(case.name)
    assert count > 1000
    assert [name for name in differing if not name.startswith("test_bernoulli")] == [], "those draw numbers without a seed"
