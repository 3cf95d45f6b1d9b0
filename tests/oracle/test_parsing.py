"""Parsers of serialized examples and of records with separators, beside TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphcore
from tests.oracle.conftest import Oracle

gc: Any = graphcore  # its namespaces are found on demand
# Each feature by its kind and arguments, with dtypes by their names.
FEATURES: dict[str, tuple[Any, ...]] = {
    "x": ("FixedLenFeature", [2], "float32"),
    "y": ("FixedLenFeature", [2, 1], "float32", [[0.5], [-1.0]]),
    "word": ("FixedLenFeature", [], "string", "none"),
    "empty": ("FixedLenFeature", [], "int64", 4),
    "tags": ("VarLenFeature", "int64"),
    "words": ("VarLenFeature", "string"),
    "missing": ("VarLenFeature", "float32"),
    "rows": ("FixedLenSequenceFeature", [2], "float32", True),
    "padded": ("FixedLenSequenceFeature", [], "int64", True, -7),
}
MESSAGES: list[dict[str, tuple[str, list[Any]] | None]] = [
    {
        "x": ("float_list", [1.0, 2.0]),
        "tags": ("int64_list", [3, 2**40]),
        "words": ("bytes_list", [b"a", b""]),
        "padded": ("int64_list", [1]),
    },
    {"x": ("float_list", [0.1, np.inf]), "y": ("float_list", [3.0, 4.0]), "rows": ("float_list", [1.0, 2.0, 3.0, 4.0]), "empty": None},
    {
        "x": ("float_list", [-1.0, 1e-40]),
        "word": ("bytes_list", [b"\xff\x00"]),
        "tags": ("int64_list", [-1]),
        "padded": ("int64_list", [5, 6, 7]),
    },
]
RECORDS: list[tuple[list[str], list[tuple[str, Any]], dict[str, Any]]] = [
    (["1,2.5,abc,3", ",,,"], [("int32", [5]), ("float32", 7.0), ("string", ["d"]), ("float64", [0.1])], {}),
    (['"a,b","c""d"', '"x\ny",', '\n"",z'], [("string", ["q"]), ("string", ["r"])], {}),
    ([' 1 ,"2"', "+3, -4"], [("int64", [0]), ("int32", [0])], {}),
    (["nan,inf", "1e400,-1e-3", "1.,.5"], [("float32", [0.0]), ("float64", [0.0])], {}),
    (['a"b;c', ";"], [("string", ["p"]), ("string", ["q"])], {"field_delim": ";", "use_quote_delim": False}),
    (["NA,3,NA", '"NA","",x'], [("int32", [1]), ("int32", [2]), ("string", ["z"])], {"na_value": "NA"}),
    (["1,2,3,", "4,x,6,7"], [("int32", [0]), ("float32", [0.0]), ("int32", [9])], {"select_cols": [0, 2, 3]}),
    (["1,", "2,"], [("int32", [0])], {"select_cols": [0]}),
    (["1", "1,2,3", '"1"2,3', '1"2,3', "1\n,2", "x,1", "3000000000,1", "", ",1", '"1,2', '"a",\n'], [("int32", []), ("int32", [0])], {}),
]
THEIRS = """
v1 = tf.compat.v1
def plain(value):
    if isinstance(value, (tf.SparseTensor, v1.SparseTensorValue)):
        return [plain(part) for part in (value.indices, value.values, value.dense_shape)]
    array = np.asarray(value)
    return [str(array.dtype), list(array.shape), [repr(item) for item in array.reshape(-1).tolist()]]
def made(kind, given):
    if kind == "VarLenFeature":
        return v1.VarLenFeature(tf.as_dtype(given[0]))
    return getattr(v1, kind)(given[0], tf.as_dtype(given[1]), *given[2:])
found = []
with tf.Graph().as_default(), v1.Session() as session:
    features = {key: made(value[0], value[1:]) for key, value in arguments["features"].items()}
    messages = np.array(arguments["messages"], object)
    results = [v1.parse_example(messages, features), *[v1.parse_single_example(each, features) for each in messages]]
    found = [{key: plain(value) for key, value in result.items()} for result in session.run(results)]
    columns = []
    for records, defaults, options in arguments["records"]:
        for record in [records] if len(records) < 5 else [[each] for each in records]:
            given = [tf.constant(value, tf.as_dtype(dtype)) for dtype, value in defaults]
            try:
                columns.append([plain(column) for column in session.run(v1.decode_csv(record, given, **options))])
            except tf.errors.InvalidArgumentError:
                columns.append("refused")
answer = [found, columns]
"""


def plain(value: Any) -> Any:
    """An array or a sparse tensor in plain values."""
    if isinstance(value, gc.SparseTensorValue):
        return [plain(part) for part in value]
    array = np.asarray(value)
    return [str(array.dtype), list(array.shape), [repr(item) for item in array.reshape(-1).tolist()]]


def feature(kind: str, *given: Any) -> Any:
    """A feature from plain values."""
    if kind == "VarLenFeature":
        return gc.VarLenFeature(gc.as_dtype(given[0]))
    return getattr(gc, kind)(given[0], gc.as_dtype(given[1]), *given[2:])


def serialized(message: dict[str, tuple[str, list[Any]] | None]) -> bytes:
    """A message from the lists of its features; None for a feature of no kind."""
    made = {key: gc.train.Feature(**({} if item is None else {item[0]: {"value": item[1]}})) for key, item in message.items()}
    found: bytes = gc.train.Example(features=gc.train.Features(feature=made)).SerializeToString()
    return found


def test_examples_and_records_are_parsed_as_in_tensorflow(oracle: Oracle) -> None:
    messages = [serialized(message) for message in MESSAGES]
    theirs, their_columns = oracle.run(THEIRS, features=FEATURES, messages=messages, records=RECORDS).answer
    with gc.Graph().as_default(), gc.Session() as session:
        features = {key: feature(*value) for key, value in FEATURES.items()}
        results = [gc.parse_example(np.array(messages, object), features), *[gc.parse_single_example(each, features) for each in messages]]
        ours = [{key: plain(value) for key, value in result.items()} for result in session.run(results)]
        columns: list[Any] = []
        for records, defaults, options in RECORDS:
            for record in [records] if len(records) < 5 else [[each] for each in records]:
                given = [
                    gc.constant(np.array(value, object) if dtype == "string" else value, gc.as_dtype(dtype)) for dtype, value in defaults
                ]
                try:
                    columns.append([plain(column) for column in session.run(gc.decode_csv(record, given, **options))])
                except gc.errors.InvalidArgumentError:
                    columns.append("refused")
    assert ours == theirs
    assert columns == their_columns
    assert columns.count("refused") == len(RECORDS[-1][0])
