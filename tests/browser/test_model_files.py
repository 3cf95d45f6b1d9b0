"""Model files open as pictures in JupyterLab, and a tile of the launcher begins a notebook."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage

MODELS = Path(__file__).parents[1] / "data" / "frontends"


@pytest.fixture
def folder(lab: Lab) -> Iterator[str]:
    """A folder with models, a broken one and a text, shown in the file browser."""
    path = Path(lab.write_cells([])).parent.as_posix()
    work = lab.server.work / path
    with gzip.open(MODELS / "resnet50.onnx.gz") as packed, (work / "resnet50.onnx").open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    for name in ("net.pt2", "quantised.tflite"):
        shutil.copyfile(MODELS / name, work / name)
    shutil.copyfile(MODELS.parent / "while_v1.pb", work / "while.pb")
    (work / "broken.onnx").write_bytes(b"\x89PNG\r\n\x1a\n")
    page = lab.window.page()
    page.evaluate("path => window.jupyterapp.commands.execute('filebrowser:go-to-path', { path })", path)
    page.evaluate("() => window.jupyterapp.commands.execute('filebrowser:activate')")
    page.evaluate("() => window.jupyterapp.commands.execute('filebrowser:refresh')")
    yield path
    page.evaluate("() => window.jupyterapp.commands.execute('filebrowser:go-to-path', { path: '/' })")


def double_click(page: Page, name: str) -> None:
    page.locator(".jp-DirListing-item").filter(has_text=name).first.dblclick()


def picture(page: Page, name: str) -> FrameLocator:
    """The page of a model, once it is drawn."""
    frame = page.frame_locator(f'iframe[title="{name}"]')
    frame.locator(".graphloupe[data-busy='false'] [data-node-id]").first.wait_for()
    return frame


def test_a_double_click_on_a_model_opens_its_picture(lab: Lab, folder: str) -> None:
    page = lab.window.page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    double_click(page, "resnet50.onnx")
    frame = picture(page, "resnet50.onnx")
    expect(frame.locator('[data-node-id][data-name="layer1"]')).to_be_visible()
    frame.locator('[data-node-id][data-name="layer1"]').dblclick()
    frame.locator('[data-group-id^="layer1"]').first.wait_for()
    # The browser never receives the file itself.
    assert [url for url in asked if "resnet50.onnx" in url and "content=1" in url] == []
    notebook = NotebookPage(page, folder, lab.traffic, lab.test_name)
    notebook.screenshot("light")
    notebook.dark_theme()
    try:
        dark = picture(page, "resnet50.onnx")
        expect(dark.locator(".graphloupe")).to_have_attribute("data-theme", "dark")
        notebook.screenshot("dark")
    finally:
        notebook.dark_theme(False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["net.pt2", "quantised.tflite", "while.pb"])
def test_models_of_other_kinds_open_too(lab: Lab, folder: str, name: str) -> None:
    double_click(lab.window.page(), name)
    picture(lab.window.page(), name)


@pytest.mark.slow
def test_a_file_that_is_no_model_says_what_it_is(lab: Lab, folder: str) -> None:
    page = lab.window.page()
    lab.traffic.tolerate("status of 422")
    double_click(page, "broken.onnx")
    words = page.locator("p[role=status]").filter(has_text="broken.onnx cannot be shown.")
    words.wait_for()
    assert "PNG" in words.inner_text()


@pytest.mark.slow
def test_the_tile_of_the_launcher_begins_a_notebook_with_a_live_picture(lab: Lab, folder: str) -> None:
    page = lab.window.page()
    notebook = NotebookPage(page, f"{folder}/Untitled.ipynb", lab.traffic, lab.test_name)
    notebook.command("launcher:create", {"cwd": folder})
    card = page.locator(".jp-LauncherCard:visible").filter(has_text="Graphloupe")
    card.wait_for()
    notebook.screenshot("launcher")
    card.click()
    notebook.wait_ready()
    notebook.run_cell(0)
    GraphPanel(page).wait_drawn()
    notebook.edit_and_run(1, 'x = gc.placeholder(gc.float32, [None, 4], name="x")')
    GraphPanel(page).box("x").wait_for()


def test_a_path_outside_of_the_server_s_folder_is_refused(lab: Lab) -> None:
    (lab.server.home / "outside.onnx").write_bytes((MODELS / "net.pt2").read_bytes())
    status = "async url => (await fetch(url)).status"
    base = f"{lab.server.url}/graphloupe/page?path="
    page = lab.window.page()
    lab.traffic.tolerate("status of 404")
    assert page.evaluate(status, f"{base}..%2Foutside.onnx") == 404
    assert page.evaluate(status, f"{base}nowhere.onnx") == 404
