"""Cell ownership: nodes belong to the cell that made them, and its next run replaces them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

from graphcore.source import CellRun, cell_runs, current_run, started_threads
from kernelext.front_end import request_metadata, requested_cell
from kernelext.guard import Guard

EVENTS: Final = ("pre_run_cell", "post_run_cell")


class CellOwned(Protocol):
    """The protocol of graphs with cell ownership, implemented by `graphcore.Graph`."""

    def begin_cell(self, run: CellRun) -> None:
        """Begin the cell run `run`."""

    def end_cell(self, run: CellRun, *, failed: bool = False, error: BaseException | None = None) -> object:
        """End the cell run `run`."""

    def delete_cell(self, cell: str) -> object:
        """Mark the nodes of a deleted cell."""


@dataclass(frozen=True)
class _Open:
    """A cell, or code run by a cell (`%run`, `run_cell`), that has begun and not ended."""

    info: ExecutionInfo | None
    request: str


class CellTracker:
    """Follows the cells of one shell.

    Every graph is notified at the beginning and end of a cell, so that the nodes a cell makes belong to it: running it again replaces them,
    those that it does not make again are removed, and those of a deleted cell are marked.

    Args:
        shell: the IPython shell.
        graphs: returns the existing graphs.
        finished: a callback after each cell, when the graphs are settled, with the run and True for a failure.
        guard: keeps failures away from the cell.
        begins: a callback before each cell, before any change, with the run.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        graphs: Callable[[], Iterable[CellOwned]],
        finished: Callable[[CellRun, bool], None],
        guard: Guard,
        begins: Callable[[CellRun], None] = lambda _run: None,
    ) -> None:
        self._shell = shell
        self._graphs = graphs
        self._finished = finished
        self._begins = begins
        self._guard = guard
        self._thread = threading.get_ident()
        self._open: list[_Open] = []
        self._entered: set[str] = set()
        self._nameless = 0
        self.run: CellRun | None = None

    def start(self) -> None:
        """Start following. The cell that is running now (the one that loads the extension) is included."""
        self._shell.events.register("pre_run_cell", self._pre_run_cell)
        self._shell.events.register("post_run_cell", self._post_run_cell)
        code = self._requested_code()
        cell = requested_cell(self._shell) or (self._nameless_cell() if code else "")
        if not cell:
            return
        with self._guard("noting the running cell"):
            self._open = [_Open(None, self._request())]
            count = self._shell.execution_count - 1
            self._begin(self._make_run(cell, count, self._file_of(code, self._shell.transform_cell(code), count)))

    def stop(self) -> None:
        """Stop following; the running cell's nodes are kept."""
        for event, callback in zip(EVENTS, (self._pre_run_cell, self._post_run_cell), strict=True):
            if callback in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, callback)
        self._open.clear()
        if self.run is not None:
            self._end_in_graphs(self.run, failed=True)
        self.run = None
        current_run.set(None)
        started_threads.clear()
        for file in self._entered:
            cell_runs.pop(file, None)

    # ---- events -----------------------------------------------------------------------------------------------------

    def _pre_run_cell(self, info: ExecutionInfo) -> None:
        if threading.get_ident() != self._thread:
            return
        with self._guard("noting that a cell begins"):
            request = self._request()
            if self._open and self._open[0].request != request:
                # The end of the last cell was not announced: another extension swallowed it, or the shell was interrupted.
                self._end(failed=True)
            self._open.append(_Open(info, request))
            if len(self._open) == 1:
                self._begin(self._run_of(info))

    def _post_run_cell(self, result: ExecutionResult | None) -> None:
        if threading.get_ident() != self._thread:
            return
        with self._guard("noting that a cell has ended"):
            info = None if result is None else result.info
            if self._open and self._is_inner(info):
                return
            if not self._open:
                self._begin_blank(info)
            if self.run is not None:
                self._end(failed=result is None or not result.success, error=None if result is None else result.error_in_exec)

    def _is_inner(self, info: ExecutionInfo | None) -> bool:
        """Close the code that ends with `info`. True while the cell itself continues."""
        if info is not None and _is_blank(info) and info is not self._open[0].info:
            return self._open[0].info is not None or self._requested_code() != info.raw_cell
        for index, entry in enumerate(self._open):
            if entry.info is not None and (entry.info is info or (info is not None and entry.info.raw_cell == info.raw_cell)):
                del self._open[index:]
                return bool(self._open)
        # The cell that loaded the extension was entered without its info; it ends when no code it runs is open.
        return len(self._open) > 1

    def _begin_blank(self, info: ExecutionInfo | None) -> None:
        # IPython announces only the end of a cell without code, which may have had code in its last run.
        if info is not None and _is_blank(info) and info.cell_id:
            self._begin(self._run_of(info))

    # ---- runs -------------------------------------------------------------------------------------------------------

    def _begin(self, run: CellRun) -> None:
        self.run = run
        current_run.set(run)
        started_threads.begin(run)
        if run.file:
            cell_runs[run.file] = run
            self._entered.add(run.file)
        with self._guard("noting how the graphs are"):
            self._begins(run)
        deleted = self._deleted_cells()
        for graph in self._graphs():
            with self._guard("preparing a graph for a cell"):
                for cell in deleted:
                    graph.delete_cell(cell)
                graph.begin_cell(run)

    def _end(self, *, failed: bool, error: BaseException | None = None) -> None:
        run = self.run
        self._open.clear()
        self.run = None
        current_run.set(None)
        started_threads.end()
        if run is None:
            return
        self._end_in_graphs(run, failed=failed, error=error)
        with self._guard("updating what is shown"):
            self._finished(run, failed)

    def _end_in_graphs(self, run: CellRun, *, failed: bool, error: BaseException | None = None) -> None:
        for graph in self._graphs():
            with self._guard("settling a graph after a cell"):
                graph.end_cell(run, failed=failed, error=error)

    def _run_of(self, info: ExecutionInfo) -> CellRun:
        count = self._shell.execution_count - (1 if info.store_history else 0)
        raw = info.raw_cell or ""
        file = self._file_of(raw, info.transformed_cell or raw, count)
        return self._make_run(info.cell_id or requested_cell(self._shell) or self._nameless_cell(), count, file)

    def _file_of(self, raw: str, transformed: str, count: int) -> str:
        """The name under which IPython compiles a cell, "" for one without code."""
        return "" if not raw or raw.isspace() else str(self._shell.compile.get_code_name(raw, transformed, count))

    @staticmethod
    def _make_run(cell: str, execution: int, file: str) -> CellRun:
        return CellRun(cell=cell, execution=execution, label=f"In [{execution}]", file=file)

    # ---- the request being served ---------------------------------------------------------------------------------------

    def _parent(self) -> dict[str, Any]:
        get_parent = getattr(self._shell, "get_parent", None)
        parent = get_parent() if get_parent is not None else None
        return parent if isinstance(parent, dict) else {}

    def _request(self) -> str:
        return str(self._parent().get("header", {}).get("msg_id", ""))

    def _nameless_cell(self) -> str:
        # A front end that names no cells (a console, nbclient, papermill) runs each piece of code once. If equal code
        # were taken for the same cell, a second `h = relu(h)` would replace the first with a node that feeds itself.
        self._nameless += 1
        return f"nameless-{self._nameless}"

    def _requested_code(self) -> str:
        return str(self._parent().get("content", {}).get("code", ""))

    def _deleted_cells(self) -> list[str]:
        cells = request_metadata(self._shell).get("deletedCells") or []
        return [cell for cell in cells if isinstance(cell, str)]


def _is_blank(info: ExecutionInfo) -> bool:
    return not info.raw_cell or info.raw_cell.isspace()
