"""A saved notebook shows an interactive picture without a kernel, trusted or not."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import NotebookPage
from tests.browser.test_accessibility import faults, use
from widgets.render.saved_picture import SCENE_MIME_TYPE

START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = """x = gc.placeholder(gc.float32, [None, 4], name="x")
with gc.name_scope("layer"):
    for step in range(30):
        x = gc.tanh(x, name=f"step{step}")
with gc.name_scope("other"):
    for step in range(30):
        x = gc.exp(x, name=f"stage{step}")
y = gc.exp(x, name="y")
"""
LARGE = (
    BUILD
    + """with gc.name_scope("tail"):
    for block in range(60):
        with gc.name_scope(f"block{block}"):
            for _ in range(100):
                x = gc.tanh(x)
"""
)
SAVED = f"""panel.content.model.cells.get(0).outputs.toJSON()
  .map(output => output.data && output.data['{SCENE_MIME_TYPE}'])
  .some(picture => picture && picture.graph_gzip_base64 && picture.message.scene.nodes.some(box => box.label === 'y'))"""
"""The picture of the whole graph, and the graph with it: the first cell alone saves an empty one."""
WITHOUT_KERNELSPEC = "for (const key of ['kernelspec', 'language_info']) panel.content.model.deleteMetadata(key)"


def saved(lab: Lab, cells: list[str]) -> NotebookPage:
    """A notebook that was run and saved, and whose kernel and page are gone."""
    notebook = lab.open_cells(cells)
    notebook.run_all()
    notebook.wait_until(lambda: bool(notebook._in_panel(f"return {SAVED}")))
    notebook._in_panel(WITHOUT_KERNELSPEC)
    notebook.save()
    lab.close()
    return notebook


def open_without_kernel(lab: Lab, before: NotebookPage) -> NotebookPage:
    """Open the notebook and choose no kernel."""
    notebook = NotebookPage(lab.window.page(), before.path, lab.traffic, before.test_name)
    notebook.command("docmanager:open", {"path": notebook.path, "factory": "Notebook"})
    choose_no_kernel(notebook)
    return notebook


def choose_no_kernel(notebook: NotebookPage) -> None:
    dialog = notebook.page.locator(".jp-Dialog")
    dialog.locator("select").select_option("null")
    dialog.locator("button.jp-mod-accept").click()
    dialog.wait_for(state="detached")


def explore(notebook: NotebookPage) -> None:
    """Zoom, inspect, open a scope, search, and draw by Mermaid."""
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    assert "exp" in panel.inspect("y", "Made by").lower()
    camera = panel.camera()
    panel.root.get_by_role("button", name="Zoom in").click()
    notebook.wait_until(lambda: panel.camera() != camera)
    panel.open("layer/")
    panel.box("layer/step7").wait_for(state="attached")
    assert panel.find("step29") == ["layer/step29"]
    panel.choose_renderer("mermaid")
    panel.choose_renderer("graphviz")


def look_for_faults(notebook: NotebookPage, panel: GraphPanel) -> None:
    """Find no fault in the picture as it begins, and in its use in both themes."""
    assert faults(notebook.page) == []
    use(panel, "y")
    try:
        for dark in (True, False):
            notebook.dark_theme(dark)
            assert faults(notebook.page) == []
            notebook.screenshot("dark" if dark else "light")
    finally:
        notebook.dark_theme(False)
    panel.root.locator(".gl-search-field").press("Escape")


def distrust(lab: Lab, notebook: NotebookPage) -> None:
    """Change the file outside of Jupyter, so that it is not trusted; and give its outputs a script."""
    file = lab.server.work / notebook.path
    content = json.loads(file.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        for output in cell["outputs"]:
            html = output.get("data", {}).get("text/html")
            if html:
                output["data"]["text/html"] = ["<script>window.scriptRan = true</script>", *html]
    file.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("trusted", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_saved_notebook_without_a_kernel_shows_an_interactive_picture_without_a_fault(lab: Lab, trusted: bool) -> None:
    before = saved(lab, [START, BUILD])
    if not trusted:
        distrust(lab, before)
    notebook = open_without_kernel(lab, before)
    notebook.page.locator(".graphloupe").wait_for()
    assert notebook._in_panel("return panel.content.model.cells.get(0).trusted") is trusted
    assert notebook._in_panel("return panel.sessionContext.session") is None
    assert notebook.page.evaluate("() => window.scriptRan") is None
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    if trusted:  # the picture of one that is not has the same elements
        look_for_faults(notebook, panel)
    explore(notebook)


@pytest.mark.slow
@pytest.mark.parametrize("trusted", [True, False])
def test_a_saved_notebook_of_any_size_is_interactive_in_notebook_7_without_a_kernel(lab: Lab, trusted: bool) -> None:
    before = saved(lab, [START, BUILD if trusted else LARGE])
    if not trusted:
        distrust(lab, before)
    notebook = lab.new_page(before.path)
    notebook.page.goto(f"{lab.server.url}/notebooks/{before.path}?token={lab.server.token}")
    choose_no_kernel(notebook)
    notebook.page.locator(".graphloupe").wait_for()
    assert notebook.page.evaluate("() => window.scriptRan") is None
    explore(notebook)
    notebook.screenshot("notebook7")


def test_the_saved_picture_shows_only_while_no_live_view_does(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    notebook.wait_until(lambda: bool(notebook._in_panel(f"return {SAVED}")))
    notebook.page.wait_for_timeout(1500)
    expect(notebook.page.locator(".graphloupe")).to_have_count(1)
    picture = notebook.cell(0).locator("img[src^='data:image/svg']")
    assert picture.count() == 1
    assert not picture.is_visible(), "it would show the same as the panel, and push the cells down"
    notebook.page.locator("#jp-main-dock-panel .lm-TabBar-tab", has_text="Graph").locator(".lm-TabBar-tabCloseIcon").click()
    notebook.cell(0).locator(".graphloupe").wait_for()
    GraphPanel(notebook.page).box("y").wait_for()
    notebook.run_cell(0)
    notebook.page.locator(".jp-LinkedOutputView .graphloupe").wait_for()
    expect(notebook.cell(0).locator(".graphloupe")).to_have_count(0)
