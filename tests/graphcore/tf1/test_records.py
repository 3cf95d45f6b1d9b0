"""Examples and files of records in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphcore

gc: Any = graphcore  # its namespaces are found on demand
train: Any = gc.train


def example(number: int) -> Any:
    features = {
        "label": train.Feature(int64_list=train.Int64List(value=[number])),
        "name": train.Feature(bytes_list=train.BytesList(value=[b"n%d" % number])),
        "weights": train.Feature(float_list=train.FloatList(value=[0.5, number])),
    }
    return train.Example(features=train.Features(feature=features))


@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_examples_are_written_and_read_back_by_python_and_by_a_dataset(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "examples.tfrecords"
    options = gc.python_io.TFRecordOptions(getattr(gc.python_io.TFRecordCompressionType, compression or "NONE"))
    with gc.python_io.TFRecordWriter(path, options) as writer:
        for number in range(3):
            writer.write(example(number).SerializeToString())
    found = [train.Example.FromString(record) for record in gc.python_io.tf_record_iterator(path, options)]
    assert found == [example(number) for number in range(3)]
    with gc.Graph().as_default(), gc.Session() as session:
        following = gc.data.TFRecordDataset(str(path), compression).make_one_shot_iterator().get_next()
        assert train.Example.FromString(session.run(following)) == example(0)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    writer = gc.python_io.TFRecordWriter(tmp_path / "records")
    with pytest.raises(gc.errors.InvalidArgumentError, match="record: required bytes"):
        writer.write(3)
    writer.close()
    with pytest.raises(gc.errors.FailedPreconditionError, match="Writer is closed"):
        writer.write(b"")
    with pytest.raises(gc.errors.InvalidArgumentError, match="Not a valid compression_type: 'LZ'"):
        gc.python_io.TFRecordOptions("LZ")
    with pytest.raises(gc.errors.FailedPreconditionError, match="Cannot write"):
        gc.python_io.TFRecordWriter(tmp_path / "no" / "folder")
    with pytest.raises(gc.errors.NotFoundError, match="No such file"):
        next(gc.python_io.tf_record_iterator(tmp_path / "missing"))
