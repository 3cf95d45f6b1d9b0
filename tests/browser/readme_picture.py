"""Makes the README's pictures in the real JupyterLab.

Run `python -m tests.browser.readme_picture [NAME ...]`. The names are `quickstart`, `still`, `moving` and `table`; all but the first need PyTorch, `table` its ONNX exporter too, as in the environment of
`make frameworks`. A browser is needed, as for the browser tests.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final

import nbformat
from PIL import Image, ImageDraw, ImageOps
from playwright.sync_api import Locator, Page, sync_playwright

from tests.browser.conftest import CHROMIUM_OPTIONS
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage, prepare
from tests.browser.server import LabServer
from tests.browser.traffic import Traffic
from tests.support.readme import README, ROOT, code_blocks, example_of_the_readme, rows_of_the_table
from tests.support.readme_models import MAKE_THE_OTHERS, write_before
from tests.support.tools.find_browser import find_browser

NOTEBOOK: Final = ROOT / "notebooks" / "00_quickstart.ipynb"
IMAGES: Final = ROOT / "notebooks" / "images"
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
SHOWN: Final = "%graph model(tokens)"
CHANGED: Final = "model = Net(size=24)"
MENDED: Final = "model = Net(size=16)"
CELLS: Final = ["%load_ext kernelext", NET, "model, tokens = Net(), torch.zeros(2, 8, dtype=torch.long)", SHOWN, CHANGED]
LAST_CELL: Final = "training"
WIDTH, HEIGHT, SCALE = 1400, 940, 1.4
"""The size of the page in CSS pixels, small enough to be legible in a column of text, and the pixels of the file for each."""
SMALL_WIDTH, SMALL_HEIGHT = 1120, 800
TABLE_HEIGHT: Final = 640
COLOURS: Final = 64
MARGIN: Final = 8
MOST_BYTES: Final = 1_000_000
POINTER: Final = [(0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12)]
Frame = tuple[Image.Image, int]
"""A frame of the moving picture, and its milliseconds."""


@contextmanager
def jupyterlab(width: int, height: int, scale: float) -> Iterator[tuple[Page, LabServer]]:
    """A page with nothing in it, and a server of JupyterLab."""
    program = find_browser(may_install=False)
    if program is None:
        sys.exit("There is no browser: set GRAPHLOUPE_BROWSER")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        server = LabServer(Path(home))
        server.start()
        try:
            browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
            page = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=scale)
            prepare(page)
            yield page, server
            browser.close()
        finally:
            server.stop()


def opened(page: Page, server: LabServer, name: str) -> NotebookPage:
    """A notebook of the server's folder, with nothing beside it."""
    notebook = NotebookPage(page, name, Traffic(), "readme")
    notebook.load(f"{server.url}/lab/tree/{name}?token={server.token}")
    notebook.command("application:toggle-left-area")
    return notebook


def written(page: Page, server: LabServer, cells: list[str]) -> NotebookPage:
    """A new notebook with these cells."""
    kernel = {"name": "python3", "display_name": "Python 3"}
    made = nbformat.v4.new_notebook(metadata={"kernelspec": kernel}, cells=[nbformat.v4.new_code_cell(source) for source in cells])
    nbformat.write(made, server.work / "model.ipynb")
    return opened(page, server, "model.ipynb")


def settle(page: Page) -> None:
    """Wait until boxes are at their places and messages are gone."""
    page.wait_for_timeout(2_000)


def store(picture: bytes, path: Path, colours: int = 128) -> None:
    """Write a picture with the colours that it needs, without the white space around it."""
    image = Image.open(BytesIO(picture)).convert("RGB")
    left, top, right, bottom = ImageOps.invert(image).getbbox() or (0, 0, *image.size)
    box = (max(0, left - MARGIN), max(0, top - MARGIN), min(image.width, right + MARGIN), min(image.height, bottom + MARGIN))
    image.crop(box).quantize(colours).save(path, optimize=True)


def quickstart() -> None:
    """The quick start after the training."""
    with jupyterlab(WIDTH, HEIGHT, SCALE) as (page, server):
        shutil.copyfile(NOTEBOOK, server.work / NOTEBOOK.name)
        notebook = opened(page, server, NOTEBOOK.name)
        panel = GraphPanel(page)
        for index, cell in enumerate(nbformat.read(NOTEBOOK, as_version=4).cells):
            if cell["cell_type"] == "code":
                notebook.run_cell(index)
                panel.wait_drawn()
            if cell["id"] == LAST_CELL:
                notebook.cell(index).evaluate("cell => cell.scrollIntoView({ block: 'center' })")
                break
        settle(page)
        store(page.screenshot(), IMAGES / "quickstart.png")


def still() -> None:
    """A call of a module whose shapes clash after a change."""
    with jupyterlab(WIDTH, HEIGHT, SCALE) as (page, server):
        notebook = written(page, server, CELLS)
        panel = GraphPanel(page)
        run_cells(notebook, panel)
        failing(page).click()
        panel.inspector("head")
        settle(page)
        store(page.screenshot(), IMAGES / "pytorch.png")


def run_cells(notebook: NotebookPage, panel: GraphPanel) -> None:
    """Run all cells, each with its picture."""
    for index, source in enumerate(CELLS):
        notebook.run_cell(index)
        if source in {SHOWN, CHANGED}:
            panel.wait_drawn()


def failing(page: Page) -> Locator:
    """The box of the operation that fails."""
    return page.locator('[data-node-id][data-state="error"]').last


def moving() -> None:
    """A model is shown, changed, explained in red, and mended."""
    with jupyterlab(SMALL_WIDTH, SMALL_HEIGHT, 1) as (page, server):
        frames = filmed(page, written(page, server, [*CELLS[:3], "", ""]))
    palette = frames[-2][0].quantize(COLOURS)
    pictures = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image, _ in frames]
    path = IMAGES / "moving.gif"
    times = [milliseconds for _, milliseconds in frames]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=times, loop=0, optimize=True, disposal=1)
    size = path.stat().st_size
    sys.stdout.write(f"{path}: {len(frames)} frames, {size:,} bytes\n")
    if size > MOST_BYTES:
        sys.exit("The moving picture is too large")


def filmed(page: Page, notebook: NotebookPage) -> list[Frame]:
    """The frames of the moving picture."""
    frames: list[Frame] = []
    panel = GraphPanel(page)

    def take(milliseconds: int, pointer: Locator | None = None) -> None:
        image = Image.open(BytesIO(page.screenshot())).convert("RGB")
        box = pointer.bounding_box() if pointer else None
        if box:
            left, top = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            ImageDraw.Draw(image).polygon([(left + x, top + y) for x, y in POINTER], fill="black", outline="white")
        frames.append((image, milliseconds))

    def typed(index: int, source: str) -> None:
        for end in range(3, len(source), 5):
            notebook.set_source(index, source[:end])
            page.wait_for_timeout(150)
            take(120)
        notebook.set_source(index, source)
        page.wait_for_timeout(150)
        take(600)
        notebook.run_cell(index)
        panel.wait_drawn()
        settle(page)

    for index in range(3):
        notebook.run_cell(index)
    notebook.cell(3).evaluate("cell => cell.scrollIntoView({ block: 'end' })")
    take(900)
    typed(3, SHOWN)
    notebook.cell(3).evaluate("cell => cell.scrollIntoView({ block: 'end' })")
    take(2400)
    typed(4, CHANGED)
    take(1800)
    take(700, failing(page))
    failing(page).click()
    panel.inspector("head")
    settle(page)
    take(5200, failing(page))
    page.keyboard.press("Escape")
    typed(4, MENDED)
    take(2600)
    return frames


def table() -> None:
    """The answers to the questions in the README's table."""
    with jupyterlab(SMALL_WIDTH, TABLE_HEIGHT, 1.5) as (page, server):
        write_before(server.work)
        rows = rows_of_the_table()
        setup = [block for block in code_blocks(README) if "import torch" in block]
        graphs = [row for row in rows if "placement" in row.line]
        others = [row for row in rows if row not in graphs]
        lines = [row.line for row in others]
        cells = [*setup, MAKE_THE_OTHERS, *lines, example_of_the_readme(), *(row.line for row in graphs)]
        notebook = written(page, server, cells)
        answers = dict(zip([len(setup) + 1 + index for index in range(len(others))], others, strict=True))
        answers |= dict(zip(range(len(cells) - len(graphs), len(cells)), graphs, strict=True))
        for index in range(len(cells)):
            notebook.run_cell(index)
            if index in answers:
                answer(page, notebook, index, answers[index].line, answers[index].picture)


def answer(page: Page, notebook: NotebookPage, index: int, line: str, path: Path) -> None:
    """Store the picture of one answer."""
    if line.startswith("%graph"):
        settle(page)
        shown = page.locator(".graphloupe[data-busy='false']:visible").last  # each line has a tab of its own
        fault = shown.locator('[data-node-id][data-state="error"]')
        if fault.count():
            fault.last.click()
        settle(page)
    else:
        shown = notebook.cell(index).locator(".jp-OutputArea-output").last
        shown.scroll_into_view_if_needed()
        settle(page)
    store(shown.screenshot(), path, COLOURS)
    sys.stdout.write(f"{path.name} {path.stat().st_size:,} bytes\n")


PICTURES: Final = {"quickstart": quickstart, "still": still, "moving": moving, "table": table}


def main() -> None:
    """Make the pictures that are named, or all."""
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()


if __name__ == "__main__":
    main()
