"""Functions run as notebook cells."""

from __future__ import annotations

from collections.abc import Callable

import graphcore as gc
from graphcore.errors import GraphError
from graphcore.source import CellRun, current_run


class Cells:
    """The cells of one graph."""

    def __init__(self, graph: gc.Graph) -> None:
        self.graph = graph
        self.count = 0

    def run(self, cell: str, code: Callable[[], object]) -> None:
        """Run `code` as cell `cell`, which may have run before."""
        self.count += 1
        cell_run = CellRun(cell=cell, execution=self.count, label=f"In [{self.count}]")
        token = current_run.set(cell_run)
        self.graph.begin_cell(cell_run)
        failed = True
        try:
            code()
            failed = False
        except GraphError:
            failed = True
        finally:
            current_run.reset(token)
            self.graph.end_cell(cell_run, failed=failed)
