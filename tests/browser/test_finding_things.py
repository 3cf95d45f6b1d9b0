"""Names complete by Tab, `%graph focus` finds a node, and `?` shows the page of an op."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel

START = "%load_ext kernelext\nimport graphcore as gc\n%graph"
BUILD = """x = gc.placeholder(gc.float32, [None, 4], name="x")
with gc.name_scope("outer"), gc.name_scope("inner"):
    parts = [gc.tanh(x, name=f"part{number}") for number in range(60)]
y = gc.add_n(parts, name="y")
graph = gc.get_default_graph()"""


def test_names_complete_a_node_is_found_and_an_op_has_a_page(lab: Lab) -> None:
    notebook = lab.open_cells([START, BUILD, "%graph focus outer/inner/part7", "gc.ops.mat_mul?", ""])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    assert "outer/inner/part7" in panel.inspector("part7")
    expect(panel.box("outer/inner/part7")).to_be_in_viewport()
    page = notebook.cell(3)
    expect(page.get_by_text("a [m,k], b [k,n] -> product [m,n]").first).to_be_visible()
    expect(page.locator("figure img")).to_be_visible()
    for typed, first in (('graph["outer/inner/part5', "outer/inner/part5"), ("%graph ", "dock")):
        notebook.set_source(4, "")
        notebook.cell(4).locator(".cm-content").click()
        notebook.page.keyboard.insert_text(typed)
        notebook.page.keyboard.press("Tab")
        expect(notebook.page.locator(".jp-Completer-item").first).to_contain_text(first)
        notebook.page.keyboard.press("Escape")
