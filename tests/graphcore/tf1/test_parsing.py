"""Parsers of serialized examples and of records with separators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore

gc: Any = graphcore  # its namespaces are found on demand
train: Any = gc.train
ENGINES = pytest.mark.parametrize("engine", ["plan", "dataflow"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[graphcore.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def message(**features: list[Any]) -> bytes:
    """A serialized example; the type of the first value is that of the feature."""
    made = {}
    for name, values in features.items():
        kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}[type(values[0])]
        made[name] = train.Feature(**{kind: {"value": values}})
    serialized: bytes = train.Example(features=train.Features(feature=made)).SerializeToString()
    return serialized


FULL, SHORT = message(x=[1.0, 2.0], tags=[3, 4, 5], word=[b"a"]), message(x=[3.0, 4.0], tags=[7])
MESSAGES = np.array([FULL, SHORT], object)


@ENGINES
def test_a_program_trains_on_a_file_of_examples(tmp_path: Path, engine: str) -> None:
    path = str(tmp_path / "train.tfrecords")
    rng = np.random.default_rng(0)
    with gc.python_io.TFRecordWriter(path) as writer:
        for number in range(64):
            x = rng.normal(size=2)
            values: dict[str, list[Any]] = {"y": [float(x @ [2.0, -1.0] + 0.5)], "tags": [number] * (1 + number % 3)}
            writer.write(message(x=x.tolist(), **values))
    features = {"x": gc.FixedLenFeature([2], gc.float32), "y": gc.FixedLenFeature([], gc.float32), "tags": gc.VarLenFeature(gc.int64)}
    one = gc.data.TFRecordDataset([path]).map(lambda record: gc.parse_single_example(record, features)).make_one_shot_iterator().get_next()
    batches = gc.data.TFRecordDataset([path]).repeat().batch(16).map(lambda records: gc.io.parse_example(records, features))
    batch = batches.make_one_shot_iterator().get_next()
    w, b = gc.Variable(gc.zeros([2, 1])), gc.Variable(0.0)
    loss = gc.reduce_mean(gc.square(gc.squeeze(gc.matmul(batch["x"], w), 1) + b - batch["y"]))
    step = train.GradientDescentOptimizer(0.2).minimize(loss)
    with gc.Session(engine=engine) as session:
        first, second = session.run(one), session.run(one)
        assert first["tags"].values.tolist() == [0]
        assert [part.tolist() for part in second["tags"]] == [[[0], [1]], [1, 1], [2]]
        assert session.run(batch["tags"]).dense_shape.tolist() == [16, 3]
        session.run(gc.global_variables_initializer())
        for _ in range(100):
            session.run(step)
        np.testing.assert_allclose(session.run(w), [[2.0], [-1.0]], atol=1e-3)


@ENGINES
def test_fed_messages_give_dense_sparse_and_padded_features(engine: str) -> None:
    records = gc.placeholder(gc.string, None)
    features = {
        "x": gc.FixedLenFeature([2, 1], gc.float32),
        "word": gc.FixedLenFeature([], gc.string, "none"),
        "tags": gc.FixedLenSequenceFeature([], gc.int64, allow_missing=True, default_value=-1),
        "y": gc.VarLenFeature(gc.float32),
    }
    parsed = gc.parse_example(records, features)
    shapes = {name: str(value.shape) for name, value in parsed.items()}
    assert shapes == {"y": "[?,?]", "x": "[?,2,1]", "word": "[?]", "tags": "[?,?]"}
    with gc.Session(engine=engine) as session:
        found = session.run(parsed, {records: MESSAGES})
        assert found["x"].tolist() == [[[1.0], [2.0]], [[3.0], [4.0]]]
        assert found["word"].tolist() == [b"a", b"none"]
        assert found["tags"].tolist() == [[3, 4, 5], [7, -1, -1]]
        assert [part.tolist() for part in found["y"]] == [[], [], [2, 0]]
        empty = session.run(parsed, {records: np.array([], object)})
        assert {name: empty[name].shape for name in ("x", "word", "tags")} == {"x": (0, 2, 1), "word": (0,), "tags": (0, 0)}
        assert empty["y"].dense_shape.tolist() == [0, 0]


REFUSED_MESSAGES = [
    ({"z": gc.FixedLenFeature([], gc.int64)}, r"Feature: z \(data type: int64\) is required but could not be found"),
    ({"x": gc.FixedLenFeature([3], gc.float32)}, r"Number of float values != expected.  Values size: 2 but output shape: \[3\]"),
    ({"x": gc.FixedLenFeature([2], gc.int64)}, "Data types don't match. Expected type: int64, Actual type: float"),
    ({"x": gc.VarLenFeature(gc.string)}, "Data types don't match. Expected type: string, Actual type: float"),
    ({"x": gc.FixedLenSequenceFeature([3], gc.float32, True)}, "Number of float values is not a multiple of stride length. Saw 2 values"),
]


@ENGINES
@pytest.mark.parametrize(("features", "text"), REFUSED_MESSAGES)
def test_messages_without_what_is_asked_for_are_errors_that_name_message_feature_and_node(
    features: dict[str, Any], text: str, engine: str
) -> None:
    record = gc.placeholder(gc.string, [], name="record")
    batch = gc.parse_example(gc.reshape(record, [1]), features, name="batch", example_names=["first"])
    single = gc.parse_single_example(record, features, name="single")
    for parsed, node in ((batch, "batch/ParseExample"), (single, "single/ParseSingleExample")):
        with pytest.raises(gc.errors.InvalidArgumentError, match=text) as caught:
            gc.Session(engine=engine).run(parsed, {record: FULL})
        assert caught.value.node == node
        assert ("Name: first, " in caught.value.message) == (node == "batch/ParseExample")
        with pytest.raises(gc.errors.InvalidArgumentError, match="Could not parse example input, value: 'b'zzz''"):
            gc.Session(engine=engine).run(parsed, {record: b"zzz"})


def test_other_features_than_the_three_kinds_are_refused_when_the_graph_is_built() -> None:
    cases: list[tuple[Any, str]] = [
        ({}, "features: required a dict of names and features"),
        ({"x": gc.float32}, r"features\['x'\]: required a FixedLenFeature, a VarLenFeature or a FixedLenSequenceFeature"),
        ({"x": gc.FixedLenFeature([None], gc.float32)}, "required a shape with known sizes"),
        ({"x": gc.FixedLenSequenceFeature([], gc.float32)}, "requires allow_missing to be True"),
        ({"x": gc.FixedLenFeature([], gc.int32, 0)}, "int32"),
        ({"x": gc.FixedLenFeature([2], gc.float32, [1.0])}, "Cannot reshape"),
    ]
    for features, text in cases:
        with pytest.raises(gc.errors.GraphError, match=text):
            gc.parse_example(MESSAGES, features)
    with pytest.raises(gc.errors.InvalidArgumentError, match="Shape must be rank 0 but is rank 1"):
        gc.parse_single_example(MESSAGES, {"x": gc.FixedLenFeature([2], gc.float32)})


@pytest.mark.parametrize("join", [lambda data: data.batch(2), lambda data: data.padded_batch(2)])
def test_sparse_features_are_not_joined_after_parsing(join: Callable[[Any], Any]) -> None:
    data = gc.data.Dataset.from_tensor_slices(MESSAGES).map(
        lambda each: gc.parse_single_example(each, {"tags": gc.VarLenFeature(gc.int64)})
    )
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"batch the records first, and parse them by gc\.parse_example"):
        join(data)
    sparse = gc.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 2])
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"from_tensor_slices: required elements of dense tensors"):
        gc.data.Dataset.from_tensor_slices(sparse)
    dense = gc.data.Dataset.from_tensors(sparse).map(gc.sparse_tensor_to_dense).make_one_shot_iterator().get_next()
    assert gc.Session().run(dense).tolist() == [[1.0, 0.0], [0.0, 2.0]]


@ENGINES
def test_lines_of_a_file_give_columns(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text('a,b,c\n1,2.5,"x, y"\n,3,z\n')
    lines = gc.data.TextLineDataset(str(path)).skip(1)
    columns = lines.map(lambda line: tuple(gc.decode_csv(line, [[-1], [0.0], [""]]))).batch(2).make_one_shot_iterator().get_next()
    with gc.Session(engine=engine) as session:
        numbers, floats, words = session.run(columns)
    assert numbers.tolist() == [1, -1]
    assert floats.tolist() == [2.5, 3.0]
    assert words.tolist() == [b"x, y", b"z"]


REFUSED_RECORDS = [
    ("1", "Expect 2 fields but have 1 in record 0"),
    ("1,2,3", "Expect 2 fields but have 3 in record 0"),
    ("x,1", "Field 0 in record 0 is not a valid int32: x"),
    ("2147483648,1", "Field 0 in record 0 is not a valid int32: 2147483648"),
    ("1,", "Field 1 is required but missing in record 0!"),
    ('1"2,3', "Unquoted fields cannot have quotes/CRLFs inside"),
    ('"1,3', "Quoted field has to end with quote followed by delim or end"),
]


@ENGINES
@pytest.mark.parametrize(("record", "text"), REFUSED_RECORDS)
def test_records_that_do_not_fit_are_errors(record: str, text: str, engine: str) -> None:
    records = gc.placeholder(gc.string, [None])
    columns = gc.decode_csv(records, [0, gc.constant([], gc.float64)])
    with pytest.raises(gc.errors.InvalidArgumentError, match=text) as caught:
        gc.Session(engine=engine).run(columns, {records: [record]})
    assert caught.value.node == "DecodeCSV"


@ENGINES
def test_records_of_one_column_are_read(engine: str) -> None:
    (column,) = gc.decode_csv(["3", "4"], [0])
    assert gc.Session(engine=engine).run(column).tolist() == [3, 4]


def test_columns_of_csv_are_selected_in_order() -> None:
    for columns, text in (([1, 0], "not strictly increasing"), ([-1, 0], "contains negative values"), ([0], "do not match: 1 and 2")):
        with pytest.raises(gc.errors.InvalidArgumentError, match=text):
            gc.decode_csv(["1,2"], [0, 0], select_cols=columns)
    with pytest.raises(gc.errors.InvalidArgumentError, match="length-0 or length-1 vector"):
        gc.decode_csv(["1,2"], [[0, 1], 0])
