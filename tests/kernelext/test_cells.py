"""Cell tracking: notifications of graphs and views in all situations."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from graphcore.source import CellRun, SourceLocation, cell_runs, current_run
from kernelext.cells import CellTracker
from kernelext.guard import Guard
from tests.kernelext.conftest import NotebookShell


class Recorder:
    """A graph that records notifications."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.broken = False

    def begin_cell(self, run: CellRun) -> None:
        if self.broken:
            raise ZeroDivisionError("a broken graph")
        self.told.append(f"begin {run.cell}")

    def end_cell(self, run: CellRun, *, failed: bool = False, error: BaseException | None = None) -> None:
        self.told.append(f"{'fail' if failed else 'end'} {run.cell}")

    def delete_cell(self, cell: str) -> None:
        self.told.append(f"delete {cell}")


class Tracked:
    def __init__(self, shell: NotebookShell) -> None:
        self.graph = Recorder()
        self.finished: list[tuple[str, bool]] = []
        self.failures: list[str] = []
        self.seen: list[CellRun | None] = []
        shell.user_ns["note"] = lambda: self.seen.append(current_run.get())
        guard = Guard(self.failures.append)
        self.tracker = CellTracker(shell, lambda: [self.graph], self._finish, guard)

    def _finish(self, run: CellRun, failed: bool) -> None:
        self.finished.append((run.label, failed))


@pytest.fixture
def tracked(shell: NotebookShell) -> Iterator[Tracked]:
    tracked = Tracked(shell)
    tracked.tracker.start()
    yield tracked
    tracked.tracker.stop()


def test_a_cell_begins_and_ends_once(shell: NotebookShell, tracked: Tracked) -> None:
    shell.run("note()", "a")
    assert tracked.graph.told == ["begin a", "end a"]
    assert tracked.finished == [("In [1]", False)]
    assert [run and run.label for run in tracked.seen] == ["In [1]"]
    assert current_run.get() is None


def test_a_cell_that_runs_again_keeps_its_id_and_gets_a_new_label(shell: NotebookShell, tracked: Tracked) -> None:
    shell.run("note()", "a")
    shell.run("note()", "a")
    assert [run and (run.cell, run.execution, run.label) for run in tracked.seen] == [("a", 1, "In [1]"), ("a", 2, "In [2]")]


@pytest.mark.parametrize("code", ["1 / 0", "this is no Python", "raise KeyboardInterrupt", "%no_such_magic", "raise SystemExit"])
def test_a_cell_that_fails_is_marked_so(shell: NotebookShell, tracked: Tracked, code: str) -> None:
    shell.run(code, "a")
    assert tracked.graph.told == ["begin a", "fail a"]
    assert tracked.finished == [("In [1]", True)]


@pytest.mark.parametrize(
    "code",
    [
        "get_ipython().run_cell('note()')",
        "get_ipython().run_cell('1 / 0'); note()",
        "get_ipython().run_cell(''); note()",
        "%timeit -n1 -r1 note()",
        "get_ipython().run_cell('get_ipython().run_cell(\"note()\")')",
    ],
)
def test_code_that_a_cell_runs_belongs_to_the_cell(shell: NotebookShell, tracked: Tracked, code: str) -> None:
    shell.run(code, "a")
    assert tracked.graph.told == ["begin a", "end a"]
    assert [run and run.cell for run in tracked.seen] == ["a"]


def test_asynchronous_cells_are_cells_too(shell: NotebookShell, tracked: Tracked) -> None:
    shell.run("import asyncio\nawait asyncio.sleep(0)\nnote()", "a")
    shell.run("note()", "b")
    assert tracked.graph.told == ["begin a", "end a", "begin b", "end b"]
    assert [run and run.cell for run in tracked.seen] == ["a", "b"]


def test_a_cell_that_was_emptied_drops_what_it_made(shell: NotebookShell, tracked: Tracked) -> None:
    shell.run("note()", "a")
    shell.run("", "a")
    assert tracked.graph.told == ["begin a", "end a", "begin a", "end a"]


def test_graphs_learn_of_deleted_cells_when_the_next_cell_runs(shell: NotebookShell, tracked: Tracked) -> None:
    shell.run("note()", "b", deletedCells=["a", "c"])
    assert tracked.graph.told == ["delete a", "delete c", "begin b", "end b"]


def test_code_without_a_cell_id_never_replaces_anything(shell: NotebookShell, tracked: Tracked) -> None:
    shell.run("note()")
    shell.run("note()")
    first, second = tracked.seen
    assert first is not None
    assert second is not None
    assert first.cell != second.cell


def test_silent_code_is_no_cell(shell: NotebookShell, tracked: Tracked) -> None:
    shell.run_request("note()", silent=True)
    assert tracked.graph.told == []
    assert tracked.seen == [None]


def test_an_end_that_never_came_does_not_confuse_the_next_cell(shell: NotebookShell, tracked: Tracked) -> None:
    callbacks = shell.events.callbacks["post_run_cell"]
    kept = callbacks[:]
    callbacks.clear()
    shell.run("note()", "a")
    callbacks[:] = kept
    shell.run("note()", "b")
    assert tracked.graph.told == ["begin a", "fail a", "begin b", "end b"]


def test_registering_twice_tells_once(shell: NotebookShell, tracked: Tracked) -> None:
    tracked.tracker.start()
    shell.run("note()", "a")
    assert tracked.graph.told == ["begin a", "end a"]


def test_the_cell_that_starts_the_tracker_counts_from_there_on(shell: NotebookShell) -> None:
    tracked = Tracked(shell)
    shell.user_ns["start"] = tracked.tracker.start
    shell.run("start()\nnote()\nget_ipython().run_cell('note()')", "a")
    shell.run("note()", "b")
    assert tracked.graph.told == ["begin a", "end a", "begin b", "end b"]
    assert [run and (run.cell, run.label) for run in tracked.seen] == [("a", "In [1]"), ("a", "In [1]"), ("b", "In [2]")]
    tracked.tracker.stop()


def test_after_stop_nothing_is_left(shell: NotebookShell) -> None:
    before = {name: list(callbacks) for name, callbacks in shell.events.callbacks.items()}
    runs = dict(cell_runs)
    tracked = Tracked(shell)
    tracked.tracker.start()
    shell.run("note()", "a")
    tracked.tracker.stop()
    shell.run("note()", "b")
    assert shell.events.callbacks == before
    assert cell_runs == runs
    assert tracked.graph.told == ["begin a", "end a"]
    assert current_run.get() is None


def test_stopping_within_a_cell_lets_go_of_it(shell: NotebookShell, tracked: Tracked) -> None:
    shell.user_ns["stop"] = tracked.tracker.stop
    shell.run("stop()\nnote()", "a")
    assert tracked.graph.told == ["begin a", "fail a"]
    assert tracked.seen == [None]


def test_stopping_works_when_somebody_has_cleared_the_events(shell: NotebookShell, tracked: Tracked) -> None:
    shell.events.callbacks["pre_run_cell"].clear()
    shell.events.callbacks["post_run_cell"].clear()
    tracked.tracker.stop()
    shell.run("note()", "a")
    assert tracked.graph.told == []
    assert tracked.seen == [None]


def test_a_broken_graph_does_not_reach_the_cell(shell: NotebookShell, tracked: Tracked, capfd: pytest.CaptureFixture[str]) -> None:
    tracked.graph.broken = True
    result = shell.run("note()", "a")
    assert result.success
    assert tracked.seen[0] is not None
    assert len(tracked.failures) == 1
    assert "ZeroDivisionError: a broken graph" in tracked.failures[0]
    assert "Traceback" not in capfd.readouterr().out


def test_cells_of_another_thread_are_left_alone(shell: NotebookShell, tracked: Tracked) -> None:
    callback = shell.events.callbacks["pre_run_cell"][-1]
    thread = threading.Thread(target=callback, args=(None,))
    thread.start()
    thread.join()
    assert tracked.failures == []
    assert tracked.tracker.run is None


def test_a_line_in_a_function_of_an_earlier_cell_names_both_cells(shell: NotebookShell, tracked: Tracked) -> None:
    places: list[SourceLocation] = []
    shell.user_ns["places"] = places
    shell.user_ns["SourceLocation"] = SourceLocation
    shell.user_ns["current_run"] = current_run
    shell.run(
        "import sys\ndef where():\n    frame = sys._getframe()\n"
        "    places.append(SourceLocation(frame.f_code.co_filename, frame.f_lineno, current_run.get()))",
        "a",
    )
    shell.run("where()", "b")
    assert str(places[0]).startswith("cell In [1], line 4 (called in cell In [2]): places.append(")
