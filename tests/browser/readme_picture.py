"""Makes the README's picture: the quick start after training.

Run `python -m tests.browser.readme_picture`.
It needs a browser, as the browser tests do.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Final

import nbformat
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import CHROMIUM_OPTIONS
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage, prepare
from tests.browser.server import LabServer
from tests.browser.traffic import Traffic
from tests.support.tools.find_browser import find_browser

NOTEBOOK: Final = Path(__file__).parents[2] / "notebooks" / "00_quickstart.ipynb"
PICTURE: Final = NOTEBOOK.parent / "images" / "quickstart.png"
LAST_CELL: Final = "training"
WIDTH, HEIGHT, SCALE = 1400, 940, 1.4
"""The size of the page in CSS pixels, small enough to be legible in a column of text, and the pixels of the file for each."""


def take(page: Page, server: LabServer) -> bytes:
    """Run the notebook up to the training in JupyterLab, and take a picture of the page."""
    notebook = NotebookPage(page, NOTEBOOK.name, Traffic(), "readme")
    notebook.load(f"{server.url}/lab/tree/{NOTEBOOK.name}?token={server.token}")
    notebook.command("application:toggle-left-area")
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    panel = GraphPanel(page)
    for index, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            notebook.run_cell(index)
            panel.wait_drawn()
        if cell["id"] == LAST_CELL:
            notebook.cell(index).evaluate("cell => cell.scrollIntoView({ block: 'center' })")
            break
    page.wait_for_timeout(2_000)  # boxes move to their places, and messages go
    return page.screenshot()


def main() -> None:
    """Write the picture, with the colours that it needs."""
    program = find_browser(may_install=False)
    if program is None:
        sys.exit("There is no browser: set GRAPHLOUPE_BROWSER")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        server = LabServer(Path(home))
        server.start()
        try:
            shutil.copyfile(NOTEBOOK, server.work / NOTEBOOK.name)
            browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE)
            prepare(page)
            picture = take(page, server)
            browser.close()
        finally:
            server.stop()
    Image.open(BytesIO(picture)).convert("RGB").quantize(128).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
