"""TensorBoard's event files and log folders, and gzipped graph files."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import pytest

import graphcore as gc
from graphcore.definitions.wire import graph_def_to_bytes, graph_def_to_text, schema
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.remarks import collected_remarks
from graphcore.support.records import record_bytes


def _graph(name: str) -> gc.Graph:
    graph = gc.Graph()
    with graph.as_default():
        gc.constant(1.0, name=name)
    return graph


def _event(step: int, graph: gc.Graph | None = None) -> bytes:
    event = schema.Event(wall_time=1.0, step=step)
    if graph is None:
        event.file_version = "brain.Event:2"
    else:
        event.graph_def = graph_def_to_bytes(graph.as_graph_def())
    return record_bytes(event.SerializeToString())


def _names(path: Path) -> list[str]:
    return [node.name for node in gc.load(path).op_nodes()]


@pytest.fixture(autouse=True)
def _passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pytest see what is logged, whatever tests of notebooks and of `gc.logging` have left."""
    collected_remarks()
    monkeypatch.setattr(logging.getLogger("graphcore"), "propagate", True)


def test_an_event_file_gives_its_last_graph_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "events.out.tfevents.1.last"
    path.write_bytes(_event(0) + _event(1, _graph("first")) + _event(2, _graph("second")))
    assert _names(path) == ["second"]
    assert "several graphs, and this is the last, of step 2" in caplog.text


def test_a_log_folder_gives_the_newest_graph_of_its_runs(tmp_path: Path) -> None:
    for number, name in enumerate(("old", "new")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"events.out.tfevents.{number}.host").write_bytes(_event(0) + _event(1, _graph(name)))
    (tmp_path / "events.out.tfevents.9.host").write_bytes(_event(0))
    assert _names(tmp_path) == ["new"]


def test_a_file_that_is_still_written_gives_what_is_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "events.out.tfevents.1.cut"
    path.write_bytes(_event(0) + _event(1, _graph("a")) + _event(2, _graph("b"))[:-9])
    assert _names(path) == ["a"]
    assert "unfinished record" in caplog.text


def test_a_wrong_checksum_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.bad"
    data = bytearray(_event(0) + _event(1, _graph("a")))
    data[-6] ^= 1
    path.write_bytes(data)
    with pytest.raises(GraphError, match="checksum"):
        gc.load(path)


def test_events_without_a_graph_are_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.none"
    path.write_bytes(_event(0))
    with pytest.raises(InvalidArgumentError, match="no graph, only 1 events"):
        gc.load(path)


@pytest.mark.parametrize("ending", [".pbtxt.gz", ".pb.gz"])
def test_gzipped_graph_files_open(tmp_path: Path, ending: str) -> None:
    graph_def = _graph("x").as_graph_def()
    path = tmp_path / f"graph{ending}"
    path.write_bytes(gzip.compress(graph_def_to_text(graph_def).encode() if "txt" in ending else graph_def_to_bytes(graph_def)))
    assert _names(path) == ["x"]
