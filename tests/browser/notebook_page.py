"""One notebook in JupyterLab, operated like a user: run, edit, save, restart, reload."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from tests.browser.traffic import Traffic

READY_MS = 60_000
RUN_MS = 120_000
POLL_MS = 50
ARTEFACTS = Path(__file__).resolve().parents[2] / "artefacts"

# Finds the panel by its path and not by focus, since a new side panel takes the focus.
HELPERS = """
window.graphloupeTest = {
  panel(path) {
    const app = window.jupyterapp;
    if (!app || !app.shell) return null;
    for (const widget of app.shell.widgets('main')) {
      if (widget.context && widget.context.path === path && widget.content && widget.content.widgets) return widget;
    }
    return null;
  },
  ready(path) {
    const panel = this.panel(path);
    return !!panel && panel.context.isReady && panel.sessionContext.isReady && !!panel.sessionContext.session?.kernel;
  },
  idle(path) {
    const panel = this.panel(path);
    if (!panel || panel.sessionContext.session?.kernel?.status !== 'idle') return false;
    return panel.content.widgets.every(cell => cell.model.executionState !== 'running' && !cell.node.querySelector('.jp-InputPrompt')
      ?.textContent.includes('*'));
  },
};
"""


def prepare(page: Page) -> None:
    """Install the helpers of NotebookPage in a page before it loads."""
    page.add_init_script(HELPERS)
    page.on("dialog", lambda dialog: dialog.accept())


@dataclass
class NotebookPage:
    """The notebook at `path` (relative to the server's folder) in `page`. Cells are counted from 0, Markdown cells included."""

    page: Page
    path: str
    traffic: Traffic
    test_name: str

    # ---- opening and waiting ----------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the notebook in the JupyterLab that the page shows and wait until its kernel is idle."""
        self.command("docmanager:open", {"path": self.path, "factory": "Notebook"})
        self.wait_ready()

    def load(self, url: str) -> None:
        """Load the page from the notebook's address and wait until its kernel is idle."""
        self.page.goto(url)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the notebook and its kernel are there and nothing runs."""
        self.page.wait_for_function("path => window.graphloupeTest.ready(path)", arg=self.path, timeout=READY_MS)
        self.wait_idle(READY_MS)

    def wait_idle(self, timeout_ms: float = RUN_MS) -> None:
        """Wait until the kernel is idle and no cell waits for its turn."""
        self.page.wait_for_function("path => window.graphloupeTest.idle(path)", arg=self.path, timeout=timeout_ms)

    def wait_until(self, holds: Callable[[], bool], timeout_ms: float = READY_MS) -> None:
        """Wait until `holds` returns true, while the page's events are processed; AssertionError on timeout."""
        deadline = time.monotonic() + timeout_ms / 1000
        while not holds():
            assert time.monotonic() < deadline, f"not within {timeout_ms / 1000:.0f} s"
            self.page.wait_for_timeout(POLL_MS)

    # ---- running ----------------------------------------------------------------------------------------------------

    def run_all(self, timeout_ms: float = RUN_MS) -> None:
        """Run every cell from the top and wait until the kernel is idle; a failing cell stops the rest."""
        self._activate()
        self._start("notebook:run-all-cells")
        self.wait_idle(timeout_ms)

    def run_all_above(self, index: int, timeout_ms: float = RUN_MS) -> None:
        """Run all cells above one and wait until the kernel is idle; a failing cell stops the rest."""
        self._activate(index)
        self._start("notebook:run-all-above")
        self.wait_idle(timeout_ms)

    def run_cell(self, index: int, timeout_ms: float = RUN_MS) -> None:
        """Run one cell and wait until the kernel is idle."""
        self._activate(index)
        self._start("notebook:run-cell")
        self.wait_idle(timeout_ms)

    def edit_and_run(self, index: int, source: str, timeout_ms: float = RUN_MS) -> None:
        """Replace the source of a cell, run it and wait until the kernel is idle."""
        self.set_source(index, source)
        self.run_cell(index, timeout_ms)

    def set_source(self, index: int, source: str) -> None:
        """Replace the source of a cell without running it."""
        self._in_panel("panel.content.widgets[index].model.sharedModel.setSource(source)", index=index, source=source)

    def interrupt(self) -> None:
        """Interrupt the kernel, as the stop button does."""
        self._in_panel("await panel.sessionContext.session.kernel.interrupt()")

    # ---- the life of a notebook -------------------------------------------------------------------------------------

    def save(self) -> None:
        """Save the notebook and wait until the file is written; again if an output arrives meanwhile."""
        self._activate()
        saved = """async path => {
          if (window.graphloupeTest.panel(path).context.model.dirty) await window.graphloupeTest.panel(path).context.save();
          return !window.graphloupeTest.panel(path).context.model.dirty;
        }"""
        self.page.wait_for_function(saved, arg=self.path, timeout=READY_MS)

    def restart_kernel(self) -> None:
        """Restart the kernel through JupyterLab's own dialog."""
        self._activate()
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:restart-kernel'); }")
        dialog = self.page.locator(".jp-Dialog")
        dialog.locator("button.jp-mod-accept").click()
        dialog.wait_for(state="detached", timeout=READY_MS)
        self.wait_ready()

    def reload(self) -> None:
        """Reload the whole page; the kernel lives on."""
        self.page.reload()
        self.wait_ready()

    def close(self) -> None:
        """Close the page; the kernel lives on."""
        self.page.close()

    # ---- looking ----------------------------------------------------------------------------------------------------

    def source(self, index: int) -> str:
        """The source of a cell."""
        return str(self._in_panel("return panel.content.widgets[index].model.sharedModel.getSource()", index=index))

    def outputs(self, index: int) -> list[dict[str, Any]]:
        """The outputs of a code cell in nbformat's form, on the screen or not."""
        found: list[dict[str, Any]] = self._in_panel("return panel.content.widgets[index].model.outputs.toJSON()", index=index)
        return found

    def text(self, index: int) -> str:
        """All plain text among a cell's outputs: streams, results, tracebacks without colours."""
        parts: list[str] = []
        for output in self.outputs(index):
            plain = output.get("text", output.get("data", {}).get("text/plain", output.get("traceback", "")))
            parts.append(plain if isinstance(plain, str) else "\n".join(plain))
        return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(parts))

    def cell(self, index: int) -> Locator:
        """The cell in the page, scrolled into view: JupyterLab does not draw cells that are far away."""
        self._activate(index)
        return self.page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{index}"]')

    def screenshot(self, name: str) -> Path:
        """Keep a picture of the page as `artefacts/<test>-<name>.png`."""
        ARTEFACTS.mkdir(exist_ok=True)
        path = ARTEFACTS / f"{self.test_name}-{name}.png"
        self.page.screenshot(path=path)
        return path

    def dark_theme(self, on: bool = True) -> None:
        """Switch between JupyterLab's dark and light themes and wait until the page shows it."""
        self.command("apputils:change-theme", {"theme": "JupyterLab Dark" if on else "JupyterLab Light"})
        self.page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg="false" if on else "true")
        self.page.wait_for_function("() => !document.querySelector('#jupyterlab-splash')")

    # ---- the application underneath ---------------------------------------------------------------------------------

    def command(self, name: str, arguments: dict[str, Any] | None = None) -> None:
        """Execute a command of JupyterLab and wait until it is done."""
        self.page.evaluate(
            "async ([name, args]) => { await window.jupyterapp.commands.execute(name, args); }",
            [name, arguments or {}],
        )

    def _start(self, name: str) -> None:
        """Execute a command that marks its cells as running at once.

        Its promise is not awaited: a long wait in the page ended once as "promise was garbage collected".
        """
        self.page.evaluate("name => { window.jupyterapp.commands.execute(name).catch(console.error); }", name)

    def cell_count(self) -> int:
        """The number of cells."""
        return int(self._in_panel("return panel.content.widgets.length"))

    def cell_sources(self) -> Sequence[str]:
        """The sources of all cells, in order."""
        return [self.source(index) for index in range(self.cell_count())]

    def _activate(self, index: int | None = None) -> None:
        code = "window.jupyterapp.shell.activateById(panel.id);"
        if index is not None:
            code += "panel.content.activeCellIndex = index; panel.content.deselectAll(); await panel.content.scrollToItem(index);"
        self._in_panel(code, index=index)

    def _in_panel(self, code: str, **values: Any) -> Any:
        names = ", ".join(values)
        return self.page.evaluate(
            f"async ([path, {{ {names} }}]) => {{ const panel = window.graphloupeTest.panel(path); {code} }}",
            [self.path, values],
        )
