"""The extension's share of a cell that changes nothing, with 2,000 nodes in a view, and a session."""

from __future__ import annotations

import statistics
import time
from typing import Any

from tests.benchmarks.work import Budget, Row, Work

PAIRS = 100
BUILD = """
import graphcore as gc
layers = [gc.placeholder(gc.float32, [8, 8], name="x")]
for _ in range(2_000):
    layers.append(gc.tanh(layers[-1]))
session = gc.Session()
session.run(layers[1], {layers[0]: [[0.0] * 8] * 8})
"""


class _Notebook:
    """A shell that gets requests with cell ids, as in a notebook; nothing is displayed."""

    def __init__(self) -> None:
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        self.count, self.cell = 0, ""
        config = Config()
        config.HistoryManager.enabled = False
        InteractiveShell.clear_instance()
        instance: Any = InteractiveShell.instance  # IPython leaves it without types
        self.shell: Any = instance(config=config)
        self.shell.get_parent = lambda: {"header": {"msg_id": str(self.count)}, "metadata": {"cellId": self.cell}, "content": {}}
        self.shell.display_pub.publish = lambda *_args, **_named: None

    def run(self, code: str, cell: str) -> float:
        """Run a cell. Returns the seconds that it takes."""
        self.count, self.cell = self.count + 1, cell
        begun = time.perf_counter()
        self.shell.run_cell(code, store_history=True, cell_id=cell).raise_error()
        return time.perf_counter() - begun


def plain() -> Work:
    """A cell without the extension."""
    notebook = _Notebook()
    return Work(figure=lambda: statistics.median([notebook.run("1;", "idle") for _ in range(PAIRS)]))


def ours() -> Work:
    """The extra time with the extension."""
    notebook = _Notebook()
    bare = statistics.median([notebook.run("1;", "idle") for _ in range(PAIRS)])
    notebook.shell.kernel = object()
    notebook.run("%load_ext kernelext\n%graph inline\n%graph quiet", "load")
    notebook.run(BUILD, "build")
    notebook.run("1;", "idle")
    return Work(figure=lambda: statistics.median([notebook.run("1;", "idle") for _ in range(PAIRS)]) - bare)


CELL = Row(
    order=47.0,
    title="cell that changes nothing: the extension's share, 2,000 nodes and a session",
    unit="ms",
    budgets=(Budget(1.0),),
    ours=ours,
    numpy=plain,
)
