"""Makes the README's pictures: the quick start after training, and a call of a PyTorch module.

Run `python -m tests.browser.readme_picture`, and with the word `pytorch` in an environment that has PyTorch, such as that of `make frameworks`.
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
CALL: Final = PICTURE.with_name("pytorch.png")
NET: Final = """import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.up = nn.Linear(size, 4 * size)
        self.down = nn.Linear(4 * size, size)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))

class Net(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.embed = nn.Embedding(100, size)
        self.block = Block(size)
        self.head = nn.Linear(16, 10)

    def forward(self, tokens):
        return self.head(self.block(self.embed(tokens)))
"""
CELLS: Final = [
    "%load_ext kernelext",
    NET,
    "model, tokens = Net(), torch.zeros(2, 8, dtype=torch.long)",
    "%graph model(tokens)",
    "model = Net(size=24)",
]
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


def take_call(page: Page, server: LabServer) -> bytes:
    """Show a call of a module, change it so that its shapes clash, and take a picture of the page."""
    made = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS],
    )
    nbformat.write(made, server.work / "pytorch.ipynb")
    notebook = NotebookPage(page, "pytorch.ipynb", Traffic(), "readme")
    notebook.load(f"{server.url}/lab/tree/pytorch.ipynb?token={server.token}")
    notebook.command("application:toggle-left-area")
    panel = GraphPanel(page)
    for index in range(len(CELLS)):
        notebook.run_cell(index)
        if index >= CELLS.index("%graph model(tokens)"):
            panel.wait_drawn()
    page.locator('[data-node-id][data-state="error"]').last.click()
    panel.inspector("head")
    page.wait_for_timeout(2_000)  # boxes move to their places, and messages go
    return page.screenshot()


def main() -> None:
    """Write a picture, with the colours that it needs."""
    is_call = sys.argv[1:] == ["pytorch"]
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
            picture = take_call(page, server) if is_call else take(page, server)
            browser.close()
        finally:
            server.stop()
    Image.open(BytesIO(picture)).convert("RGB").quantize(128).save(CALL if is_call else PICTURE, optimize=True)


if __name__ == "__main__":
    main()
