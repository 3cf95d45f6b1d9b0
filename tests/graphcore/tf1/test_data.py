"""`gc.data`: datasets and iterators in sessions, files and cells."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore
from graphcore.support.records import record_bytes
from tests.graphcore.api.cell_runs import Cells

gc: Any = graphcore  # its namespaces are found on demand


@pytest.fixture(autouse=True)
def graph() -> Iterator[graphcore.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def drained(session: Any, following: Any) -> list[Any]:
    """All further elements."""
    found: list[Any] = []
    while True:
        try:
            value = session.run(following)
        except gc.errors.OutOfRangeError:
            return found
        found.append(value.tolist() if hasattr(value, "tolist") else value)


def elements(dataset: Any, **options: Any) -> list[Any]:
    following = dataset.make_one_shot_iterator().get_next()
    with gc.Session(**options) as session:
        return drained(session, following)


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_training_loop_runs_until_the_data_end_in_each_session(engine: str) -> None:
    features = np.arange(6, dtype=np.float32)
    x, y = gc.data.Dataset.from_tensor_slices((features, 2 * features)).batch(2).make_one_shot_iterator().get_next()
    w = gc.Variable(0.0)
    step = gc.train.GradientDescentOptimizer(0.05).minimize(gc.reduce_mean(gc.square(w * x - y)))
    for _ in range(2):
        with gc.Session(engine=engine) as session:
            session.run(gc.global_variables_initializer())
            assert drained(session, step) == [None] * 3
            assert session.run(w) > 1


def test_an_initializer_takes_what_is_fed_and_starts_again() -> None:
    x = gc.placeholder(gc.float32, [None])
    iterator = gc.data.Dataset.from_tensor_slices(x).make_initializable_iterator()
    following = iterator.get_next()
    values = np.array([1.0, 2.0], np.float32)
    with gc.Session() as session:
        with pytest.raises(gc.errors.FailedPreconditionError, match=r"has not been initialized\. Ensure that you have run the initializer"):
            session.run(following)
        session.run(iterator.initializer, {x: values})
        values[:] = 9  # the data are those of the feed
        assert drained(session, following) == [1, 2]
        session.run(iterator.initializer, {x: [5.0]})
        assert drained(session, following) == [5]
        assert drained(session, following) == []


def test_one_iterator_reads_datasets_of_one_structure_in_turn() -> None:
    train, test = gc.data.Dataset.range(3), gc.data.Dataset.range(10, 12)
    iterator = gc.data.Iterator.from_structure(train.output_types, train.output_shapes)
    following = iterator.get_next()
    starts = [iterator.make_initializer(each) for each in (train, test)]
    with gc.Session() as session:
        found = []
        for start in (*starts, starts[0]):
            session.run(start)
            found.append(drained(session, following))
    assert found == [[0, 1, 2], [10, 11], [0, 1, 2]]
    with pytest.raises(gc.errors.InvalidArgumentError, match="Expected output types"):
        iterator.make_initializer(gc.data.Dataset.from_tensors(1.0))
    with pytest.raises(gc.errors.InvalidArgumentError, match="Expected output shapes compatible with"):
        iterator.make_initializer(train.batch(2))
    with pytest.raises(gc.errors.InvalidArgumentError, match="does not have an initializer"):
        _ = iterator.initializer


def test_a_fed_string_handle_chooses_the_iterator() -> None:
    handle = gc.placeholder(gc.string, [])
    following = gc.data.Iterator.from_string_handle(handle, gc.int64, []).get_next()
    texts = [gc.data.Dataset.range(start, start + 9).make_one_shot_iterator().string_handle() for start in (0, 100)]
    with gc.Session() as session:
        small, large = session.run(texts)
        found = [session.run(following, {handle: each}) for each in (small, large, small, large)]
        assert found == [0, 100, 1, 101]
        with pytest.raises(gc.errors.NotFoundError, match=r"has the handle b'none': run iterator\.string_handle\(\)"):
            session.run(following, {handle: b"none"})


def test_a_seed_gives_the_same_order_in_each_session_and_none_gives_others() -> None:
    seeded, free = (gc.data.Dataset.range(50).shuffle(50, seed=seed).make_one_shot_iterator().get_next() for seed in (1, None))
    orders = []
    for _ in range(2):
        with gc.Session() as session:
            orders.append((drained(session, seeded), drained(session, free)))
    assert orders[0][0] == orders[1][0]
    assert orders[0][1] != orders[1][1]
    assert sorted(orders[0][1]) == list(range(50))


def test_types_and_shapes_are_nested_as_elements_are() -> None:
    dataset = gc.data.Dataset.from_tensor_slices({"a": np.zeros((4, 3)), "b": ([1, 2, 3, 4], ["w"] * 4)}).batch(2)
    assert dataset.output_types == {"a": gc.float64, "b": (gc.int32, gc.string)}
    assert {key: str(value) for key, value in dataset.output_shapes.items() if key == "a"} == {"a": "[?,3]"}
    assert dataset.output_classes == {"a": gc.Tensor, "b": (gc.Tensor, gc.Tensor)}
    assert dataset.batch(2, drop_remainder=True).output_shapes["a"].as_list() == [2, None, 3]
    element = dataset.make_one_shot_iterator().get_next()
    assert (element["a"].shape.as_list(), element["b"][1].dtype) == ([None, 3], gc.string)


def test_a_mapped_function_uses_tensors_and_variables_around_it() -> None:
    offset = gc.placeholder(gc.int64, [])
    scale = gc.Variable(np.int64(3), use_resource=True)
    iterator = gc.data.Dataset.range(3).map(lambda i: i * scale + offset).make_initializable_iterator()
    following = iterator.get_next()
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        session.run(iterator.initializer, {offset: 100})
        assert drained(session, following) == [100, 103, 106]


def test_an_error_of_one_element_is_raised_and_the_next_one_follows() -> None:
    dataset = gc.data.Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: gc.check_numerics(1 / x, "divided")).batch(1)
    following = dataset.make_one_shot_iterator().get_next()
    with gc.Session() as session, np.errstate(divide="ignore"):
        assert session.run(following) == [1.0]
        with pytest.raises(gc.errors.InvalidArgumentError, match="divided : Tensor had Inf"):
            session.run(following)
        assert session.run(following) == [0.5]


def test_files_are_read_by_lines_records_and_fixed_sizes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\n\nthree")
    (tmp_path / "b.txt").write_bytes(b"four\n")
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"packed\nlines\n"))
    (tmp_path / "d.rec").write_bytes(b"".join(map(record_bytes, [b"first", b"", b"third"])))
    (tmp_path / "e.bin").write_bytes(b"HHaabbccF")
    paths = {path.name[0]: str(path) for path in tmp_path.iterdir()}
    data = gc.data
    assert elements(data.TextLineDataset([paths["a"], paths["b"]])) == [b"one", b"two", b"", b"three", b"four"]
    assert elements(data.TextLineDataset(data.Dataset.from_tensor_slices([paths["b"], paths["a"]])).take(2)) == [b"four", b"one"]
    assert elements(data.TextLineDataset(paths["c"], compression_type="GZIP")) == [b"packed", b"lines"]
    assert elements(data.TFRecordDataset(paths["d"])) == [b"first", b"", b"third"]
    assert elements(data.FixedLengthRecordDataset(paths["e"], 2, 2, 1)) == [b"aa", b"bb", b"cc"]
    assert elements(data.Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)) == [paths["a"].encode(), paths["b"].encode()]
    assert elements(data.Dataset.list_files(str(tmp_path / "*"), seed=1).map(gc.read_file).batch(9).map(gc.shape)) == [[5]]
    with pytest.raises(gc.errors.NotFoundError, match="missing; No such file"):
        elements(data.TextLineDataset(str(tmp_path / "missing")))
    with pytest.raises(gc.errors.InvalidArgumentError, match="Excess bytes"):
        elements(data.FixedLengthRecordDataset(paths["e"], 2, 2))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda d: d.from_tensor_slices(3), "required tensors with a first dimension, got a scalar"),
        (lambda d: d.from_tensor_slices(()), "Required a tensor.*got none"),
        (lambda d: d.from_tensor_slices(([1, 2], [1])), "required components with equal first dimensions"),
        (lambda d: d.range(3).batch(0), "batch_size must be greater than zero, got 0"),
        (lambda d: d.range(3).shuffle(0), "buffer_size must be greater than zero, got 0"),
        (lambda d: d.range(1, 2, 0), "step must be a non-zero integer"),
        (lambda d: d.range(3).concatenate(d.from_tensors(1.0)), "Two datasets to concatenate have different types"),
        (lambda d: d.range(3).filter(lambda i: i), "`predicate` must return a scalar boolean tensor"),
        (lambda d: d.range(3).map(3), "map_func: required a function of an element"),
        (lambda d: d.range(3).map(lambda _: None), "The function must return tensors"),
        (lambda d: d.range(3).flat_map(lambda i: i), "The function must return a Dataset, got Tensor"),
        (lambda d: d.range(3).zip((d.range(2), 4)), "dataset: required a gc.data.Dataset, got int 4"),
        (lambda d: d.range(3).cache("file"), "caches in files are not available"),
        (lambda d: d.range(3).map(lambda i: gc.fill([i], 1)).batch(3), "Cannot batch tensors with different shapes in component 0"),
        (lambda d: d.range(3).map(lambda i: gc.fill([i], 1)).padded_batch(3, [1]), "Attempted to pad to a smaller size"),
        (lambda d: d.from_generator(lambda: ["a"], gc.int32), "could not be converted to the expected type. The expected type was int32"),
        (lambda d: d.from_generator(lambda: [1.5], gc.int32), "could not be converted to the expected type"),
        (lambda d: d.from_generator(lambda: [[1]], gc.int32, []), r"yielded an element of shape \[1\] where an element of shape \[\]"),
        (lambda d: d.from_generator(lambda: [1], (gc.int32, gc.int32)), "did not match the expected structure"),
        (lambda d: d.from_generator(5, gc.int32), "generator: required a function that returns an iterable, got int 5"),
        (lambda d: d.from_tensor_slices(gc.placeholder(gc.float32, [2], name="fed")), "cannot depend on the placeholder 'fed'"),
        (lambda d: d.from_tensor_slices(gc.Variable([1.0], name="w")), "which is state: use make_initializable_iterator"),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(gc.errors.GraphError, match=text):
        elements(make(gc.data.Dataset))


def test_a_cell_that_runs_again_starts_anew_in_an_old_session(graph: graphcore.Graph) -> None:
    cells, made = Cells(graph), dict[str, Any]()

    def data() -> None:
        made["x"] = gc.data.Dataset.range(3).make_one_shot_iterator().get_next()

    cells.run("data", data)
    with gc.Session() as session:
        assert drained(session, made["x"]) == [0, 1, 2]
        assert drained(session, made["x"]) == []
        cells.run("data", data)
        assert drained(session, made["x"]) == [0, 1, 2]


def test_an_edit_of_an_earlier_cell_reaches_datasets_and_elements_of_later_ones(graph: graphcore.Graph) -> None:
    cells, made = Cells(graph), dict[str, Any]()

    def source(values: Any) -> None:
        made["source"] = gc.data.Dataset.from_tensor_slices(values)

    def batches() -> None:
        made["batches"] = made["source"].batch(2)

    def following() -> None:
        made["next"] = made["batches"].make_one_shot_iterator().get_next()

    cells.run("source", lambda: source([1, 2, 3]))
    cells.run("batches", batches)
    cells.run("next", following)
    with gc.Session() as session:
        assert drained(session, made["next"]) == [[1, 2], [3]]
        cells.run("source", lambda: source([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        assert drained(session, made["next"]) == [[[1, 2], [3, 4]], [[5, 6]]]
        assert made["next"].dtype is gc.float32
        assert made["next"].shape.as_list() == [None, 2]


def test_a_mapped_function_for_other_elements_is_marked_until_its_cell_runs(graph: graphcore.Graph) -> None:
    cells, made = Cells(graph), dict[str, Any]()

    def source(values: Any) -> None:
        made["source"] = gc.data.Dataset.from_tensor_slices(values)

    def mapped() -> None:
        made["next"] = made["source"].map(lambda x: x + 1).make_one_shot_iterator().get_next()

    cells.run("source", lambda: source([1, 2]))
    cells.run("mapped", mapped)
    cells.run("source", lambda: source([1.5]))
    with gc.Session() as session:
        with pytest.raises(gc.errors.FailedPreconditionError, match="its Python functions were called for other tensors"):
            session.run(made["next"])
        cells.run("mapped", mapped)
        assert drained(session, made["next"]) == [2.5]


def test_a_python_function_is_called_in_each_run() -> None:
    calls: list[Any] = []

    def double(x: Any, text: Any) -> Any:
        calls.append((x.tolist(), text))
        return x * 2, [text, b"!"]

    y, texts = gc.py_func(double, [gc.constant([1.0, 2.0]), "a"], [gc.float32, gc.string])
    with gc.Session() as session:
        for _ in range(2):
            values = session.run([y, texts])
            assert [value.tolist() for value in values] == [[2, 4], [b"a", b"!"]]
    assert calls == [([1, 2], b"a")] * 2
    assert gc.py_func(lambda: None, [], []).op == "PyFunc"


@pytest.mark.parametrize(
    ("func", "text"),
    [
        (lambda x: x.astype(np.float64), "0-th value returned by the Python function of 'call' is double, but expects float"),
        (lambda x: (x, x), "must return 1 values, and returned 2"),
        (lambda _: "text", "could not convert string to float"),
    ],
)
def test_results_of_a_python_function_that_do_not_fit_are_errors(func: Callable[..., Any], text: str) -> None:
    y = gc.py_func(func, [gc.constant(1.0)], gc.float32, name="call")
    with gc.Session() as session, pytest.raises(gc.errors.InvalidArgumentError, match=text):
        session.run(y)
    with pytest.raises(gc.errors.InvalidArgumentError, match="func: required a function, got int 3"):
        gc.py_func(3, [], gc.float32)


def test_a_graph_from_a_file_refuses_to_call_a_function_that_no_file_holds(tmp_path: Path) -> None:
    source = """
import sys
import graphcore as gc
gc.py_func(lambda x: x, [gc.constant(1.0)], gc.float32, name="call")
gc.save(gc.get_default_graph(), sys.argv[1])
"""
    path = str(tmp_path / "graph.pb")
    subprocess.run([sys.executable, "-c", source, path], check=True)
    loaded = gc.load(path)
    text = r"calls a Python function that is not here.*no file holds it"
    with gc.Session(graph=loaded) as session, pytest.raises(gc.errors.FailedPreconditionError, match=text):
        session.run("call:0")


@pytest.mark.parametrize(
    ("yielded", "dtype", "found"),
    [
        (np.array([[6.0], [7.0]]), gc.int32, [[6], [7]]),
        (np.array([1, 2]), gc.float32, [1.0, 2.0]),
        (np.float64(2.0), gc.uint8, 2),
        ([3.0, 4.0], gc.int64, [3, 4]),
        (np.array([True, False]), gc.float32, [1.0, 0.0]),
        (np.array([0, 2]), gc.bool_, [False, True]),
        (np.array([300]), gc.int16, [300]),
    ],
)
def test_what_a_generator_yields_takes_the_declared_type(yielded: Any, dtype: gc.DType, found: Any) -> None:
    with gc.Graph().as_default():
        dataset = gc.data.Dataset.from_generator(lambda: iter([yielded]), dtype)
        result = gc.Session().run(dataset.make_one_shot_iterator().get_next())
    assert result.dtype == dtype.as_numpy
    assert result.tolist() == found


@pytest.mark.parametrize(
    ("yielded", "dtype"),
    [
        (np.array([1.5]), gc.int32),
        (np.array([np.nan]), gc.int32),
        (np.array([300]), gc.uint8),
        (np.array([1j]), gc.float32),
        (["1"], gc.int32),
    ],
)
def test_what_the_declared_type_does_not_hold_is_refused(yielded: Any, dtype: gc.DType) -> None:
    with gc.Graph().as_default():
        dataset = gc.data.Dataset.from_generator(lambda: iter([yielded]), dtype)
        value = dataset.make_one_shot_iterator().get_next()
        with pytest.raises(gc.errors.InvalidArgumentError, match="could not be converted to the expected type"):
            gc.Session().run(value)


def test_a_generator_and_a_python_function_may_write_into_their_arrays_again() -> None:
    buffer = np.zeros(2, np.float32)

    def doubled(x: Any) -> Any:
        np.multiply(x, 2, out=buffer)
        return buffer

    def yielded() -> Any:
        for number in (1.0, 2.0):
            buffer[:] = number
            yield buffer

    with gc.Graph().as_default(), gc.Session() as session:
        y = gc.py_func(doubled, [gc.constant([1.0, 2.0])], gc.float32)
        first = session.run(y)
        assert session.run(y).tolist() == first.tolist() == [2.0, 4.0]
        element = gc.data.Dataset.from_generator(yielded, gc.float32).make_one_shot_iterator().get_next()
        assert [session.run(element).tolist() for _ in range(2)] == [[1.0, 1.0], [2.0, 2.0]]
    assert buffer.flags.writeable
