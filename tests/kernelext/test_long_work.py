"""A long search for a placement shows its progress below the cell."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphcore.graph import reset_default_graph
from graphcore.support.watched import long_work
from kernelext import long_work as long_work_module
from kernelext.guard import Guard
from kernelext.long_work import LongWorkDisplay, WorkProgress
from tests.kernelext.conftest import NotebookShell
from tests.kernelext.test_progress import Handle
from tests.kernelext.test_written_curves import handle

__all__ = ["handle"]
SEARCH = """
import graphcore as gc
h = gc.placeholder(gc.float32, [64, 64])
for _ in range(6):
    h = gc.tanh(gc.matmul(h, gc.Variable(gc.zeros([64, 64]))))
proposal = gc.propose_placement(gc.get_default_graph(), gc.simulated_devices("2 cpu"))
"""


@pytest.fixture
def drawing(shell: NotebookShell) -> Iterator[NotebookShell]:
    reset_default_graph()
    display = LongWorkDisplay(shell, Guard())
    display.start()
    yield shell
    display.stop()
    assert not long_work.is_watched
    reset_default_graph()


def test_a_long_search_counts_its_steps_and_ends_with_a_full_bar(
    drawing: NotebookShell, handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work_module, "SECONDS_UNSHOWN", 0.0)
    assert drawing.run(SEARCH, "cell 1").success
    assert "search for a placement:" in handle.pictures[-1]
    assert " steps, " in handle.pictures[-1]
    assert "stopped" not in handle.pictures[-1]


def test_a_short_search_shows_nothing(drawing: NotebookShell, handle: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work_module, "SECONDS_UNSHOWN", 600.0)
    assert drawing.run(SEARCH, "cell 1").success
    assert handle.pictures == []


def test_a_search_that_is_interrupted_says_where_it_stopped(
    drawing: NotebookShell, handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work_module, "SECONDS_UNSHOWN", 0.0)

    def interrupt(_title: str, done: int, _steps: int, _place: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    long_work.watch(interrupt)
    try:
        assert not drawing.run(SEARCH, "cell 1").success
    finally:
        long_work.unwatch(interrupt)
    assert "search for a placement: stopped at step 3 of" in handle.pictures[-1]


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_work_of_unknown_length_ends_with_its_time_or_the_place_where_it_stopped(
    drawing: NotebookShell, handle: Handle, monkeypatch: pytest.MonkeyPatch, *, is_interrupted: bool
) -> None:
    monkeypatch.setattr(long_work_module, "SECONDS_UNSHOWN", 0.0)
    end = "raise KeyboardInterrupt" if is_interrupted else "long_work.publish('tracing Net', 2, 2, '')"
    code = f"from graphcore.support.watched import long_work\nlong_work.publish('tracing Net', 1, 0, 'encoder.0')\n{end}"
    assert drawing.run(code, "cell 1").success is not is_interrupted
    assert ("tracing Net: stopped at encoder.0 after 0" if is_interrupted else "tracing Net: done in 0") in handle.pictures[-1]
    assert ("<progress" in handle.pictures[-1]) is not is_interrupted


def test_work_of_unknown_length_says_where_it_is_beside_a_bar_without_a_value() -> None:
    work = WorkProgress("tracing Net")
    work.take(3, 0, "encoder.0")
    assert "tracing Net: encoder.0, 0.0 s" in repr(work)
    assert "<progress" in work._repr_html_()
    assert "value=" not in work._repr_html_()
