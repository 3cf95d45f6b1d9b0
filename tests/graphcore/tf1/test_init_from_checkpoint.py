"""Variables start from the values in a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.tf1.names.lookup import namespace
from tests.graphcore.api.cell_runs import Cells

train: Any = namespace("train")


def test_variables_start_from_a_checkpoint_also_after_their_cell_has_run_again(tmp_path: Path) -> None:
    with gc.Graph().as_default():
        w, b = gc.Variable([1.0, 2.0], name="old/w"), gc.Variable(3.0, name="old/b")
        with gc.Session() as session:
            session.run(gc.initialize_all_variables())
            train.Saver().save(session, str(tmp_path / "model"), write_meta_graph=False)
    with gc.Graph().as_default() as graph:
        cells = Cells(graph)
        made: dict[str, Any] = {}

        def model() -> None:
            made["w"] = gc.Variable([0.0, 0.0], name="new/w")
            made["b"] = gc.Variable(0.0, name="new/b", use_resource=True)
            made["c"] = gc.Variable(5.0, name="c")

        cells.run("model", model)
        cells.run("restore", lambda: train.init_from_checkpoint(tmp_path, {"old/": "new/"}))
        cells.run("init", lambda: made.update(init=gc.initialize_all_variables()))
        for _ in range(2):
            with gc.Session() as session:
                session.run(made["init"])
                found = session.run([made["w"], made["b"], made["c"]])
                assert [each.tolist() for each in found] == [[1, 2], 3, 5]
            cells.run("model", model)
        with pytest.raises(NotFoundError, match="The checkpoint holds no 'old/x' for variable 'new/w'"):
            train.init_from_checkpoint(str(tmp_path / "model"), {"old/x": made["w"]})
        with pytest.raises(InvalidArgumentError, match=r"'old/b' of the checkpoint has the shape \[\], variable 'new/w' \[2\]"):
            train.init_from_checkpoint(tmp_path, {"old/b": "new/w"})
        with pytest.raises(NotFoundError, match="there is no variable 'gone' for 'old/b'"):
            train.init_from_checkpoint(tmp_path, {"old/b": "gone"})
    del w, b
