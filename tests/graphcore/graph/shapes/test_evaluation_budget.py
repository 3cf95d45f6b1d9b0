"""Values computed before a run stay within one budget of time and memory, whatever a graph holds."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import TensorValue
from graphcore.definitions import GraphDef, NodeDef, VersionDef
from graphcore.definitions.wire import graph_def_to_bytes, graph_def_to_text
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import constant_value
from graphcore.support import budget
from graphcore.tf1.python_calls import py_func

INT: dict[str, Any] = {"T": gc.int32}
SECONDS = 12.0
"""Processor time of a load: 2 of evaluation, and some for one op beyond, on a slow and busy machine."""
MEMORY_KIB = 1 << 20


@pytest.fixture(autouse=True)
def own_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(budget, "_limits", [])
    yield
    budget._limits.clear()


def const(name: str, value: Any, dtype: gc.DType = gc.int32) -> NodeDef:
    array = np.array(value, object if dtype is gc.string else dtype.as_numpy)
    return NodeDef(name, "Const", (), "", {"dtype": dtype, "value": TensorValue(array, dtype)})


def node(name: str, op: str, *inputs: str, **attrs: Any) -> NodeDef:
    return NodeDef(name, op, inputs, "", attrs)


def asked(of: str, dtype: gc.DType = gc.int32) -> list[NodeDef]:
    """A node whose shape depends on the number `of`."""
    return [
        const("origin", 0),
        node("number", "Cast", of, SrcT=dtype, DstT=gc.int32, Truncate=False),
        node("vector", "ExpandDims", "number", "origin", T=gc.int32, Tdim=gc.int32),
        node("x", "Placeholder", dtype=gc.float32),
        node("y", "Reshape", "x", "vector", T=gc.float32, Tshape=gc.int32),
    ]


def length(of: str) -> list[NodeDef]:
    """A node whose shape depends on the length of the string `of`."""
    return [node("length", "StringLength", of, unit=b"BYTE"), *asked("length")]


def total(of: str) -> list[NodeDef]:
    """A node whose shape depends on the sum of the matrix `of`."""
    return [const("axes", [0, 1]), node("total", "Sum", of, "axes", T=gc.int32, Tidx=gc.int32, keep_dims=False), *asked("total")]


def filled(size: int) -> list[NodeDef]:
    return [const("dims", [size, size]), const("one", 1), node("a0", "Fill", "dims", "one", T=gc.int32, index_type=gc.int32)]


def chain(op: str, count: int, inputs: int = 2, **attrs: Any) -> list[NodeDef]:
    return [node(f"a{i + 1}", op, *[f"a{i}"] * inputs, **attrs) for i in range(count)]


TEXT = const("a0", b"a" * 1000, gc.string)
BOMBS: dict[str, Sequence[NodeDef]] = {
    "a pattern that backtracks": [
        const("text", b"a" * 40 + b"!", gc.string),
        const("pattern", b"(a|aa)+$", gc.string),
        node("match", "RegexFullMatch", "text", "pattern"),
        *asked("match", gc.bool_),
    ],
    "every match of a pattern in a long text": [
        const("text", b"x" * 100_000, gc.string),
        const("pattern", b"x*y|x", gc.string),
        const("rewrite", rb"\0" * 1000, gc.string),
        node("replaced", "RegexReplace", "text", "pattern", "rewrite", replace_global=True),
        *length("replaced"),
    ],
    "digits that are no number": [
        const("text", b"1" * 100_000 + b"x", gc.string),
        node("number_in_text", "StringToNumber", "text", out_type=gc.int32),
        *asked("number_in_text"),
    ],
    "a wide text": [
        const("seven", 7),
        node("text", "AsString", "seven", width=2**31 - 1, precision=-1, scientific=False, shortest=False, fill=b"", T=gc.int32),
        *length("text"),
    ],
    "digits after the point": [
        const("seven", 7.5, gc.float32),
        node("text", "AsString", "seven", width=-1, precision=2**31 - 1, scientific=False, shortest=False, fill=b"", T=gc.float32),
        *length("text"),
    ],
    "texts joined with themselves": [TEXT, *chain("StringJoin", 24, N=2, separator=b""), *length("a24")],
    "texts joined by addition": [TEXT, *chain("Add", 24, T=gc.string), *length("a24")],
    "a wide separator": [
        TEXT,
        node("joined", "StringJoin", *["a0"] * 4, N=4, separator=b"-" * 10**6),
        node("again", "StringJoin", *["joined"] * 999, N=999, separator=b""),
        *length("again"),
    ],
    "texts repeated": [
        TEXT,
        const("shape", [1000, 1000]),
        node("texts", "Fill", "shape", "a0", T=gc.string, index_type=gc.int32),
        node("reduced", "ReduceJoin", "texts", "axes", keep_dims=False, separator=b""),
        const("axes", [0, 1]),
        *length("reduced"),
    ],
    "products of matrices of integers": [
        *filled(400),
        *chain("MatMul", 300, transpose_a=False, transpose_b=False, **INT),
        *total("a300"),
    ],
    "many large sums": [*filled(1000), *chain("AddV2", 3000, **INT), *total("a3000")],
    "many sorts": [
        *filled(1000),
        const("flat", [-1]),
        node("v", "Reshape", "a0", "flat", T=gc.int32, Tshape=gc.int32),
        *[each for i in range(200) for each in (node(f"u{i}", "Unique", "v" if not i else f"u{i - 1}:1", T=gc.int32, out_idx=gc.int32),)],
        node("m", "ExpandDims", "u199:1", "origin", T=gc.int32, Tdim=gc.int32),
        *total("m"),
    ],
    "a range": [
        const("zero", 0),
        const("most", 2**31 - 1),
        const("one", 1),
        node("numbers", "Range", "zero", "most", "one", Tidx=gc.int32),
        node("m", "ExpandDims", "numbers", "zero", T=gc.int32, Tdim=gc.int32),
        *total("m"),
    ],
    "a value for each class": [
        const("indices", list(range(1000))),
        const("depth", 2**31 - 1),
        const("on", 1),
        const("off", 0),
        node("hot", "OneHot", "indices", "depth", "on", "off", T=gc.int32, TI=gc.int32, axis=-1),
        *total("hot"),
    ],
    "padding": [
        *filled(10),
        const("paddings", [[0, 2**30], [0, 2**30]]),
        node("padded", "Pad", "a0", "paddings", T=gc.int32, Tpaddings=gc.int32),
        *total("padded"),
    ],
    "tiles": [
        *filled(10),
        const("times", [2**27, 2**27]),
        node("tiled", "Tile", "a0", "times", T=gc.int32, Tmultiples=gc.int32),
        *total("tiled"),
    ],
    "a broadcast that is added": [
        const("one", 1),
        const("dims", [2**15, 2**15]),
        node("wide", "BroadcastTo", "one", "dims", T=gc.int32, Tidx=gc.int32),
        node("sum", "AddV2", "wide", "wide", **INT),
        *total("sum"),
    ],
    "an index that is large": [
        const("index", [[2**30]]),
        const("values", [[1, 2]]),
        node("stitched", "DynamicStitch", "index", "values_3", N=1, T=gc.int32),
        const("values_3", [[[1, 2]]]),
        *total("stitched"),
    ],
    "bins": [
        const("numbers", [1, 2]),
        const("size", 2**31 - 1),
        const("weights", [], gc.int32),
        node("bins", "Bincount", "numbers", "size", "weights", T=gc.int32),
        node("m", "ExpandDims", "bins", "origin", T=gc.int32, Tdim=gc.int32),
        *total("m"),
    ],
    "many outputs": [
        node("x", "Placeholder", dtype=gc.float32),
        *[node(f"u{i}", "Unpack", "x", T=gc.float32, num=65535, axis=0) for i in range(300)],
    ],
    "more outputs": [
        node("x", "Placeholder", dtype=gc.float32),
        *[node(f"u{i}", "Unpack", "x", T=gc.float32, num=2**22, axis=0) for i in range(30)],
    ],
    "an output with a large number": [node("o", "SomebodysOp"), node("i", "Identity", "o:2000000000", T=gc.float32)],
    "outputs with large numbers": [
        each for i in range(30) for each in (node(f"o{i}", "SomebodysOp"), node(f"i{i}", "Identity", f"o{i}:4000000", T=gc.float32))
    ],
    "partly known sizes passed on, and asked for at each step": [
        node("a0", "Placeholder", dtype=gc.int32, shape=gc.Shape([3])),
        node("x", "Placeholder", dtype=gc.float32),
        *[each for i in range(3000) for each in (
            node(f"a{i + 1}", "AddV2", f"a{i}", f"a{i}", **INT),
            node(f"y{i}", "Reshape", "x", f"a{i + 1}", T=gc.float32, Tshape=gc.int32),
        )],
    ],
}  # fmt: skip


def graph_def(nodes: Sequence[NodeDef]) -> GraphDef:
    return GraphDef(node=tuple(nodes), versions=VersionDef(producer=1000))


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_takes_neither_much_time_nor_memory_to_open(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(graph_def_to_bytes(graph_def(BOMBS[name])))
    started, before = time.thread_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(GraphError):
        gc.load(path, allow_unknown_ops=True)
    assert time.thread_time() - started < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KIB


@pytest.mark.slow
def test_texts_differences_explanations_and_import_are_within_the_budget_too(tmp_path: Path) -> None:
    bomb = graph_def([*filled(400), *chain("MatMul", 300, transpose_a=False, transpose_b=False, **INT), *total("a300")])
    path = tmp_path / "model.pbtxt"
    path.write_text(graph_def_to_text(bomb))
    started = time.thread_time()
    graph = gc.load(path)
    assert not gc.graph_diff(graph, path)
    assert constant_value(graph.get_tensor_by_name("a300:0")) is None
    text = gc.explain_shape(graph.get_tensor_by_name("y:0")).text
    assert "the budget of 2 s for values before a run is used up" in text
    assert time.thread_time() - started < 3 * SECONDS


def test_calls_of_functions_are_within_the_budget() -> None:
    deep = "F0[T:type](x:T) -> (y:T) {\n a = Neg[T=$T](x)\n return y = a:y:0\n}"
    library = gc.FunctionLibraryDefinition()
    library.add_function_def(gc.define_function(deep))
    for level in range(1, 8):
        calls = "\n".join([f" c{i} = F{level - 1}[T=$T]({'x' if not i else f'c{i - 1}:y:0'})" for i in range(10)])
        text = f"F{level}[T:type](x:T) -> (y:T) {{\n{calls}\n return y = c9:y:0\n}}"
        library.add_function_def(gc.define_function(text, look_up=library.look_up_op_def))
    nodes = [node("x", "Placeholder", dtype=gc.float32), *[node(f"c{i}", "F7", "x", T=gc.float32) for i in range(2000)]]
    graph_def_of_calls = GraphDef(node=tuple(nodes), versions=VersionDef(producer=1000), library=library.to_proto())
    started = time.thread_time()
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(graph_def_of_calls, name="")
    assert len(graph.nodes) == 2001
    assert time.thread_time() - started < SECONDS


def test_a_value_beyond_the_limits_is_unknown_and_the_explanation_says_so() -> None:
    nodes = [TEXT, node("joined", "StringJoin", *["a0"] * 4, N=4, separator=b""), *length("joined")]
    gc.set_evaluation_limits(bytes=2000)
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(graph_def(nodes), name="")
    y = graph.get_tensor_by_name("y:0")
    assert y.shape.as_list() == [None]
    text = gc.explain_shape(y).text
    assert "`joined` (op StringJoin) is not evaluated before a run: its value can take" in text
    assert gc.Session(graph=graph).run(graph.get_tensor_by_name("length:0")) == 4000


def test_raised_limits_hold_for_what_is_opened_after() -> None:
    nodes = [TEXT, node("joined", "StringJoin", *["a0"] * 4, N=4, separator=b""), *length("joined")]
    gc.set_evaluation_limits(seconds=0)
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(graph_def(nodes), name="")
    assert graph.get_tensor_by_name("y:0").shape.as_list() == [None]
    assert gc.set_evaluation_limits(seconds=5).seconds == 5
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(graph_def(nodes), name="")
    assert graph.get_tensor_by_name("y:0").shape.as_list() == [4000]


def test_the_environment_sets_the_limits_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHLOUPE_EVALUATION_SECONDS", "0.5")
    monkeypatch.setenv("GRAPHLOUPE_EVALUATION_BYTES", "1e6")
    limits = budget.evaluation_limits()
    assert (limits.seconds, limits.bytes) == (0.5, 1_000_000)
    budget._limits.clear()
    monkeypatch.setenv("GRAPHLOUPE_EVALUATION_BYTES", "much")
    with pytest.raises(InvalidArgumentError, match="GRAPHLOUPE_EVALUATION_BYTES must be a number, got 'much'"):
        budget.evaluation_limits()


def test_computing_is_charged_and_waiting_is_not() -> None:
    charged = budget.Budget(budget.EvaluationLimits(seconds=5.0))
    start, computing = time.perf_counter(), time.thread_time()
    while time.thread_time() - computing < 0.02:
        pass
    charged.charge_since(start)
    assert charged.seconds <= 4.98
    left, start = charged.seconds, time.perf_counter()
    time.sleep(0.5)
    charged.charge_since(start)
    assert charged.seconds > left - 0.4


@pytest.mark.parametrize("limits", [{"seconds": -1}, {"bytes": -1}, {"seconds": float("nan")}])
def test_a_negative_limit_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="must not be negative"):
        gc.set_evaluation_limits(**limits)


def test_a_file_that_a_graph_names_is_read_only_by_a_run_and_by_each_run(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\x05\0\0\0")
    nodes = [
        const("name", os.fsencode(file), gc.string),
        node("contents", "ReadFile", "name"),
        node("numbers", "DecodeRaw", "contents", out_type=gc.int32, little_endian=True),
        node("x", "Placeholder", dtype=gc.float32),
        node("y", "Reshape", "x", "numbers", T=gc.float32, Tshape=gc.int32),
        const("pattern", os.fsencode(tmp_path / "*"), gc.string),
        node("found", "MatchingFiles", "pattern"),
    ]
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(graph_def(nodes), name="")
    contents, found, y = [graph.get_tensor_by_name(name) for name in ("contents:0", "found:0", "y:0")]
    assert y.shape.rank is None
    assert constant_value(contents) is None
    assert constant_value(found) is None
    with gc.Session(graph=graph) as session:
        assert session.run(contents) == b"\x05\0\0\0"
        assert len(session.run(found)) == 1
        file.write_bytes(b"new.")
        (tmp_path / "b.txt").write_bytes(b"")
        assert session.run(contents) == b"new."
        assert len(session.run(found)) == 2


def test_a_pipe_that_a_graph_names_is_not_opened_by_loading(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    nodes = [const("name", os.fsencode(tmp_path / "pipe"), gc.string), node("contents", "ReadFile", "name"), *length("contents")]
    with gc.Graph().as_default() as graph:
        gc.import_graph_def(graph_def(nodes), name="")
    assert graph.get_tensor_by_name("y:0").shape.as_list() == [None]


def test_a_python_function_of_this_process_is_not_called_by_loading() -> None:
    called: list[str] = []

    def pay(x: Any) -> Any:
        called.append("paid")
        return np.array([3], np.int32)

    with gc.Graph().as_default():
        token = py_func(pay, [gc.constant(1)], gc.int32).node.get_attr("token")
    for op in ("PyFuncStateless", "PyFunc"):
        nodes = [
            const("i", 1),
            node("r", op, "i", token=token, Tin=(gc.int32,), Tout=(gc.int32,)),
            node("x", "Placeholder", dtype=gc.float32),
            node("y", "Reshape", "x", "r", T=gc.float32, Tshape=gc.int32),
        ]
        with gc.Graph().as_default() as graph:
            gc.import_graph_def(graph_def(nodes), name="")
            gc.optimize_graph(None, graph)
        assert not called
