"""Readers of files named in a queue."""

from __future__ import annotations

import gzip
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore
from tests.support.joined_threads import graph_without_threads_left

gc: Any = graphcore  # its namespaces are found on demand
train: Any = gc.train


@pytest.fixture(autouse=True)
def graph() -> Iterator[graphcore.Graph]:
    with graph_without_threads_left() as graph:
        yield graph


@pytest.fixture
def session() -> Iterator[Any]:
    with gc.Session() as session:
        yield session


def written(folder: Path, **contents: bytes) -> list[str]:
    """The paths of files with these contents."""
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [str(folder / name) for name in contents]


def filled(session: Any, files: list[Any]) -> Any:
    """A closed queue of the names of files."""
    queue = gc.FIFOQueue(10, [gc.string], shapes=[[]])
    session.run(queue.enqueue_many([files]))
    session.run(queue.close())
    return queue


def all_read(session: Any, reader: Any, files: list[Any]) -> list[tuple[bytes, bytes]]:
    """Keys, without folders, and values of all records."""
    read = reader.read(filled(session, files))
    found: list[Any] = []
    try:
        while len(found) < 20:
            key, value = session.run(read)
            found.append((key.rpartition(b"/")[2], value))
    except gc.errors.OutOfRangeError:
        return found
    raise AssertionError(f"the files do not end: {found}")


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_pipeline_gives_the_lines_of_all_files_in_each_epoch_and_then_ends(session: Any, shuffle: bool, tmp_path: Path) -> None:
    files = written(tmp_path, a=b"head\none\r\ntwo\n", b=b"head\nthree")
    names = train.string_input_producer(files, num_epochs=2, shuffle=shuffle, seed=3)
    reader = gc.TextLineReader(skip_header_lines=1)
    key, value = reader.read(names)
    assert (key.node.name, key.shape.as_list(), value.dtype) == ("ReaderReadV2", [], gc.string)
    keys, values = train.batch([key, value], 4, allow_smaller_final_batch=True)
    session.run(gc.local_variables_initializer())
    coord = train.Coordinator()
    threads = train.start_queue_runners(session, coord=coord)
    found: list[Any] = []
    try:
        while not coord.should_stop():
            found.extend(zip(*session.run([keys, values]), strict=True))
    except gc.errors.OutOfRangeError:
        coord.request_stop()
    coord.join(threads)
    lines = [(f"{files[0]}:2".encode(), b"one"), (f"{files[0]}:3".encode(), b"two"), (f"{files[1]}:2".encode(), b"three")]
    for epoch in (found[:3], found[3:]):
        assert sorted(epoch) == lines if shuffle else epoch == lines
    assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [6, 4]


def test_headers_longer_than_the_file_and_empty_files_give_no_lines(session: Any, tmp_path: Path) -> None:
    files = written(tmp_path, short=b"1\n2", none=b"", exact=b"1\n2\n3\n", long=b"1\n2\n3\n\n\r\n5", blank=b"\n\n\n\r")
    reader = gc.TextLineReader(skip_header_lines=3)
    assert all_read(session, reader, files) == [(b"long:4", b""), (b"long:5", b""), (b"long:6", b"5")]
    assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [3, 5]


def test_records_of_one_size_lie_between_header_and_footer(session: Any, tmp_path: Path) -> None:
    files = written(tmp_path, a=b"HHaabbccFFF", b=b"HHddeFFF")
    reader = gc.FixedLengthRecordReader(2, header_bytes=2, footer_bytes=3)
    assert all_read(session, reader, files) == [(b"a:0", b"aa"), (b"a:1", b"bb"), (b"a:2", b"cc"), (b"b:0", b"dd")]
    hopping = gc.FixedLengthRecordReader(3, hop_bytes=1)
    assert all_read(session, hopping, written(tmp_path, c=b"12345")) == [(b"c:0", b"123"), (b"c:1", b"234"), (b"c:2", b"345")]
    for encoding, packed in (("ZLIB", zlib.compress(b"HHaabb")), ("GZIP", gzip.compress(b"HHaabb"))):
        reader = gc.FixedLengthRecordReader(2, 2, encoding=encoding)
        assert all_read(session, reader, written(tmp_path, d=packed)) == [(b"d:0", b"aa"), (b"d:1", b"bb")]


@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_records_of_tensorflows_form_have_their_places_as_keys(session: Any, compression: str, tmp_path: Path) -> None:
    options = gc.python_io.TFRecordOptions(compression)
    for name, records in (("a", [b"one", b"", b"three"]), ("b", []), ("c", [b"four"])):
        with gc.python_io.TFRecordWriter(tmp_path / name, options) as writer:
            for record in records:
                writer.write(record)
    found = all_read(session, gc.TFRecordReader(options=options), [str(tmp_path / name) for name in "abc"])
    assert found == [(b"a:0", b"one"), (b"a:19", b""), (b"a:35", b"three"), (b"c:0", b"four")]


def test_whole_files_and_strings_are_one_record_each(session: Any, tmp_path: Path) -> None:
    files = written(tmp_path, a=b"one\n\x00", b=b"")
    whole, same = gc.WholeFileReader(), gc.IdentityReader()
    assert all_read(session, whole, files) == [(b"a", b"one\n\x00"), (b"b", b"")]
    assert all_read(session, same, ["x", "y"]) == [(b"x", b"x"), (b"y", b"y")]
    assert [session.run(reader.num_work_units_completed()) for reader in (whole, same)] == [2, 2]
    assert [reader.supports_serialize for reader in (whole, same, gc.TextLineReader())] == [True, True, False]


def test_a_read_of_several_records_ends_with_the_file(session: Any, tmp_path: Path) -> None:
    files = written(tmp_path, none=b"", a=b"1\n2\n3\n", b=b"4\n")
    reader = gc.TextLineReader()
    keys, values = reader.read_up_to(filled(session, files), 2)
    assert (keys.shape.as_list(), values.dtype) == ([None], gc.string)
    found = [session.run([values, reader.num_work_units_completed()])[0].tolist() for _ in range(3)]
    assert found == [[b"1", b"2"], [b"3"], [b"4"]]
    with pytest.raises(gc.errors.OutOfRangeError):
        session.run(values)
    assert session.run(reader.read_up_to(filled(session, []), 0)[0]).shape == (0,)
    with pytest.raises(gc.errors.InvalidArgumentError, match="num_records must be >= 0, got -1"):
        session.run(reader.read_up_to(filled(session, files), -1))


def test_a_reset_reader_goes_on_with_another_file(session: Any, tmp_path: Path) -> None:
    files = written(tmp_path, a=b"1\n2\n", b=b"3\n4\n")
    reader = gc.TextLineReader()
    _, value = reader.read(filled(session, files))
    assert session.run(value) == b"1"
    session.run(reader.reset())
    assert session.run(value) == b"3"
    assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [1, 0]


def test_the_state_of_a_reader_of_whole_files_is_kept_and_restored(session: Any, tmp_path: Path) -> None:
    reader = gc.IdentityReader()
    queue = filled(session, ["a", "b", "c"])
    key, _ = reader.read(queue)
    session.run(key)
    kept = session.run(reader.serialize_state())
    session.run(key)
    session.run(reader.restore_state(kept))
    assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [1, 1]
    assert session.run(key) == b"c"
    for state, text in (
        (b"\xff", "Could not parse state"),
        (b"\x08\x02", "Inconsistent work started vs. finished"),
        (b"\x08" + b"\xff" * 9 + b"\x01", "negative"),
    ):
        with pytest.raises(gc.errors.InvalidArgumentError, match=text):
            session.run(reader.restore_state(state))
    with pytest.raises(gc.errors.UnimplementedError, match="the state of a TextLineReader"):
        session.run(gc.TextLineReader().serialize_state())


def test_an_error_names_the_file_and_the_next_read_goes_on(session: Any, tmp_path: Path) -> None:
    files = written(tmp_path, a=b"1\n", bad=b"no record at all")
    _, value = gc.TextLineReader().read(filled(session, [str(tmp_path / "missing"), files[0]]))
    with pytest.raises(gc.errors.NotFoundError, match="missing; No such file"):
        session.run(value)
    assert session.run(value) == b"1"
    reader = gc.TFRecordReader()
    _, record = reader.read(filled(session, [files[1]]))
    for _ in range(2):
        with pytest.raises(gc.errors.InvalidArgumentError, match=r"corrupted record at 0 of .*bad"):
            session.run(record)
    with gc.python_io.TFRecordWriter(files[1]) as writer:
        writer.write(b"mended")
    assert session.run(record) == b"mended"
    packed = gc.FixedLengthRecordReader(1, encoding="GZIP").read(filled(session, files))
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"Cannot read '.*a'"):
        session.run(packed)
    header = gc.FixedLengthRecordReader(1, header_bytes=3).read(filled(session, files))
    with pytest.raises(gc.errors.InvalidArgumentError, match="header of 3"):
        session.run(header)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: gc.TextLineReader(-1), "skip_header_lines must be >= 0 not -1"),
        (lambda: gc.FixedLengthRecordReader(0), "record_bytes must be >= 1 not 0"),
        (lambda: gc.FixedLengthRecordReader(1, encoding="LZ"), "Unsupported compression: LZ"),
    ],
)
def test_readers_that_cannot_be_made_say_why(session: Any, make: Any, text: str) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=text):
        session.run(make().num_records_produced())


def test_queues_of_other_elements_are_refused(session: Any) -> None:
    reader = gc.IdentityReader()
    with pytest.raises(gc.errors.InvalidArgumentError, match="queue: required a queue of the names of files"):
        reader.read(["a"])
    for queue in (gc.FIFOQueue(1, [gc.int32]), gc.FIFOQueue(1, [gc.string, gc.string])):
        with pytest.raises(gc.errors.InvalidArgumentError, match="Expected a queue with a single string component"):
            session.run(reader.read(queue))
    several = gc.FIFOQueue(1, [gc.string], shapes=[[2]])
    session.run(several.enqueue([["a", "b"]]))
    with pytest.raises(gc.errors.InvalidArgumentError, match="Expected to dequeue a one-element string tensor"):
        session.run(reader.read(several))


def test_reads_wait_in_line_for_files_of_other_runs(session: Any, tmp_path: Path) -> None:
    files = written(tmp_path, a=b"1\n2\n3\n", b=b"4\n5\n")
    queue = gc.FIFOQueue(10, [gc.string], shapes=[[]])
    _, value = gc.TextLineReader().read(queue)
    enqueue = queue.enqueue_many([files])
    found: list[bytes] = []
    run = session.make_callable(value)
    threads = [threading.Thread(target=lambda: found.append(run())) for _ in range(5)]
    for thread in threads:
        thread.start()
    session.run(enqueue)
    for thread in threads:
        thread.join(10)
    assert sorted(found) == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("ends", ["session", "coordinator", "queue"])
def test_waiting_reads_end_with_the_session_the_coordinator_and_the_queue(ends: str, tmp_path: Path) -> None:
    queue = gc.FIFOQueue(10, [gc.string], shapes=[[]])
    close = queue.close()
    if ends == "coordinator":
        queue = train.string_input_producer(written(tmp_path, empty=b""))  # there is always another file, and never a line
    lines = train.batch(gc.TextLineReader().read(queue), 2, num_threads=3)
    session, coord = gc.Session(), train.Coordinator()
    threads = train.start_queue_runners(session, coord)
    if ends == "queue":
        session.run(close)
        with pytest.raises(gc.errors.OutOfRangeError, match="is closed and has insufficient elements"):
            session.run(lines)
    if ends != "session":
        coord.request_stop()
        coord.join(threads)
    session.close()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_an_interrupted_read_leaves_the_file_to_the_next(session: Any, tmp_path: Path, graph: graphcore.Graph) -> None:
    queue = gc.FIFOQueue(10, [gc.string], shapes=[[]])
    key, _ = gc.IdentityReader().read(queue)
    enqueue = queue.enqueue("a")
    with pytest.raises(gc.errors.DeadlineExceededError):
        session.run(key, options=gc.RunOptions(timeout_in_ms=50))
    session.run(enqueue)
    assert session.run(key) == b"a"


def test_nodes_of_one_shared_name_use_one_reader(session: Any) -> None:
    def made(op: str, name: str) -> Any:
        return gc.get_default_graph().apply_op(op, [], {"shared_name": name}).outputs[0]

    queue = filled(session, ["a", "b"])
    first, second, other = (made(op, "r") for op in ("IdentityReaderV2", "IdentityReaderV2", "WholeFileReaderV2"))
    readers = [gc.ReaderBase(handle) for handle in (first, second, other)]
    assert [session.run(reader.read(queue)[0]) for reader in readers[:2]] == [b"a", b"b"]
    assert session.run(readers[0].num_records_produced()) == 2
    with pytest.raises(gc.errors.InvalidArgumentError, match="'r' is shared, and is <IdentityReader 'r': 2 records, 2 of 2 files>"):
        session.run(readers[2].num_records_produced())


def test_the_older_ops_read_through_references(session: Any, graph: graphcore.Graph) -> None:
    queue = graph.apply_op("FIFOQueue", [], {"component_types": [gc.string], "shapes": [[]]}).outputs[0]
    session.run(graph.apply_op("QueueEnqueue", [queue, [gc.constant(__file__)]], {}))
    reader = gc.ReaderBase(graph.apply_op("WholeFileReader", [], {}).outputs[0], True)
    key, value = session.run(reader.read(queue))
    assert (key.decode(), value) == (__file__, Path(__file__).read_bytes())
    assert session.run(reader.num_work_units_completed()) == 1
    assert np.array_equal(session.run(reader.reader_ref)[1:], [b"_1_WholeFileReader"])
