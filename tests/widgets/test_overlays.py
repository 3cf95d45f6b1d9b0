"""Numbers of the user on graphs, as boxes show them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

import graphcore as gc
from tests.support.asking import inspect
from widgets import SceneState, add_overlay, build_scene, remove_overlay


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    """A default graph for each test."""
    with gc.Graph().as_default():
        yield


@pytest.fixture
def model() -> gc.Graph:
    """Two layers."""
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    for layer in ("first", "second"):
        with gc.name_scope(layer):
            x = gc.tanh(gc.tanh(x, name="cos"), name="tanh")
    return x.graph


def marks(graph: gc.Graph, *opened: str, lens: str = "numbers") -> dict[str, str]:
    """The texts of an overlay by box, all scopes closed but for those opened."""
    state = SceneState(auto_boxes=0)
    state.lens = lens
    state.collapse("*")
    for scope in opened:
        state.expand(scope)
    return {node.id: node.lenses[lens].text for node in build_scene(graph, state).nodes if lens in node.lenses}


def test_a_closed_scope_shows_the_sum_of_its_nodes(model: gc.Graph) -> None:
    add_overlay(model, {"first/cos": 1, "first/tanh": 2.5, "second/cos": 4_000}, unit="µs")
    assert marks(model) == {"first/": "3.5 µs", "second/": "4 ms"}
    assert marks(model, "first/") == {"first/cos": "1 µs", "first/tanh": "2.5 µs", "second/": "4 ms"}


@pytest.mark.parametrize(("combine", "expected"), [("max", "6, max of 2"), ("mean", "4, mean of 2")])
def test_numbers_are_combined_as_asked(model: gc.Graph, combine: Any, expected: str) -> None:
    add_overlay(model, {"first/cos": 2, "first/tanh": 6}, combine=combine)
    assert marks(model) == {"first/": expected}


def test_the_number_of_a_scope_stands_for_all_that_is_in_it(model: gc.Graph) -> None:
    add_overlay(model, {"first": 7, "first/cos": 100})
    assert marks(model) == {"first/": "7"}
    assert marks(model, "first/") == {"first/cos": "100"}


def test_colours_go_by_halves_of_the_greatest_or_by_equal_steps_or_by_thresholds(model: gc.Graph) -> None:
    numbers = {"first/cos": 64, "first/tanh": 31, "second/cos": 1}
    state = SceneState(auto_boxes=0)
    state.expand("*")

    def tones(**options: Any) -> list[int]:
        add_overlay(model, numbers, **options)
        lenses = {node.id: node.lenses["numbers"].tone for node in build_scene(model, state).nodes if "numbers" in node.lenses}
        return [lenses[name] for name in numbers]

    assert tones() == [7, 2, 1]
    assert tones(scale="linear") == [7, 3, 1]
    assert tones(thresholds=[30, 2]) == [7, 7, 5]


def test_tensors_and_nodes_are_keys_too(model: gc.Graph) -> None:
    cos = model.find("first/cos")
    assert cos is not None
    add_overlay(model, {cos: 1, cos.outputs[0]: 2, "second/tanh:0": 3})
    assert marks(model) == {"first/": "2", "second/": "3"}


def test_the_inspector_lists_the_greatest_numbers_of_a_scope(model: gc.Graph) -> None:
    add_overlay(model, {"first/cos": 1, "first/tanh": 2.5}, title="Error", unit="dB")
    told = inspect(model, SceneState(), "first/")
    assert told is not None
    assert told.numbers == [("Error", "3.5 dB, sum of 2"), ("· first/tanh", "2.5 dB"), ("· first/cos", "1 dB")]


def test_several_overlays_are_lenses_of_their_own(model: gc.Graph) -> None:
    add_overlay(model, {"first/cos": 1}, title="Peak memory")
    add_overlay(model, {"first/cos": 2}, title="Error")
    add_overlay(model, {"first/cos": 3}, title="Error")
    assert marks(model, lens="error") == {"first/": "3"}
    assert marks(model, lens="peak_memory") == {"first/": "1"}
    remove_overlay(model, "Error")
    with pytest.raises(gc.errors.NotFoundError, match="Required the title of an overlay, got 'Error': there are Peak memory"):
        remove_overlay(model, "Error")


def test_costs_are_numbers_too() -> None:
    with gc.name_scope("layer"):
        y = gc.matmul(gc.zeros([2, 3]), gc.zeros([3, 500]), name="y")
    add_overlay(y.graph, gc.costs(y), title="Multiply-adds")
    assert marks(y.graph, lens="multiply_adds")["layer/"] == "3 k"


def test_modules_and_names_of_the_source_name_nodes_of_a_model() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["h"], name="/layer1/relu/Relu"),
        helper.make_node("Relu", ["h"], ["y"], name="/layer2/relu/Relu"),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = gc.from_source(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:])))
    assert isinstance(graph, gc.Graph)
    add_overlay(graph, {"/layer1/relu/Relu": 1, "layer2.relu": 2})
    assert set(marks(graph).values()) == {"1", "2"}
    add_overlay(graph, {"h": 3, "y": 4})  # the tensors
    assert set(marks(graph).values()) == {"3", "4"}


def test_a_profile_of_onnx_runtime_names_nodes_of_a_blocked_layout_by_their_tensors(tmp_path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["conv_output"], name="/conv/Conv"), helper.make_node("Relu", ["conv_output"], ["y"])]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 4, 4]) for name in "xy"]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [8, 8, 1, 1], [0.0] * 64)]
    graph = gc.from_source(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], weights)))
    assert isinstance(graph, gc.Graph)
    events = [{"cat": "Node", "name": f"{name}_kernel_time", "dur": 7} for name in ("conv_output_nchwc", "ReorderOutput_token_1")]
    (tmp_path / "profile.json").write_text(json.dumps(events))
    overlay = add_overlay(graph, tmp_path / "profile.json")
    assert dict(zip(overlay.names, overlay.values, strict=True)) == {"conv/Conv": 7}


FILES = {
    "numbers.json": (json.dumps({"first/cos": 1.5}), "1.5"),
    "numbers.csv": ("name,count,ms\nfirst/cos,no,1\nfirst/cos,no,2\n", "3"),
    "numbers_with_counts.csv": ("layer,calls,FLOPs [G]\nfirst/cos,9,1.5\n", "1.5 G"),
    "table_with_an_index.csv": (",layer,calls,ms\n17,first/cos,9,1.5\n", "1.5"),
    "table_with_numbers_first.csv": ("ms,path\n1.5,first/cos\n", "1.5"),
    "numbers.tsv": ("layer\tms\nfirst/cos\t1.5\n", "1.5"),
    "numbers_with_semicolons.csv": ("layer;ms\nfirst/cos;1.5\n", "1.5"),
    "records.json": (json.dumps([{"rank": 1, "layer": "first/cos", "ms": 1.5}]), "1.5"),
    "columns.json": (json.dumps({"layer": {"0": "first/cos"}, "ms": {"0": 1.5}}), "1.5"),
    "framework_op_stats.csv": (
        """Rank,Operation Type,Operation Name,#Occurrences,Total time (us),Total self-time (us),Total self-time on Device (%)
1,cos,first/cos,4,80,2000,0.5
2,cos,first/cos,4,80,500,0.5
""",
        "2.5 ms",
    ),
    "hlo_stats.json": (
        json.dumps(
            {
                "cols": [
                    {"id": "rank", "label": "Rank", "type": "number"},
                    {"id": "hlo_op_name", "label": "HLO op name", "type": "string"},
                    {"id": "tf_op_name", "label": "Framework op name", "type": "string"},
                    {"id": "total_time", "label": "Total time (us)", "type": "number"},
                    {"id": "total_self_time", "label": "Total self time (us)", "type": "number"},
                    {"id": "total_self_time_percent", "label": "Total self time (%)", "type": "number"},
                ],
                "rows": [{"c": [{"v": 1}, {"v": "fusion.1"}, {"v": "first/cos"}, {"v": 9}, {"v": 3}, {"v": 0.7}]}],
            }
        ),
        "3 µs",
    ),
    "onnxruntime.json": (
        json.dumps([{"cat": "Node", "name": "first/cos_kernel_time", "dur": 7}, {"cat": "Session", "name": "run", "dur": 99}]),
        "7 µs",
    ),
    "trace.json": (
        json.dumps({"traceEvents": [{"ph": "X", "name": "first/cos", "dur": 2}, {"ph": "X", "name": "first/cos", "dur": 3}]}),
        "5 µs",
    ),
    "node_data.json": (json.dumps({"main": {"results": {"first/cos": {"value": 4}}}}), "4"),
    "node_data_as_text.json": (json.dumps({"graphsData": {"main": {"results": {"first/cos": {"value": "4"}}}}}), "4"),
    "node_data_of_one_graph.json": (json.dumps({"results": {"first/cos": {"value": 6}}, "thresholds": []}), "6"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_tools_are_read(name: str, model: gc.Graph, tmp_path: Path) -> None:
    text, expected = FILES[name]
    (tmp_path / name).write_text(text)
    add_overlay(model, tmp_path / name)
    assert marks(model) == {"first/": expected}


def test_a_packed_file_is_read_too(model: gc.Graph, tmp_path: Path) -> None:
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(FILES["trace.json"][0].encode()))
    add_overlay(model, tmp_path / "trace.json.gz")
    assert marks(model) == {"first/": "5 µs"}


@pytest.mark.parametrize("index", [None, "path"], ids=["plain", "indexed"])
@pytest.mark.parametrize("columns", [["path", "ms", "calls"], ["calls", "ms", "path"]], ids=["names first", "names last"])
def test_tables_of_pandas_have_names_and_numbers_in_any_order(columns: list[str], index: str | None, model: gc.Graph) -> None:
    pandas: Any = pytest.importorskip("pandas")
    table = pandas.DataFrame({"path": ["first/cos", "second/cos"], "ms": [1.5, 2.5], "calls": [9, 9]})[columns]
    add_overlay(model, table if index is None else table.set_index(index))
    assert marks(model) == {"first/": "1.5", "second/": "2.5"}


def test_a_table_of_polars_has_names_and_numbers_in_any_order(model: gc.Graph) -> None:
    polars: Any = pytest.importorskip("polars")
    add_overlay(model, polars.DataFrame({"rank": [1, 2], "ms": [1.5, 2.5], "path": ["first/cos", "second/cos"]}))
    assert marks(model) == {"first/": "1.5", "second/": "2.5"}


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"first/cos": "much"}, "Required a number for 'first/cos', got 'much'"),
        ({"first/cos": float("inf")}, "Required a finite number for 'first/cos', got inf"),
        ({"nowhere": 1}, "got 1 of which none is in it, such as nowhere"),
        ([1, 2], "Required numbers by name"),
    ],
    ids=["text", "infinite", "unknown name", "list"],
)
def test_what_are_no_numbers_is_refused_and_nothing_changes(numbers: Any, message: str, model: gc.Graph) -> None:
    add_overlay(model, {"first/cos": 1})
    with pytest.raises(gc.errors.InvalidArgumentError, match=message):
        add_overlay(model, numbers)
    assert marks(model) == {"first/": "1"}


@pytest.mark.parametrize("text", ["{", "[1, 2]", "{}", "a\nb\n", "\x00", "[" * 100_000])
def test_a_file_without_numbers_is_refused(text: str, model: gc.Graph, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(gc.errors.InvalidArgumentError, match="Required numbers by name in"):
        add_overlay(model, str(tmp_path / "file"))


def test_a_missing_file_and_a_wrong_option_are_named(model: gc.Graph) -> None:
    with pytest.raises(gc.errors.NotFoundError, match=r"There is no file 'nowhere\.json'"):
        add_overlay(model, "nowhere.json")
    with pytest.raises(gc.errors.InvalidArgumentError, match="Required combine to be sum or max or mean, got 'min'"):
        add_overlay(model, {"first": 1}, combine="min")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(gc.errors.InvalidArgumentError, match="not the name of a lens, got 'Time'"):
        add_overlay(model, {"first": 1}, title="Time")


def test_numbers_written_as_csv_are_read_again(model: gc.Graph, tmp_path: Path) -> None:
    text = add_overlay(model, {"first": 0.1, "second/cos": 1e-9}, title='Error, "abs"', unit="V").to_csv(tmp_path / "numbers.csv")
    assert text == 'name,"Error, ""abs"" [V]"\r\nfirst,0.1\r\nsecond/cos,1e-09\r\n'
    again = add_overlay(model, tmp_path / "numbers.csv")
    assert (again.names, again.values, again.unit) == (["first", "second/cos"], [0.1, 1e-9], "V")


def test_a_scene_has_the_exact_numbers_of_its_boxes(model: gc.Graph) -> None:
    add_overlay(model, {"first/cos": 1 / 3, "first/tanh": 1, "second/cos": 4}, unit="ms", combine="max")
    state = SceneState(auto_boxes=0)
    state.collapse("*")
    (numbers,) = build_scene(model, state).numbers
    assert (numbers.lens, numbers.unit, numbers.values) == ("numbers", "ms", {"first/": 1, "second/": 4})


def test_a_recorded_run_gives_times_and_bytes_in_functions_too() -> None:
    @gc.function
    def inner(a: gc.Tensor) -> gc.Tensor:
        return gc.tanh(a, name="inside")

    y = gc.identity(inner(gc.placeholder(gc.float32, [2, 5], name="x")), name="y")
    with gc.Session() as session:
        session.run(y, {"x:0": [[1.0] * 5] * 2}, gc.RunOptions(trace=True))
    sizes = add_overlay(y.graph, y.graph.trace, title="Memory", unit="B")
    assert dict(zip(sizes.names, sizes.values, strict=True))["inside"] == 2 * 5 * 4
    times = add_overlay(y.graph, y.graph.trace, title="Run")
    assert times.unit == "µs"
    assert times.names == sizes.names
    assert min(times.values) > 0


def test_the_numbers_of_repeats_add_up() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    for layer in range(4):
        with gc.name_scope(f"layer_{layer}"):
            for _ in range(5):
                x = gc.tanh(x)
    add_overlay(x.graph, {node.name: 2 for node in x.graph.op_nodes() if node.op == "Tanh"})
    texts = list(marks(x.graph).values())
    assert sum(int(text) for text in texts) == 40
