"""Undo and redo of cell runs: graphs, the user's tensors and the variables of sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.graph import live_graphs, reset_default_graph
from kernelext import undoing
from kernelext.graph_names import seen_graphs
from tests.kernelext.conftest import NotebookShell
from tests.kernelext.test_following_edits import CELLS, FIRST, assert_no_other_number, fresh_results, notebook, programs, results


@pytest.fixture
def loaded(shell: NotebookShell) -> Iterator[NotebookShell]:
    reset_default_graph()
    shell.run("%load_ext kernelext", "load")
    shell.run("import graphcore as gc", "import")
    yield shell
    shell.run("%unload_ext kernelext", "unload")
    reset_default_graph()


def names() -> list[str]:
    return [node.name for node in gc.get_default_graph().op_nodes()]


def test_a_cell_is_taken_back_and_done_again(loaded: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    loaded.run("x = gc.constant(1.0, name='x')", "a")
    loaded.run("y = gc.tanh(x, name='y')\nk = 3", "b")
    y = loaded.user_ns["y"]
    capsys.readouterr()
    loaded.run("%graph undo", "c")
    assert capsys.readouterr().out.startswith("The changes of In [4] are undone; %graph redo brings them back")
    assert names() == ["x"]
    assert "y" not in loaded.user_ns
    assert loaded.user_ns["k"] == 3
    loaded.run("%graph redo", "c")
    assert names() == ["x", "y"]
    assert loaded.user_ns["y"] is y
    assert loaded.run("gc.Session().run(y)", "d").result == pytest.approx(np.tanh(1.0))


def test_a_cell_that_ran_again_returns_to_its_former_nodes(loaded: NotebookShell) -> None:
    loaded.run("x = gc.constant(2.0, name='x')", "a")
    loaded.run("y = gc.square(x, name='y')", "b")
    loaded.run("x = gc.constant(5.0, name='x')\nz = gc.constant(0.0, name='z')", "a")
    assert loaded.run("gc.Session().run(y)", "run").result == 25.0
    loaded.run("%graph undo", "undo")
    assert names() == ["x", "y"]
    assert loaded.run("gc.Session().run(y)", "run").result == 4.0
    assert loaded.user_ns["x"].node.source.run.label == "In [3]"
    loaded.run("x = gc.constant(3.0, name='x')", "a")
    assert names() == ["x", "y"]
    assert loaded.run("gc.Session().run(y)", "run").result == 9.0


def test_values_of_variables_return_and_runs_that_change_nothing_do_not_count(loaded: NotebookShell) -> None:
    loaded.run("v = gc.Variable([1.0, 2.0], name='v')\nmore = v.assign_add([1.0, 1.0])\ns = gc.Session()", "a")
    loaded.run("s.run(v.initializer)", "b")
    loaded.run("s.run(more)\ns.run(more)", "c")
    loaded.run("print(1)", "d")
    loaded.run("%graph undo", "undo")
    assert loaded.run("s.run(v)", "read").result.tolist() == [1.0, 2.0]
    loaded.run("%graph redo", "redo")
    assert loaded.run("s.run(v)", "read").result.tolist() == [3.0, 4.0]


def test_large_values_are_not_restored_and_that_is_said(
    loaded: NotebookShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undoing, "MOST_BYTES", 100)
    loaded.run("v = gc.Variable(gc.zeros([50]), name='v')\nmore = v.assign_add(gc.ones([50]))\ns = gc.Session()\ns.run(v.initializer)", "a")
    loaded.run("s.run(more)\ny = gc.identity(v)", "b")
    capsys.readouterr()
    loaded.run("%graph undo", "undo")
    assert "the values of variables were not restored" in capsys.readouterr().out
    assert loaded.run("s.run(v)[0]", "read").result == 1.0
    assert "y" not in loaded.user_ns


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("%graph undo", "no cell has changed"),
        ("%graph redo", "nothing was undone"),
        ("%graph undo side", "'undo' stands alone"),
        ("x = gc.constant(1.0)\n%graph undo", "no cell has changed"),
    ],
)
def test_what_cannot_be_undone_is_said(loaded: NotebookShell, code: str, says: str) -> None:
    assert says in str(loaded.run(code, "undo").error_in_exec)


def test_a_cell_with_nodes_of_its_own_does_not_undo(loaded: NotebookShell) -> None:
    loaded.run("x = gc.constant(1.0, name='x')", "a")
    error = loaded.run("y = gc.constant(1.0, name='y')\n%graph undo", "b").error_in_exec
    assert "a cell of their own" in str(error)
    assert names() == ["x", "y"]


def test_a_change_after_an_undo_ends_the_redo(loaded: NotebookShell) -> None:
    loaded.run("x = gc.constant(1.0, name='x')", "a")
    loaded.run("%graph undo", "undo")
    loaded.run("z = gc.constant(1.0, name='z')", "b")
    assert "nothing was undone" in str(loaded.run("%graph redo", "redo").error_in_exec)
    assert names() == ["z"]


def test_a_graph_that_was_reset_is_not_kept_and_nothing_is_said_of_it(loaded: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    loaded.run("x = gc.constant(1.0, name='x')", "a")
    loaded.run("y = gc.tanh(x, name='y')", "b")
    loaded.run("gc.reset_default_graph()\ndel x, y", "reset")
    capsys.readouterr()
    loaded.run("z = gc.constant([1, 2], name='z')", "a")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("+1 node\n", "")
    loaded.run("%graph undo", "undo")
    assert names() == []
    assert "no cell has changed" in str(loaded.run("%graph undo", "undo").error_in_exec)


DELETABLE = [name for name in CELLS if name not in {"function", "outer"}]
"""Cells whose results are nodes. Python keeps a function whose cell is deleted, as it keeps all other values."""

steps = st.lists(
    st.one_of(
        st.just(("undo", 0)),
        st.just(("redo", 0)),
        st.sampled_from(DELETABLE).map(lambda name: (f"delete {name}", 0)),
        st.sampled_from(sorted(CELLS)).flatmap(lambda name: st.tuples(st.just(name), st.integers(0, len(CELLS[name]) - 1))),
    ),
    min_size=2,
    max_size=6,
)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs, steps)
@example({**FIRST, "activation": 2}, [("function", 1), ("hidden", 1), ("undo", 0), ("undo", 0), ("redo", 0), ("redo", 0)])
@example(FIRST, [("delete hidden", 0), ("undo", 0), ("redo", 0), ("hidden", 1)])
@example(FIRST, [("delete variables", 0), ("loss", 1), ("variables", 1), ("delete gradients", 0), ("undo", 0), ("undo", 0)])
@example({**FIRST, "activation": 3}, [("function", 3), ("outer", 1), ("undo", 0), ("undo", 0), ("function", 1), ("undo", 0), ("loss", 1)])
def test_fetches_after_edits_and_undos_give_what_the_cells_in_force_give_or_an_error(
    program: dict[str, int], changes: list[tuple[str, int]]
) -> None:
    past: list[dict[str, int]] = []
    future: list[dict[str, int]] = []
    program = {name: program[name] for name in CELLS}
    with notebook() as shell:
        undo = undoing.Undoing(shell.user_ns)

        def run(name: str, version: int) -> None:
            undo.begin(gc.source.CellRun(cell=name, execution=1, label=name))
            shell.run(CELLS[name][version], name)
            undo.end()

        def delete(name: str) -> None:
            undo.begin(gc.source.CellRun(cell="forget", execution=1, label="forget"))
            shell.run("pass", "forget", deletedCells=[name])
            for graph in live_graphs():
                graph.forget_deleted_cells()
            undo.end()

        for name, version in program.items():
            run(name, version)
        for name, version in changes:
            changed: Any = None
            if name == "undo":
                if not past:
                    continue
                undo.undo()
                future.append(program)
                program = past.pop()
            elif name == "redo":
                if not future:
                    continue
                undo.redo()
                past.append(program)
                program = future.pop()
            else:
                before = len(undo._past)
                versions = {graph: graph.version for graph in seen_graphs(shell.user_ns)}
                deleted = name.removeprefix("delete ") if name.startswith("delete ") else ""
                if deleted:
                    delete(deleted)
                else:
                    run(name, version)
                changed = any(graph.version != known for graph, known in versions.items())
                assert changed or len(undo._past) == before
                if changed:
                    past.append(program)
                    future.clear()
                changed_program = {**program, name: version}
                program = {each: changed_program[each] for each in CELLS if each in changed_program and each != deleted}
            assert_no_other_number(results(shell.user_ns), fresh_results(program))
