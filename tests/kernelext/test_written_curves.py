"""Scalars that a cell writes to event files are drawn below it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphcore.graph import reset_default_graph
from graphcore.support.watched import written_scalars
from kernelext import progress as progress_module
from kernelext.guard import Guard
from kernelext.progress import Progress
from kernelext.written_curves import WrittenCurves
from tests.kernelext.conftest import NotebookShell
from tests.kernelext.test_progress import Handle, picture

LOOP = """
import graphcore as gc
x = gc.placeholder(gc.float32, [])
loss = gc.summary.scalar("loss", x)
with gc.Session() as session, gc.summary.FileWriter(folder) as writer:
    for step in range(20):
        writer.add_summary(session.run(loss, {x: 1 / (step + 1)}), step)
"""


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    handle = Handle()
    monkeypatch.setattr(progress_module, "display", lambda _shown, **_options: handle)
    return handle


@pytest.fixture
def drawing(shell: NotebookShell, tmp_path: Path) -> Iterator[NotebookShell]:
    reset_default_graph()
    curves = WrittenCurves(shell, Guard())
    curves.start()
    shell.user_ns["folder"] = str(tmp_path / "train")
    yield shell
    curves.stop()
    assert not written_scalars.is_watched
    reset_default_graph()


def test_each_cell_that_writes_scalars_gets_a_curve_of_them(drawing: NotebookShell, handle: Handle) -> None:
    for number in (1, 2):
        assert drawing.run(LOOP, f"cell {number}").success
        html = handle.pictures[-1]
        assert "summaries: step 19 · loss" in html
        assert "Curves over 19 steps" in html
        assert "loss" in "".join(picture(html).itertext())
    assert len(handle.pictures) <= 6


def test_within_a_loop_over_progress_they_are_in_its_picture(drawing: NotebookShell, handle: Handle) -> None:
    drawing.user_ns["Progress"] = Progress
    code = LOOP.replace("range(20)", "Progress(20, title='fit')").replace(", step)", ", 10 * step)")
    assert drawing.run(code, "cell").success
    assert "fit: 20 of 20 steps" in handle.pictures[-1]
    assert "Curves over 20 steps: loss" in handle.pictures[-1]
    assert not any("summaries" in shown for shown in handle.pictures)
    assert not Progress.running


def test_scalars_of_a_second_folder_have_its_name_in_front(drawing: NotebookShell, handle: Handle, tmp_path: Path) -> None:
    drawing.user_ns["other"] = str(tmp_path / "test")
    code = """
import graphcore as gc
for place in (folder, other):
    with gc.summary.FileWriter(place) as writer:
        for value in (1.0, 2.0):
            writer.add_summary(gc.Summary(value=[gc.Summary.Value(tag="loss", simple_value=value)]))
"""
    assert drawing.run(code, "cell").success
    assert "summaries: step 1 · loss 2 · test/loss 2" in handle.pictures[-1]
