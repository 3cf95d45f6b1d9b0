"""The quick start in the real JupyterLab, step by step, as a reader of it would go."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest

from tests.browser.conftest import Lab
from tests.browser.graph_panel import Drawn, GraphPanel, wait_still
from tests.browser.notebook_page import NotebookPage

QUICKSTART = Path(__file__).resolve().parents[2] / "notebooks" / "00_quickstart.ipynb"
MOST_DELAY_MS = 300.0
FORWARD = ["x", "W", "b", "matmul", "y", "labels", "loss"]


@dataclass
class Reader:
    """A reader of the quick start, running its cells by id."""

    notebook: NotebookPage
    panel: GraphPanel
    cells: dict[str, int]
    drawn: Drawn = field(default_factory=lambda: Drawn(-1, 0.0))
    delays: dict[str, float] = field(default_factory=dict)
    ran: int = 0
    """The cells that ran since the view was drawn for one."""

    def run(self, *cells: str) -> None:
        """Run cells one by one; the view must be drawn exactly once for each."""
        for cell in cells:
            self.run_unchanged(cell)
            before, self.drawn = self.drawn, self.panel.wait_drawn(self.drawn.revision)
            assert before.revision < 0 or self.drawn.revision <= before.revision + self.ran, f"more than one picture for '{cell}'"
            self.ran = 0
            self.delays[cell] = self.drawn.delay_ms

    def run_unchanged(self, *cells: str) -> None:
        """Run cells that change nothing; the view need not be drawn for them."""
        for cell in cells:
            self.notebook.run_cell(self.cells[cell])
            failed = [output for output in self.notebook.outputs(self.cells[cell]) if output["output_type"] == "error"]
            assert not failed, self.text(cell)
            self.ran += 1

    def change(self, cell: str, old: str, new: str) -> None:
        """Replace `old` by `new` in a cell and run it."""
        source = self.notebook.source(self.cells[cell])
        assert old in source
        self.notebook.set_source(self.cells[cell], source.replace(old, new))
        self.run(cell)

    def text(self, cell: str) -> str:
        """The output of a cell."""
        return self.notebook.text(self.cells[cell])


def open_quickstart(lab: Lab, page_of_its_own: bool = False) -> Reader:
    cells = {cell["id"]: index for index, cell in enumerate(nbformat.read(QUICKSTART, as_version=4).cells)}
    notebook = lab.open_copy(QUICKSTART, page_of_its_own)
    return Reader(notebook, GraphPanel(notebook.page), cells)


@pytest.fixture
def reader(lab: Lab) -> Reader:
    return open_quickstart(lab)


def test_the_graph_grows_learns_and_is_still_there_tomorrow(lab: Lab, record_property: Callable[[str, object], None]) -> None:
    reader = open_quickstart(lab, page_of_its_own=True)
    panel, notebook = reader.panel, reader.notebook

    reader.run("load")
    assert panel.names() == []
    notebook.screenshot("start")
    assert notebook.page.locator(".jupyterlab-sidecar .graphloupe").count() == 1
    reader.run_unchanged("data", "look")
    assert notebook.outputs(reader.cells["look"])[0]["data"]["image/png"]

    reader.run("input")
    assert panel.names() == ["x"]
    reader.run("variables")
    assert {"x", "W", "b"} <= set(panel.names())
    reader.run("model")
    assert any("float [?,10]" in edge["text"] for edge in panel.edges())
    reader.run("loss")
    assert set(FORWARD) <= set(panel.names("forward"))
    notebook.screenshot("forward")

    reader.run("gradients")
    gradients = panel.names("gradient")
    assert gradients
    assert set(FORWARD) <= set(panel.names("forward"))
    notebook.screenshot("gradients-folded")
    reader.drawn = panel.open("gradients/")
    look_at_a_gradient(panel)
    notebook.screenshot("gradients")

    reader.run("train-op", "training")
    assert "300 of 300 steps" in notebook.outputs(reader.cells["training"])[-1]["data"]["text/html"]
    reader.run("accuracy")
    accuracy = float(reader.text("accuracy").split("%")[0])
    assert accuracy >= 93
    reader.run_unchanged("confusion")
    reader.run("weights")
    notebook.cell(reader.cells["confusion"])
    notebook.screenshot("examined")
    for cell in ("confusion", "weights"):
        assert notebook.outputs(reader.cells[cell])[0]["data"]["image/png"]

    listed = ", ".join(f"{cell} {delay:.0f}" for cell, delay in reader.delays.items())
    late = [cell for cell, delay in reader.delays.items() if delay > MOST_DELAY_MS]
    record_property("picture after the cell's end, ms", f"{listed}; later than {MOST_DELAY_MS:.0f} ms: {', '.join(late) or 'none'}")
    record_property("accuracy on the held-out fifth", f"{accuracy} %")

    for dark in (False, True):
        notebook.dark_theme(dark)
        notebook.cell(reader.cells["training"])
        notebook.screenshot("trained-dark" if dark else "trained-light")
    notebook.dark_theme(False)
    the_last_picture_stays(reader)


def look_at_a_gradient(panel: GraphPanel) -> None:
    """Click the gradient of the matrix product: registered function and instantiated body are shown."""
    names = [name for name in panel.names("gradient") if "matmul" in name]
    assert names
    text = panel.inspect(names[0], "Registered gradient function")
    assert "differentiates matmul" in text
    assert "MatMul" in text
    assert "T:" in text
    assert "Instantiated body" in text
    assert "float" in text


def the_last_picture_stays(reader: Reader) -> None:
    """Save, restart the kernel, reopen: the picture below the first cell shows the whole graph."""
    notebook = reader.notebook
    notebook.wait_until(lambda: the_still_picture_is_there(str(notebook.outputs(reader.cells["load"]))))  # drawn in the background
    notebook.save()
    notebook.restart_kernel()
    notebook.reload()
    notebook.cell(reader.cells["load"]).locator('.jp-OutputArea .graphloupe [data-name="matmul"]').wait_for()
    assert the_still_picture_is_there(str(notebook.outputs(reader.cells["load"])))
    notebook.screenshot("tomorrow")


def the_still_picture_is_there(html: str) -> bool:
    """The picture with its outline."""
    return "data:image/svg+xml;base64," in html and "matmul" in html


def test_a_mistake_turns_edges_red_and_says_who_made_what(reader: Reader) -> None:
    panel, notebook = reader.panel, reader.notebook
    reader.run("load", "input", "variables", "model", "loss", "gradients")
    well = panel.names()
    assert panel.errors() == []

    reader.change("variables", "[64, 10]", "[64, 12]")
    assert "W_1" not in panel.names()
    errors = panel.errors()
    assert errors
    notebook.screenshot("mistake")
    broken = panel.root.locator('[data-node-id][data-state="error"]').first
    name = broken.get_attribute("data-name")
    assert name
    text = panel.inspect(name, "Error")
    panel.page.keyboard.press("Escape")
    assert panel.inspect_line("[?,12]", "Error") == text
    assert "[?,12]" in text
    assert "[10]" in text or "[?,10]" in text
    assert len(set(re.findall(r"In \[\d+\]", text))) >= 2, f"two cells clash, but the inspector names fewer:\n{text}"
    notebook.screenshot("mistake-inspected")
    notebook.dark_theme()
    notebook.screenshot("mistake-dark")
    notebook.dark_theme(False)

    reader.change("variables", "[64, 12]", "[64, 10]")
    assert panel.errors() == []
    assert sorted(panel.names()) == sorted(well)
    run_all_makes_it_again(reader)


def run_all_makes_it_again(reader: Reader) -> None:
    """Restart the kernel and run all cells: the picture is the same as after the changes."""
    panel, notebook = reader.panel, reader.notebook
    before = picture(panel)
    assert len(before) > len(FORWARD)
    notebook.restart_kernel()
    notebook.run_all_above(reader.cells["text-08"])
    notebook.wait_until(lambda: panel.page.locator(".graphloupe.gl-lost").count() == 0)  # the view of the earlier kernel
    panel.box("loss").wait_for()
    panel.wait_drawn()
    notebook.screenshot("run-all")
    notebook.wait_until(lambda: picture(panel) == before)


def picture(panel: GraphPanel) -> list[str]:
    """The boxes of the picture, and its lines with their ends, types and shapes."""
    return sorted(panel.names()) + sorted([edge["text"] for edge in panel.edges()])


def test_the_view_is_used_renderers_scopes_search_and_export(reader: Reader) -> None:
    panel, notebook = reader.panel, reader.notebook
    reader.run("load", "input", "variables", "model", "loss", "gradients")

    panel.choose_renderer("mermaid")
    assert "matmul" in panel.names()
    notebook.screenshot("mermaid")
    notebook.dark_theme()
    panel.wait_drawn()
    notebook.screenshot("mermaid-dark")
    notebook.dark_theme(False)
    panel.choose_renderer("graphviz")

    drawn = panel.drawn()
    panel.press("Collapse all")
    drawn = panel.wait_drawn(drawn.revision)
    closed = panel.names()
    assert "gradients" in closed
    assert not any(name.startswith("gradients/") for name in closed)
    panel.box("gradients").dblclick()
    drawn = panel.wait_drawn(drawn.revision)
    assert any(name.startswith("gradients/") for name in panel.names())
    notebook.screenshot("collapsed")
    panel.press("Expand all")
    panel.wait_drawn(drawn.revision)

    before = panel.camera()
    panel.press("Zoom in (+)")
    notebook.wait_until(lambda: panel.camera() != before)
    wait_still(panel.page)
    zoomed = panel.camera()
    canvas = panel.root.locator(".gl-canvas").bounding_box()
    assert canvas is not None
    x, y = canvas["x"] + 12, canvas["y"] + canvas["height"] - 12
    panel.page.mouse.move(x, y)
    panel.page.mouse.down()
    panel.page.mouse.move(x + 60, y - 40, steps=4)
    panel.page.mouse.up()
    assert panel.camera() != zoomed

    assert "labels" in panel.find("labels")
    panel.page.keyboard.press("Enter")
    assert "Placeholder" in panel.inspector("Placeholder")
    notebook.screenshot("found")

    laptop(notebook, panel)
    svg = panel.export("svg")
    assert svg.lstrip().startswith("<")
    assert "matmul" in svg
    assert "<script" not in svg
    dot = panel.export("dot")
    assert dot.lstrip().startswith("digraph")
    assert "matmul" in dot
    mermaid = panel.export("mermaid")
    assert mermaid.lstrip().startswith("flowchart")
    assert "matmul" in mermaid


def laptop(notebook: NotebookPage, panel: GraphPanel) -> None:
    """On a small screen, where the controls take two rows, the export menu is inside the panel."""
    size = notebook.page.viewport_size
    assert size is not None
    notebook.page.set_viewport_size({"width": 1280, "height": 720})
    panel.press("Export the picture")
    menu, room = panel.root.locator(".gl-menu").bounding_box(), panel.root.bounding_box()
    assert menu is not None
    assert room is not None
    assert room["x"] <= menu["x"]
    assert menu["x"] + menu["width"] <= room["x"] + room["width"]
    notebook.screenshot("laptop")
    panel.page.keyboard.press("Escape")
    notebook.page.set_viewport_size(size)
