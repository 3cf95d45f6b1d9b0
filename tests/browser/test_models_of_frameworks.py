"""Models of other frameworks in the real JupyterLab: layers, weights, search, files that change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel, wait_still
from tests.browser.notebook_page import NotebookPage

MODELS = Path(__file__).parents[1] / "data" / "frontends"
LOAD = "%load_ext kernelext"
WRITE = """
from onnx import TensorProto, helper, save
def write(op):
    x, y = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    save(helper.make_model(helper.make_graph([helper.make_node(op, ["x"], ["y"], "act")], "g", [x], [y])), "model.onnx")
"""


def shown(lab: Lab, name: str) -> tuple[NotebookPage, GraphPanel]:
    """A notebook with a model in the panel at the side, in a window of a laptop's size."""
    notebook = lab.open_cells([LOAD, f"%graph {MODELS / name}"])
    notebook.page.set_viewport_size({"width": 1366, "height": 768})
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.wait_drawn()
    wait_still(notebook.page)
    return notebook, panel


def test_an_onnx_file_shows_its_layers_and_what_onnx_says_about_an_op(lab: Lab) -> None:
    notebook, panel = shown(lab, "resnet50.onnx.gz")
    for number, count in enumerate((3, 4, 6, 3), 1):
        expect(panel.root.locator("[data-node-id]").filter(has_text=f"layer{number} Bottleneck ×{count}")).to_have_count(1)
    assert notebook.page.locator(".lm-TabBar-tabLabel").filter(has_text=re.compile("^resnet50.onnx.gz$")).count() == 1
    notebook.screenshot("first")
    assert panel.find("Conv")[0] == "bn1/Conv_754"
    notebook.page.keyboard.press("Enter")
    said = panel.inspector("Conv")
    panel.root.locator(".gl-inspector").get_by_text("convolution operator").first.wait_for()
    said = panel.inspector("kernel_shape")
    assert "7, 7" in said
    assert "batchnorm.py" in said
    modules = panel.root.locator(".gl-inspector section").filter(has=notebook.page.get_by_role("heading", name="Module", exact=True))
    assert modules.locator("dt").all_inner_texts() == ["BatchNorm2d"]
    assert modules.locator("dd").all_inner_texts() == ["bn1"]
    wait_still(notebook.page)
    notebook.screenshot("convolution")


@pytest.mark.slow
def test_a_layer_of_a_file_opens(lab: Lab) -> None:
    notebook, panel = shown(lab, "gpt2.onnx.gz")
    box = panel.root.locator("[data-node-id]").filter(has_text="h GPT2Block").first
    before = panel.drawn().revision
    box.locator('[data-action="expand"]').click()
    panel.wait_drawn(before)
    assert any("attn" in name for name in panel.names())
    wait_still(notebook.page)
    notebook.screenshot("layer")


def test_a_pt2_file_shows_the_statistics_of_a_weight_in_both_themes(lab: Lab) -> None:
    notebook, panel = shown(lab, "net.pt2")
    notebook.screenshot("first")
    panel.open("layer.0/")
    panel.find("layer.0/weight")
    notebook.page.keyboard.press("Enter")
    said = panel.inspector("mean")
    assert "[4,3,3,3]" in said
    assert panel.root.locator(".gl-inspector .gl-values svg").count() > 0
    wait_still(notebook.page)
    notebook.screenshot("weight")
    notebook.dark_theme()
    wait_still(notebook.page)
    notebook.screenshot("dark")
    notebook.dark_theme(False)


@pytest.mark.slow
def test_the_inspector_shows_modules_quantisation_and_the_pages_of_a_weight(lab: Lab) -> None:
    notebook, panel = shown(lab, "quantised.tflite")
    inspector = panel.root.locator(".gl-inspector")
    section = inspector.locator("section")
    panel.find("conv_1_1/Relu")
    notebook.page.keyboard.press("Enter")
    scales = section.filter(has=notebook.page.get_by_role("heading", name="Quantisation", exact=True))
    expect(scales).to_contain_text("input Relu")
    expect(scales).to_contain_text("for each of 4 channels of dimension 0")
    scales.scroll_into_view_if_needed()
    wait_still(notebook.page)
    notebook.screenshot("quantisation")
    panel.find("conv_1_1/convolution")
    notebook.page.keyboard.press("Enter")
    panel.inspector("std")
    assert "buffer 5" in panel.inspector("In the source")
    rows = panel.root.locator(".gl-value-rows tr")
    expect(rows.first).to_contain_text("[0, 0, 0, 0]")
    panel.press("›")
    expect(rows.first).to_contain_text("[2, 0, 2, 0]")
    wait_still(notebook.page)
    notebook.screenshot("weight-pages")
    notebook.dark_theme()
    wait_still(notebook.page)
    notebook.screenshot("weight-pages-dark")
    notebook.dark_theme(False)


@pytest.mark.slow
def test_a_file_that_is_missing_is_said_below_the_cell(lab: Lab) -> None:
    notebook = lab.open_cells([LOAD, "%graph nowhere.onnx"])
    notebook.run_cell(0)
    notebook.run_cell(1)
    assert "there is no file 'nowhere.onnx'" in notebook.text(1)
    notebook.screenshot("missing")


@pytest.mark.slow
def test_a_file_that_changes_is_shown_anew_when_its_cell_runs_again(lab: Lab) -> None:
    notebook = lab.open_cells([LOAD + WRITE + "write('Relu')", "%graph model.onnx", "write('Tanh')"])
    notebook.run_cell(0)
    notebook.run_cell(1)
    panel = GraphPanel(notebook.page)
    expect(panel.box("act")).to_contain_text("Relu")
    notebook.run_cell(2)
    notebook.run_cell(1)
    expect(panel.box("act")).to_contain_text("Tanh")
