"""Readers of files beside TensorFlow's: keys, values, counters, errors and saved states."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import graphcore
from tests.oracle.conftest import Oracle

gc: Any = graphcore  # its namespaces are found on demand
FILES = {
    "lines": b"head\none\r\ntwo\n\nfo\rur\n\r",
    "short": b"x",
    "none": b"",
    "more": b"1\n2\n3\n4",
    "gzip": gzip.compress(b"HHaabbc"),
    "zlib": zlib.compress(b"HHaabbc"),
}
TEXTS = "lines short none more"
CASES = [
    ("tf.TextLineReader()", TEXTS, None),
    ("tf.TextLineReader(skip_header_lines=2)", TEXTS, None),
    ("tf.TextLineReader(skip_header_lines=1)", f"missing {TEXTS} missing", None),
    ("tf.TextLineReader()", TEXTS, 3),
    ("tf.TextLineReader()", TEXTS, 2),
    ("tf.WholeFileReader()", TEXTS, None),
    ("tf.WholeFileReader()", TEXTS, 3),
    ("tf.IdentityReader()", TEXTS, None),
    ("tf.FixedLengthRecordReader(3)", TEXTS, None),
    ("tf.FixedLengthRecordReader(3, 1, 1)", "lines more", None),
    ("tf.FixedLengthRecordReader(3, 0, 2, 1)", "lines more", None),
    ("tf.FixedLengthRecordReader(2, 1, 0, 4)", "lines more", 2),
    ("tf.FixedLengthRecordReader(2, 2, encoding='GZIP')", "gzip", None),
    ("tf.FixedLengthRecordReader(2, 2, encoding='ZLIB')", "zlib", None),
    *[(f"tf.TFRecordReader(options=tf.python_io.TFRecordOptions({n}))", f"records{n} records{n}", None) for n in range(3)],
    ("tf.TFRecordReader()", "records0", 2),
]
"""The reader, the names of the files, and the records to read at once."""
PLAY = """
def play(tf, errors, folder, make, names, most):
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(20, [tf.string], shapes=[[]])
        session.run(queue.enqueue_many([[folder + "/" + name for name in names.split()]]))
        session.run(queue.close())
        reader = eval(make, {"tf": tf})
        read = reader.read(queue) if most is None else reader.read_up_to(queue, most)
        counters = reader.num_records_produced(), reader.num_work_units_completed()
        names = [tensor.name for tensor in (reader.reader_ref, *read, *counters)]
        shapes = [tensor.shape.as_list() for tensor in (reader.reader_ref, *read, *counters)]
        state = reader.serialize_state() if reader.supports_serialize else None
        found = [names, shapes]
        while len(found) < 40:
            try:
                key, value = session.run(read)
                found.append((key, value) if most is None else (key.tolist(), value.tolist()))
            except errors.NotFoundError:
                found.append("missing")
            except errors.OutOfRangeError:
                break
            found.append([int(count) for count in session.run(counters)])
            if state is not None:
                found.append(session.run(state))
        found.append([int(count) for count in session.run(counters)])
        session.run(reader.reset())
        found.append([int(count) for count in session.run(counters)])
        return found
"""
THEIRS = f"""{PLAY}
answer = [play(tf.compat.v1, tf.errors, arguments["folder"], *case) for case in arguments["cases"]]
"""


def test_readers_give_tensorflows_keys_values_and_counters(oracle: Oracle, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    for number in range(3):
        with gc.python_io.TFRecordWriter(tmp_path / f"records{number}", gc.python_io.TFRecordOptions(number)) as writer:
            for record in (b"one", b"", b"three" * 100):
                writer.write(record)
    space: dict[str, Any] = {}
    exec(PLAY, space)  # the text that runs in TensorFlow's process too
    theirs = oracle.run(THEIRS, {"x": np.zeros(1)}, folder=str(tmp_path), cases=CASES).answer
    for case, expected in zip(CASES, theirs, strict=True):
        assert (case, plain(space["play"](gc, gc.errors, str(tmp_path), *case))) == (case, plain(expected))


def plain(value: Any) -> Any:
    """Lists for tuples, which the way between the processes does not tell apart."""
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value
