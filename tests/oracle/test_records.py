"""Files of records: TensorFlow reads those of Python here, and writes some that are read here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphcore
from tests.oracle.conftest import Oracle

gc: Any = graphcore  # its namespaces are found on demand
EXCHANGE = """
kind, given, path = arguments["kind"], arguments["given"], arguments["path"]
records = [record.numpy() for record in tf.data.TFRecordDataset(given, kind)]
with tf.io.TFRecordWriter(path, kind) as writer:
    for record in records:
        writer.write(record)
example = tf.train.Example.FromString(records[0])
answer = [len(records), dict(example.features.feature)["label"].int64_list.value[0]]
"""


@pytest.mark.parametrize("kind", ["", "ZLIB", "GZIP"])
def test_records_travel_both_ways(kind: str, oracle: Oracle, tmp_path: Path) -> None:
    label = gc.train.Feature(int64_list=gc.train.Int64List(value=[7]))
    records = [gc.train.Example(features=gc.train.Features(feature={"label": label})).SerializeToString(), b"", b"x" * 100_000]
    with gc.python_io.TFRecordWriter(tmp_path / "ours", kind) as writer:
        for record in records:
            writer.write(record)
    answer = oracle.run(EXCHANGE, kind=kind, given=str(tmp_path / "ours"), path=str(tmp_path / "theirs")).answer
    assert answer == [3, 7]
    assert list(gc.python_io.tf_record_iterator(tmp_path / "theirs", kind)) == records
