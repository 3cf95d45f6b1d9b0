"""Fixtures: one server, one browser and one open JupyterLab for the run, a notebook for each test."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import nbformat
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, ViewportSize, expect, sync_playwright

from tests.browser.notebook_page import READY_MS, NotebookPage, prepare
from tests.browser.server import LabServer
from tests.browser.traffic import Traffic, outside_blocker
from tests.support.tools.find_browser import ADVICE, QUIET, find_browser

expect.set_options(timeout=READY_MS)

VIEWPORT: ViewportSize = {"width": 1600, "height": 1000}
CHROMIUM_OPTIONS = [*QUIET, *outside_blocker()]
# A promise that is awaited for long may be "garbage collected", hence the flag.
STARTED = """() => {
  const app = window.jupyterapp;
  app?.restored.then(() => { window.graphloupeTest.restored = true; });
  return !!window.graphloupeTest.restored && app.commands.hasCommand('docmanager:open') && !document.querySelector('#jupyterlab-splash');
}"""
# True once everything is closed. Documents are disposed, not closed, since closing would ask to save.
CLEAR = """() => {
  for (const widget of [...window.jupyterapp.shell.widgets('main')]) {
    if (widget.title.closable) widget.dispose();
  }
  return document.querySelector('.jp-Notebook, .graphloupe, .jp-Dialog, #jupyterlab-splash') === null
    && document.body.dataset.jpThemeLight === 'true';
}"""


def new_context(browser: Browser, traffic: Traffic) -> BrowserContext:
    """An empty profile without access to other machines."""
    context = browser.new_context(viewport=VIEWPORT, accept_downloads=True, service_workers="block")
    context.set_default_timeout(READY_MS)  # a busy machine takes its time; what never comes fails all the same
    traffic.guard(context)
    return context


class Window:
    """JupyterLab in a page that stays open between tests; most tests open a notebook in it.

    Loading JupyterLab takes several times as long as opening a notebook in it. The other pages of tests share its profile, and with it the
    browser's cache of JupyterLab's files.

    Args:
        motion: "reduce" if pictures in the page do not move, which saves processor time.
    """

    def __init__(self, server: LabServer, browser: Browser, motion: Literal["no-preference", "reduce"] = "no-preference") -> None:
        self._server = server
        self._browser = browser
        self._motion = motion
        self._context: BrowserContext | None = None
        self._page: Page | None = None
        self.traffic = Traffic()

    def new_page(self) -> Page:
        """An empty page."""
        if self._context is None:
            self._context = new_context(self._browser, self.traffic)
        page = self._context.new_page()
        self.traffic.listen(page)
        prepare(page)
        return page

    def page(self) -> Page:
        """The page, in which no notebook is open."""
        if self._page is None:
            self._page = self.new_page()
            self._page.emulate_media(reduced_motion=self._motion)
            self._page.goto(f"{self._server.url}/lab/workspaces/{secrets.token_hex(4)}?token={self._server.token}")
            self._page.wait_for_function(STARTED, timeout=READY_MS)
        return self._page

    def clear(self) -> None:
        """Close everything a test has opened. If something stays open, the page is closed and the next test gets a new one."""
        if self._page is not None and not self._page.evaluate(CLEAR):
            self.close()

    def settle(self) -> None:
        """Wait for the page's events about closed documents, which belong to the test that ends."""
        if self._page is not None:
            self._page.evaluate("() => new Promise(done => setTimeout(done, 50))")

    def close(self) -> None:
        """Close the page, and forget its profile."""
        if self._context is not None:
            self._context.close()
        self._context = self._page = None


@dataclass
class Lab:
    """Opens notebooks for one test."""

    server: LabServer
    window: Window
    test_name: str
    traffic: Traffic
    own: list[Page] = field(default_factory=list)

    def open_cells(self, sources: list[str], page_of_its_own: bool = False, name: str = "notebook.ipynb") -> NotebookPage:
        """Open a new notebook with these code cells."""
        return self.open(self.write_cells(sources, name), page_of_its_own)

    def write_cells(self, sources: list[str], name: str = "notebook.ipynb") -> str:
        """Write a new notebook with these code cells; returns its path in the server's folder."""
        notebook = nbformat.v4.new_notebook()
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
        path = self._new_path(name)
        nbformat.write(notebook, self.server.work / path)
        return path

    def open_copy(self, notebook: Path, page_of_its_own: bool = False) -> NotebookPage:
        """Open a copy of a notebook file; the original stays as it is."""
        path = self._new_path(notebook.name)
        shutil.copyfile(notebook, self.server.work / path)
        return self.open(path, page_of_its_own)

    def open(self, path: str, page_of_its_own: bool) -> NotebookPage:
        """Open a notebook of the server's folder in the window, or in a page and workspace of its own."""
        if not page_of_its_own:
            notebook = NotebookPage(self.window.page(), path, self.traffic, self.test_name)
            notebook.open()
            return notebook
        notebook = self.new_page(path)
        notebook.load(f"{self.server.url}/lab/workspaces/{secrets.token_hex(4)}/tree/{path}?token={self.server.token}")
        return notebook

    def open_in_notebook7(self, path: str) -> NotebookPage:
        """Open a notebook of the server's folder in Notebook 7."""
        notebook = self.new_page(path)
        notebook.load(f"{self.server.url}/notebooks/{path}?token={self.server.token}")
        return notebook

    def new_page(self, path: str) -> NotebookPage:
        """An empty page for a notebook."""
        page = self.window.new_page()
        self.own.append(page)
        return NotebookPage(page, path, self.traffic, self.test_name)

    def close(self) -> None:
        """Close everything that was opened, and end the kernels."""
        while self.own:
            self.own.pop().close()
        self.window.clear()
        self.server.shut_down_kernels()
        self.window.settle()

    def _new_path(self, name: str) -> str:
        folder = f"{self.test_name}-{secrets.token_hex(3)}"
        (self.server.work / folder).mkdir()
        return f"{folder}/{name}"


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A JupyterLab server of this environment."""
    server = LabServer(tmp_path_factory.mktemp("jupyter"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright itself, started once."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """The Chromium or Chrome found on this machine, without a screen."""
    program = find_browser(may_install=False)
    if program is None:
        pytest.fail(f"The browser tests need a browser. {ADVICE}")
    launched = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
    yield launched
    launched.close()


@pytest.fixture(scope="session")
def window(lab_server: LabServer, browser: Browser) -> Iterator[Window]:
    """The JupyterLab that stays open between tests. Pictures move in other pages only."""
    opened = Window(lab_server, browser, motion="reduce")
    yield opened
    opened.close()


@pytest.fixture
def lab(lab_server: LabServer, window: Window, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Notebooks for one test. Fails if a request tried to leave the machine or a console error is left."""
    window.traffic.begin()
    test_name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_"))
    opened = Lab(lab_server, window, test_name, window.traffic)
    yield opened
    opened.close()
    window.traffic.assert_clean()
