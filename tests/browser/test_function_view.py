"""Functions in the real JupyterLab: opening calls in place, the function view, attrs, gradients."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.browser.function_panel import FunctionPanel
from tests.browser.graph_panel import GraphPanel, wait_still
from tests.browser.notebook_page import NotebookPage

START = "%load_ext kernelext\nimport graphcore as gc"
LAYERS = """@gc.function
def squash(x):
    return gc.tanh(x * x)

@gc.function
def layer(x, w):
    return squash(x @ w)

x = gc.placeholder(gc.float32, [None, 4], name="x")
w = gc.placeholder(gc.float32, [4, 2], name="W")
h = layer(x, w)
y = gc.exp(h, name="after")"""
SCALED = '''gc.parse_function("""Scaled[T:{float, double, int32}, N:int >= 2 = 3](x:N*T) -> (y:T) {
  s = AddN[N=$N, T=$T](x)
  q = Square[T=$T](s:sum:0)
  return y = q:y:0
}""")'''


def test_a_call_opens_in_place_and_its_function_by_itself(lab: Lab) -> None:
    notebook = lab.open_cells([f"{START}\n%graph", LAYERS])
    notebook.run_all()
    graph = GraphPanel(notebook.page)
    graph.box("layer").wait_for()
    before = graph.drawn().revision
    graph.box("layer").locator("[data-action=expand]").click()
    graph.wait_drawn(before)
    assert {"layer:/matmul", "layer:/squash", "layer:/output_RetVal"} <= set(graph.names())
    assert any("float [?,2]" in edge["text"] for edge in graph.edges())
    notebook.screenshot("opened")
    graph.inspect("layer:/squash", "Body of this call")
    notebook.screenshot("inspected")
    graph.press("Open function")
    function = FunctionPanel(notebook.page)
    function.wait_shown("squash")
    assert function.crumbs() == ["graph", "squash"]
    notebook.screenshot("squash")
    function.back_by_key()
    function.wait_gone()
    graph.box("layer:/squash").wait_for()


@pytest.mark.slow
def test_a_function_shows_its_definition_beside_its_body_and_its_attrs_are_edited(lab: Lab) -> None:
    notebook = lab.open_cells([START, SCALED])
    notebook.run_all()
    function = FunctionPanel(notebook.page)
    function.wait_shown("Scaled")
    function.wait_drawn("x_2")
    notebook.screenshot("scaled")
    function.set_attr("N", "4")
    function.wait_drawn("x_3")
    function.choose_attr("T", "double")
    function.wait_text("instance", "double")
    function.set_attr("N", "1")
    assert function.error("N") == "Value for attr 'N' of 1 must be at least minimum 2"
    assert function.value("N") == "1"
    assert "N=4, T=double" in function.text("instance")
    notebook.screenshot("wrong")
    notebook.dark_theme()
    notebook.screenshot("wrong-dark")
    notebook.dark_theme(False)
    in_a_narrow_column(notebook)


def in_a_narrow_column(notebook: NotebookPage) -> None:
    """The body is below the definition, and the view scrolls by itself in the cell's output."""
    size = notebook.page.viewport_size
    assert size is not None
    notebook.page.set_viewport_size({"width": 900, "height": 800})
    notebook.page.locator(".gl-fn-narrow").wait_for()
    notebook.screenshot("narrow")
    overflow = "output => output.scrollHeight - output.clientHeight"
    assert notebook.page.locator(".jp-OutputArea-output:has(.gl-fn)").evaluate(overflow) <= 1
    notebook.page.set_viewport_size(size)


@pytest.mark.slow
def test_breadcrumbs_lead_into_nested_calls_and_gradients_and_back(lab: Lab) -> None:
    notebook = lab.open_cells([START, f"{LAYERS}\nlayer"])
    notebook.run_all()
    function = FunctionPanel(notebook.page)
    function.wait_shown("layer")
    function.wait_drawn("squash")
    function.open_from("instance", "squash")
    function.wait_shown("squash")
    function.differentiate()
    function.wait_shown("squashGrad")
    assert function.crumbs() == ["layer", "squash", "∇ squash"]
    assert "SymbolicGradient" in function.text("definition")
    assert "SymbolicGradient" not in function.text("instance")
    function.wait_drawn("Func/_0")
    notebook.screenshot("gradient")
    notebook.dark_theme()
    notebook.screenshot("gradient-dark")
    notebook.dark_theme(False)
    function.go_to("layer")
    function.wait_shown("layer")
    still = [output for output in notebook.outputs(1) if "graphloupe-still" in str(output)]
    assert "Definition" in str(still)


@pytest.mark.slow
def test_a_dimension_lights_its_lines_and_a_clash_names_both_cells(lab: Lab) -> None:
    weights = 'w = gc.placeholder(gc.float32, [4, 2], name="W")'
    model = 'b = gc.placeholder(gc.float32, [2], name="b")\ny = gc.add(x @ w, b, name="y")\nz = gc.tanh(y, name="z")'
    notebook = lab.open_cells([f"{START}\n%graph", 'x = gc.placeholder(gc.float32, [None, 4], name="x")', weights, model])
    notebook.run_all()
    graph = GraphPanel(notebook.page)
    graph.box("z").wait_for()
    graph.wait_drawn()
    wait_still(notebook.page)  # a forced hover does not wait for it
    graph.root.locator('[data-edge-id="x->matmul"] [data-dim]').first.hover(force=True)
    expect(graph.root.locator(".gl-edge.gl-lit"), "the batch dimension of x, of the product and of the sum").to_have_count(3)
    before = graph.drawn().revision
    notebook.edit_and_run(2, weights.replace("[4, 2]", "[4, 3]"))
    graph.wait_drawn(before)
    expect(graph.root.locator(".gl-edge.gl-chain")).to_have_count(3)
    expect(graph.box("W").locator(".gl-clash-note")).to_have_text("✕ 3 from In [5], line 1")
    expect(graph.box("b").locator(".gl-clash-note")).to_have_text("✕ 2 from In [4], line 1")
    assert "3 is dimension 1 of matmul:0" in graph.inspect("y", "3 is dimension 1")
    notebook.screenshot("clash")
    graph.choose_renderer("mermaid")
    graph.root.locator(".gl-lenses").select_option("cells")
    expect(graph.box("x")).to_have_attribute("data-lens-text", "In [2]")
    notebook.screenshot("mermaid-cells")
