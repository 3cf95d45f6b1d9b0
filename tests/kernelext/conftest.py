"""A shell for each test: IPython as in a kernel, without the kernel."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from graphcore.graph import live_graphs, reset_default_graph
from kernelext.cells import CellTracker
from kernelext.guard import Guard
from tests.kernelext.simulated_page import Page


class NotebookShell(InteractiveShell):
    """A shell with cell ids, as in a notebook; a request can carry more metadata."""

    request: dict[str, Any]
    kernel: object

    def get_parent(self) -> dict[str, Any]:
        return self.request

    def run(self, code: str, cell: str = "", **metadata: Any) -> Any:
        """Run `code` as the cell called `cell` of a new request; returns IPython's result."""
        self.request = {
            "header": {"msg_id": f"request-{self.execution_count}"},
            "metadata": {"cellId": cell, **metadata},
            "content": {"code": code},
        }
        return self.run_request(code, store_history=True, cell_id=cell or None)

    def run_request(self, code: str, **options: Any) -> Any:
        """`run_cell`, which IPython leaves without types."""
        ipython: Any = self
        return ipython.run_cell(code, **options)

    def catch(self, kind: type[BaseException], handler: Any) -> None:
        """`set_custom_exc`, which IPython leaves without types."""
        ipython: Any = self
        ipython.set_custom_exc((kind,), handler)


@pytest.fixture(autouse=True, scope="module")
def few_objects() -> None:
    """Exclude what earlier tests left from garbage collection.

    Closing a shell collects all garbage, which takes a second among many objects.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def notebook_shell() -> Iterator[NotebookShell]:
    """A fresh shell, the one that `get_ipython()` gives, and a fresh default graph."""
    reset_default_graph()
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    shell = NotebookShell.instance(config=config)
    shell.request = {}
    shell.colors = "nocolor"
    try:
        yield shell
    finally:
        close: Any = shell.atexit_operations
        atexit.unregister(close)
        close()
        restore: Any = shell.restore_sys_module_state
        restore()
        NotebookShell.clear_instance()


@pytest.fixture
def shell() -> Iterator[NotebookShell]:
    """A fresh shell and a fresh default graph for a test."""
    with notebook_shell() as shell:
        yield shell


@pytest.fixture
def tracked(shell: NotebookShell) -> Iterator[NotebookShell]:
    """A shell with cell ownership; graphcore is imported as gc."""
    reset_default_graph()
    tracker = CellTracker(shell, live_graphs, lambda _run, _failed: None, Guard())
    tracker.start()
    shell.run("import graphcore as gc", "import")
    yield shell
    tracker.stop()
    reset_default_graph()


@pytest.fixture
def page(shell: NotebookShell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    reset_default_graph()
    page = Page(monkeypatch)
    publisher: Any = shell.display_pub
    publisher.publish = page.publish
    shell.kernel = object()  # as in a kernel: displays can be updated
    assert shell.run("%load_ext kernelext\nimport graphcore as gc", "start").success
    yield page
    shell.run("%unload_ext kernelext", "end")
    reset_default_graph()
