"""A first hour with the live view by mouse and keyboard, on a small laptop's screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.conftest import Lab
from tests.browser.function_panel import FunctionPanel
from tests.browser.graph_panel import GraphPanel, wait_still
from tests.browser.notebook_page import NotebookPage
from tests.support.readme import example_of_the_readme

START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
LAPTOP: ViewportSize = {"width": 1366, "height": 768}
OVERLAYS = ".gl-legend, .gl-minimap, .gl-way, .gl-zoom"
CELLS = [
    'h = gc.reshape(x, [-1, 128], name="pairs")\nfirst, second = gc.split(h, 2, axis=1, name="halves")\nright = gc.tanh(second, name="right")',
    "session.run(right, {x: pixels[:3]})",
    "session.run(right, {x: pixels[:4]});",
    "for _ in range(60):\n    b.assign_add(gc.zeros([10]))",
]
ONE = """from widgets import FunctionView
from graphcore.definitions import OpDefBuilder
from graphcore.registry import register_op
register_op(OpDefBuilder("One").output("y: T").attr("T: {float, double, int32, int64}").finalize())
FunctionView(gc.parse_function(\"\"\"SquarePlusOne[T:{float, double, int32, int64}](x:T) -> (y:T) {
  a = Square[T=$T](x)
  o = One[T=$T]()
  y = Add[T=$T](a:y, o:y)
  return y = y:z:0
}\"\"\"))"""


@pytest.fixture
def laptop(lab: Lab) -> Iterator[NotebookPage]:
    """A notebook with the README's example and further cells, on a small screen."""
    notebook = lab.open_cells([START, example_of_the_readme(), *CELLS])
    size = notebook.page.viewport_size
    assert size is not None
    notebook.page.set_viewport_size(LAPTOP)
    yield notebook
    notebook.page.set_viewport_size(size)


def red(panel: GraphPanel) -> list[str]:
    """The names of the red boxes."""
    found: list[str] = panel.root.locator('[data-node-id][data-state="error"]').evaluate_all("boxes => boxes.map(box => box.dataset.name)")
    return found


def covered(panel: GraphPanel, name: str) -> list[str]:
    """The classes of the controls that cover a box."""
    found: list[str] = panel.root.evaluate(
        """(root, [name, overlays]) => {
          const box = root.querySelector(`[data-node-id][data-name="${name}"] .gl-shape`).getBoundingClientRect();
          const meets = rect => rect.width > 0 && rect.left < box.right && box.left < rect.right && rect.top < box.bottom && box.top < rect.bottom;
          return [...root.querySelectorAll(overlays)].filter(each => meets(each.getBoundingClientRect())).map(each => each.className);
        }""",
        [name, OVERLAYS],
    )
    return found


def test_the_readme_s_example_runs_and_only_the_node_that_fails_is_red(laptop: NotebookPage) -> None:
    notebook, panel = laptop, GraphPanel(laptop.page)
    for cell in range(3):
        notebook.run_cell(cell)
        assert not [output for output in notebook.outputs(cell) if output["output_type"] == "error"], notebook.text(cell)
    panel.box("pairs").wait_for()
    panel.wait_drawn()
    assert red(panel) == []
    a_halved_batch_is_another_unknown_and_outputs_are_numbered(panel)

    notebook.run_cell(3)
    panel.root.locator('[data-node-id][data-state="error"]').wait_for()
    assert red(panel) == ["pairs"]
    assert panel.root.locator('[data-state="stale"]').count() == 0
    notebook.screenshot("culprit")
    notebook.dark_theme()
    notebook.screenshot("culprit-dark")
    notebook.dark_theme(False)
    notebook.run_cell(4)
    notebook.wait_until(lambda: red(panel) == [])

    notebook.edit_and_run(2, CELLS[0].replace("right", "right", 1) + "\ngc.relo(right)")
    panel.root.locator('[data-node-id][data-state="stale"]').first.wait_for()
    assert red(panel) == []
    notebook.screenshot("quiet")
    notebook.edit_and_run(2, CELLS[0])

    notebook.run_cell(5)
    remarks = [output for output in notebook.outputs(5) if "--jp-warn-color1" in output.get("data", {}).get("text/html", "")]
    assert "60 AssignAdd nodes were built" in str(remarks)
    assert not [output for output in notebook.outputs(5) if output["output_type"] == "stream"]
    the_status_is_that_of_the_lens(panel)
    controls_leave_the_selected_box_free(panel)
    arrows_say_that_there_is_no_way(panel)
    escape_leaves_the_difference(notebook, panel)


def a_halved_batch_is_another_unknown_and_outputs_are_numbered(panel: GraphPanel) -> None:
    texts = [edge["text"] for edge in panel.edges()]
    assert any("from x to pairs, float [?,64]" in text for text in texts), texts
    assert any(re.search(r"from pairs to halves, float \[\?\d,128\]", text) for text in texts), texts
    assert any(re.search(r"from halves to right, :1 float \[\?\d,64\]", text) for text in texts), texts
    heard = panel.box("right").get_attribute("aria-label") or ""
    assert re.search(r"takes :1 float \[\?\d,64\] from halves, gives float", heard), heard


def the_status_is_that_of_the_lens(panel: GraphPanel) -> None:
    lenses = panel.root.locator("select.gl-lenses")
    lenses.select_option("functions")
    expect(panel.root.locator(".gl-status")).to_contain_text("No node calls a function")
    lenses.select_option("gradients")
    expect(panel.root.locator(".gl-status")).not_to_contain_text("No node calls a function")
    assert " ms" not in panel.root.locator(".gl-status-facts").inner_text() or "boxes" in panel.status()
    lenses.select_option("structure")


def controls_leave_the_selected_box_free(panel: GraphPanel) -> None:
    panel.root.locator(".gl-canvas").focus()
    panel.page.keyboard.press("End")
    for _ in range(4):
        wait_still(panel.page)
        name = panel.root.locator(".gl-node.gl-selected").first.get_attribute("data-name") or ""
        assert covered(panel, name) == []
        panel.page.keyboard.press("ArrowUp")
    assert len(panel.root.locator(".gl-canvas").get_attribute("aria-label") or "") < 100


def arrows_say_that_there_is_no_way(panel: GraphPanel) -> None:
    panel.page.keyboard.press("Home")
    for _ in range(8):
        panel.page.keyboard.press("ArrowUp")
    assert panel.root.locator(".gl-status [role=status]").inner_text() == "No box further up"
    panel.page.keyboard.press("Escape")


def escape_leaves_the_difference(notebook: NotebookPage, panel: GraphPanel) -> None:
    drawn = panel.drawn().revision
    notebook.cell(5).locator("a[href^='#graphloupe-difference-']").click()
    panel.wait_drawn(drawn)
    notebook.wait_until(lambda: "Esc shows the graph again" in panel.status())
    notebook.screenshot("difference")
    panel.root.locator(".gl-canvas").focus()
    panel.page.keyboard.press("Escape")
    notebook.wait_until(lambda: "Esc shows the graph again" not in panel.status())


def test_the_seeds_function_is_shown_once_and_follows_its_attrs(lab: Lab) -> None:
    notebook = lab.open_cells(["%load_ext kernelext\nimport graphcore as gc", ONE])
    size = notebook.page.viewport_size
    assert size is not None
    notebook.page.set_viewport_size(LAPTOP)
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = FunctionPanel(notebook.page)
    panel.wait_drawn("o")
    assert notebook.page.get_by_text("T=float", exact=True).locator("visible=true").count() == 1
    panel.side("instance").locator("select:not(.gl-lenses)").first.select_option("double")
    panel.wait_text("instance", "One[T=double]()")
    shown = notebook.page.locator(".jp-Notebook").inner_text()
    assert "Instantiated for T=float" not in shown
    assert "T=float" not in shown
    panel.root.evaluate("view => view.scrollIntoView({block: 'start'})")
    notebook.screenshot("double")
    notebook.dark_theme()
    notebook.screenshot("double-dark")
    notebook.dark_theme(False)
    notebook.page.set_viewport_size(size)
