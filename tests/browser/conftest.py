"""Fixtures: one server and one browser for the run, one browser context and one notebook for each test."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright, ViewportSize, sync_playwright

from tests.browser.notebook_page import NotebookPage
from tests.browser.server import LabServer
from tests.browser.traffic import Traffic, outside_blocker
from tests.support.find_browser import ADVICE, find_browser

VIEWPORT: ViewportSize = {"width": 1600, "height": 1000}


@dataclass
class Lab:
    """Opens notebooks for one test, all in the same browser context."""

    server: LabServer
    context: BrowserContext
    traffic: Traffic
    test_name: str
    opened: list[NotebookPage] = field(default_factory=list)

    def open_cells(self, sources: list[str]) -> NotebookPage:
        """Open a new notebook with these code cells."""
        notebook = nbformat.v4.new_notebook()
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
        path = self._new_path("notebook.ipynb")
        nbformat.write(notebook, self.server.work / path)
        return self.reopen(path)

    def open_copy(self, notebook: Path) -> NotebookPage:
        """Open a copy of a notebook file; the original stays as it is."""
        path = self._new_path(notebook.name)
        shutil.copyfile(notebook, self.server.work / path)
        return self.reopen(path)

    def reopen(self, path: str) -> NotebookPage:
        """Open a notebook of the server's folder in a page and a workspace of its own."""
        workspace = secrets.token_hex(4)
        url = f"{self.server.url}/lab/workspaces/{workspace}/tree/{path}?token={self.server.token}"
        page = self.context.new_page()
        self.traffic.listen(page)
        notebook = NotebookPage(page, path, url, self.traffic, self.test_name)
        self.opened.append(notebook)
        notebook.open()
        return notebook

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
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", *outside_blocker()]
    launched = playwright.chromium.launch(executable_path=program, args=quiet)
    yield launched
    launched.close()


@pytest.fixture
def lab(lab_server: LabServer, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Notebooks for one test. Afterwards: no request may have tried to leave the machine, no console error may be left."""
    traffic = Traffic()
    context = browser.new_context(viewport=VIEWPORT, accept_downloads=True, service_workers="block")
    traffic.guard(context)
    test_name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_"))
    opened = Lab(lab_server, context, traffic, test_name)
    yield opened
    context.close()
    lab_server.shut_down_kernels()
    traffic.assert_clean()
