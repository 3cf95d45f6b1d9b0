"""`gc.summary`: nodes that make summaries, and event files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore
from graphcore.definitions.wire import graph_def_from_bytes
from graphcore.support.records import read_records
from tests.graphcore.api.cell_runs import Cells

gc: Any = graphcore  # its namespaces are found on demand


@pytest.fixture(autouse=True)
def graph() -> Iterator[graphcore.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def events(folder: Path) -> list[Any]:
    return [event for path in sorted(folder.iterdir()) for event in gc.train.summary_iterator(path)]


def parsed(value: Any) -> Any:
    message = gc.Summary()
    message.ParseFromString(value)
    return message


def test_merge_all_gives_the_values_of_all_summaries_with_their_tags() -> None:
    with gc.name_scope("layer"):
        gc.summary.scalar("loss of x", gc.constant(2.5))
    gc.summary.scalar("rate", gc.constant(0.5), family="train")
    gc.summary.histogram("w", np.array([1.0, 2.0, 2.0]))
    gc.summary.scalar("elsewhere", gc.constant(1.0), collections=["others"])
    merged = gc.summary.merge_all()
    assert merged is not None
    with gc.Session() as session:
        found = parsed(session.run(merged))
    assert [value.tag for value in found.value] == ["layer/loss_of_x", "train/train/rate", "w"]
    assert found.value[0].simple_value == 2.5
    assert (found.value[2].histo.num, found.value[2].histo.sum) == (3, 5)
    assert gc.summary.merge_all("nothing") is None


def test_a_writer_writes_events_with_steps_the_graph_and_the_times_of_a_run(tmp_path: Path) -> None:
    merged = gc.summary.merge([gc.summary.scalar("loss", gc.constant(2.0))])
    with gc.Session() as session, gc.summary.FileWriter(tmp_path / "deep" / "logs", session.graph) as writer:
        metadata = gc.RunMetadata()
        value = session.run(merged, options=gc.RunOptions(trace_level=gc.RunOptions.FULL_TRACE), run_metadata=metadata)
        writer.add_summary(value, 7)
        writer.add_run_metadata(metadata, "step 7", 7)
        writer.add_summary(gc.Summary(value=[gc.Summary.Value(tag="own", simple_value=0.5)]), np.int64(8))
        writer.add_session_log(gc.SessionLog(status=gc.SessionLog.START), 9)
        with pytest.raises(gc.errors.InvalidArgumentError, match="already used"):
            writer.add_run_metadata(metadata, "step 7")
    kinds = [(event.WhichOneof("what"), event.step) for event in events(tmp_path / "deep" / "logs")]
    assert kinds == [
        ("file_version", 0),
        ("graph_def", 0),
        ("meta_graph_def", 0),
        ("summary", 7),
        ("tagged_run_metadata", 7),
        ("summary", 8),
        ("session_log", 9),
    ]
    graph_def = events(tmp_path / "deep" / "logs")[1].graph_def
    assert {"loss", "Merge/MergeSummary"} <= {node.name for node in graph_def_from_bytes(graph_def).node}


def test_a_closed_writer_refuses_until_it_is_opened_again(tmp_path: Path) -> None:
    writer = gc.summary.FileWriter(tmp_path, filename_suffix=".v2")
    writer.close()
    writer.close()
    summary = gc.Summary(value=[gc.Summary.Value(tag="a", simple_value=1)])
    with pytest.raises(gc.errors.FailedPreconditionError, match=r"closed event file .*call reopen\(\) first"):
        writer.add_summary(summary)
    writer.reopen()
    writer.add_summary(summary)
    writer.flush()
    assert len(events(tmp_path)) == 3
    assert all(path.name.endswith(".v2") for path in tmp_path.iterdir())
    writer.close()


def test_events_reach_the_file_after_max_queue_of_them(tmp_path: Path) -> None:
    with gc.summary.FileWriter(tmp_path, max_queue=3) as writer:
        counts = []
        for step in range(6):
            writer.add_summary(gc.Summary(value=[gc.Summary.Value(tag="a", simple_value=step)]), step)
            counts.append(len(events(tmp_path)) - 1)
        assert counts == [0, 0, 3, 3, 3, 6]


def test_no_two_writers_of_one_second_have_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphcore.tf1.summary.writers.time.time", lambda: 1.5)
    monkeypatch.setattr("graphcore.tf1.summary.writers._numbers", count())  # as in another process
    for _ in range(3):
        gc.summary.FileWriter(str(tmp_path)).close()
    assert len(list(tmp_path.iterdir())) == 3
    assert all(len(list(gc.train.summary_iterator(str(path)))) == 1 for path in tmp_path.iterdir())


def test_a_writer_cache_has_one_writer_for_each_folder(tmp_path: Path) -> None:
    first = gc.summary.FileWriterCache.get(tmp_path / "a")
    assert gc.summary.FileWriterCache.get(str(tmp_path / "a")) is first
    gc.summary.FileWriterCache.clear()
    assert "closed" in repr(first)


def test_metadata_of_a_tag_is_written_once(tmp_path: Path) -> None:
    text = gc.summary.text("notes", gc.constant(["# a", "b"]))
    with gc.Session() as session, gc.summary.FileWriter(tmp_path) as writer:
        for step in range(2):
            writer.add_summary(session.run(text), step)
    values = [event.summary.value[0] for event in events(tmp_path)[1:]]
    assert [value.metadata.plugin_data.plugin_name for value in values] == ["text", ""]
    assert list(values[0].tensor.string_val) == [b"# a", b"b"]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda _: gc.summary.text("t", gc.constant(1.0)), "to have dtype string, got float"),
        (lambda path: gc.summary.FileWriter(path / "file" / "logs"), "Cannot write event files in"),
        (lambda path: gc.summary.FileWriter(path, session=gc.Session()), "a session is for writers made of nodes"),
        (lambda path: gc.summary.FileWriter(path, 3), "graph: required a gc.Graph or a GraphDef, got int 3"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(gc.errors.GraphError, match=text):
        make(tmp_path)


def test_summaries_that_are_none_are_refused(tmp_path: Path) -> None:
    with gc.summary.FileWriter(tmp_path) as writer:
        with pytest.raises(gc.errors.InvalidArgumentError, match="Required a serialized Summary, got 3 bytes"):
            writer.add_summary(b"abc")
        with pytest.raises(gc.errors.InvalidArgumentError, match=r"summary: required a serialized Summary.*got float 1\.5"):
            writer.add_summary(1.5)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: gc.summary.scalar("s", gc.constant([1.0, 2.0])), re.escape("tags and values are not the same shape: [] != [2] (tag 's')")),
        (lambda: gc.summary.histogram("h", gc.log(gc.constant(-1.0))), "Nan in summary histogram for: h"),
        (lambda: gc.summary.image("i", gc.zeros([1, 2, 2, 2])), "Tensor must be 4-D with last dim 1, 3, or 4"),
        (lambda: gc.summary.merge([gc.summary.scalar("a", 1.0, []), gc.Summary().SerializeToString(), b"\x01"]), "Could not parse one"),
    ],
)
def test_a_run_refuses_values_that_are_no_summary(make: Any, text: str) -> None:
    with gc.Session() as session, np.errstate(invalid="ignore"), pytest.raises(gc.errors.InvalidArgumentError, match=text):
        session.run(make())


def test_the_earlier_names_say_what_they_are_called_now() -> None:
    for name, now in (("scalar_summary", "summary.scalar"), ("merge_all_summaries", "summary.merge_all")):
        with pytest.raises(AttributeError, match=f"the earlier name of gc.{now}"):
            getattr(gc, name)
    with pytest.raises(AttributeError, match=r"the earlier name of gc\.summary\.FileWriter"):
        _ = gc.train.SummaryWriter


def test_a_damaged_file_of_records_is_an_error(tmp_path: Path) -> None:
    with gc.summary.FileWriter(tmp_path):
        pass
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    for damaged, text in (
        (data[:-1], "truncated record at 0"),
        (data[:14] + bytes([data[14] ^ 1]) + data[15:], "the checksum of its data"),
        (bytes([data[0] ^ 1]) + data[1:], "checksum of its length"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(gc.errors.InvalidArgumentError, match=text):
            list(read_records(path))


def test_merge_all_takes_summaries_that_an_earlier_cell_makes_when_it_runs_again(graph: graphcore.Graph) -> None:
    cells = Cells(graph)
    cells.run("first", lambda: gc.summary.scalar("a", gc.constant(1.0)))
    merged: list[Any] = []
    cells.run("second", lambda: merged.append(gc.summary.merge_all()))

    def both() -> None:
        gc.summary.scalar("a", gc.constant(1.0))
        gc.summary.scalar("b", gc.constant(2.0))

    cells.run("first", both)
    with gc.Session() as session:
        assert [value.tag for value in parsed(session.run(merged[0])).value] == ["a", "b"]
