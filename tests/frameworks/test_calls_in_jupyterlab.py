"""Calls of PyTorch and JAX in the real JupyterLab: edits, errors, restarts of the kernel."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.browser.conftest import browser as browser  # noqa: PLC0414 - a fixture
from tests.browser.conftest import lab as lab  # noqa: PLC0414 - a fixture
from tests.browser.conftest import lab_server as lab_server  # noqa: PLC0414 - a fixture
from tests.browser.conftest import playwright as playwright  # noqa: PLC0414 - a fixture
from tests.browser.conftest import window as window  # noqa: PLC0414 - a fixture
from tests.browser.graph_panel import GraphPanel, wait_still
from tests.browser.notebook_page import NotebookPage

pytestmark = pytest.mark.browser

NET = """import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(size), nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))

class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.first, self.block, self.last = nn.Linear(4, hidden), Block(8), nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.block(torch.relu(self.first(x))))
"""
MODEL = "model, x = Net(), torch.ones(3, 4)"
LOAD = "%load_ext kernelext"
JAX = """import jax, jax.numpy as jnp

def layer(x, w, b):
    return jnp.tanh(x @ w + b)

@jax.jit
def f(x, w):
    with jax.named_scope("hidden"):
        h = layer(x, w, 0.5)
    with jax.named_scope("head"):
        return layer(h, w.T, 1.0).sum()

x, w = jnp.ones((3, 4)), jnp.ones((4, 8))"""


def opened(lab: Lab, *cells: str) -> tuple[NotebookPage, GraphPanel]:
    """A notebook whose last cell shows a call, in a window of a laptop's size."""
    notebook = lab.open_cells([LOAD, *cells, ""])
    notebook.page.set_viewport_size({"width": 1366, "height": 768})
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.wait_drawn()
    wait_still(notebook.page)
    return notebook, panel


def both_themes(notebook: NotebookPage, name: str) -> None:
    """Pictures of the page, light and dark."""
    wait_still(notebook.page)
    notebook.screenshot(f"{name}-light")
    notebook.dark_theme()
    wait_still(notebook.page)
    notebook.screenshot(f"{name}-dark")
    notebook.dark_theme(False)


def test_a_picture_follows_an_edited_class_and_keeps_the_selection(lab: Lab) -> None:
    pytest.importorskip("torch")
    notebook, panel = opened(lab, NET, MODEL, "%graph model(x)")
    panel.open("block/")
    panel.inspect("block/up", "block/up")
    before = panel.drawn().revision
    notebook.set_source(1, NET.replace("torch.relu(self.first(x))", "torch.tanh(self.first(x))"))
    notebook.run_cell(1)
    notebook.run_cell(2)
    panel.wait_drawn(before)
    expect(panel.box("tanh")).to_be_visible()
    assert "model(x): +1 node, \u22121 node" in notebook.text(2)
    expect(panel.root.locator('.gl-selected[data-name="block/up"]')).to_have_count(1)
    both_themes(notebook, "edited")


def test_a_clash_of_shapes_is_red_explained_and_mended(lab: Lab) -> None:
    pytest.importorskip("torch")
    notebook, panel = opened(lab, NET, MODEL, "%graph model(x)")
    before = panel.drawn().revision
    notebook.edit_and_run(2, MODEL.replace("Net()", "Net(9)"))
    panel.wait_drawn(before)
    assert "1 error" in notebook.text(2)
    panel.open("block/")
    panel.root.locator('[data-node-id][data-state="error"]').last.click()
    assert "9" in panel.inspector("error")
    both_themes(notebook, "clash")
    before = panel.drawn().revision
    notebook.edit_and_run(2, MODEL)
    panel.wait_drawn(before)
    assert "1 error gone" in notebook.text(2)
    assert panel.root.locator('[data-node-id][data-state="error"]').count() == 0


def test_a_picture_that_cannot_follow_is_faded_and_says_why(lab: Lab) -> None:
    pytest.importorskip("torch")
    notebook, panel = opened(lab, NET, MODEL, "%graph model(x)")
    notebook.edit_and_run(4, "del x")
    expect(panel.root.locator(".gl-status")).to_contain_text("picture of the version before (name 'x' is not defined)")
    assert "the picture is that of the version before" in notebook.text(4)
    both_themes(notebook, "outdated")
    notebook.run_cell(2)
    expect(panel.root.locator(".gl-status")).not_to_contain_text("version before")


def test_a_restarted_kernel_shows_the_call_again(lab: Lab) -> None:
    pytest.importorskip("torch")
    notebook, panel = opened(lab, NET, MODEL, "%graph model(x)")
    notebook.restart_kernel()
    expect(panel.root.locator(".gl-status")).to_contain_text("kernel")
    notebook.run_all()
    expect(panel.box("last")).to_be_visible()
    expect(panel.root.locator(".gl-status")).not_to_contain_text("kernel of this picture has ended")


def test_a_function_of_jax_follows_its_cell(lab: Lab) -> None:
    pytest.importorskip("jax")
    notebook, panel = opened(lab, JAX, "%graph f(x, w)")
    both_themes(notebook, "jax")
    before = panel.drawn().revision
    notebook.edit_and_run(1, JAX.replace("jnp.tanh(x @ w + b)", "jnp.sin(x @ w + b)"))
    panel.wait_drawn(before)
    assert "f(x, w): " in notebook.text(1)
    before = panel.drawn().revision
    notebook.edit_and_run(1, JAX.replace("jnp.ones((4, 8))", "jnp.ones((5, 8))"))
    panel.wait_drawn(before)
    expect(panel.root.locator('[data-node-id][data-state="error"]').first).to_be_visible()
    both_themes(notebook, "jax-clash")


def test_the_first_bad_value_of_a_loss_is_named_with_its_line(lab: Lab) -> None:
    pytest.importorskip("torch")
    loss = "y = torch.eye(2)[[0, 1, 1]]\ndef loss_fn(scores, y):\n    p = torch.softmax(scores * 1e6, dim=1)\n    return -(y * torch.log(p)).sum()"
    notebook, panel = opened(lab, NET, MODEL, loss, "%graph values loss_fn(model(x), y)")
    panel.root.locator(".gl-canvas").press("v")
    health = panel.root.locator(".gl-health")
    expect(health).to_contain_text("The first NaN or Inf: log")
    expect(health).to_contain_text("line 4 (return -(y * torch.log(p)).sum())")
    health.get_by_role("button", name="log", exact=True).first.click()
    expect(panel.root).to_have_attribute("data-selected", "log")
    both_themes(notebook, "first-bad")


def test_the_gradient_that_ends_is_red_beside_its_layer(lab: Lab) -> None:
    pytest.importorskip("torch")
    cut = NET.replace("torch.relu(self.first(x))", "torch.relu(self.first(x)).detach()")
    notebook, panel = opened(lab, cut, MODEL, "%graph --mirror model(x).sum()")
    panel.open("model/")
    end = panel.root.locator(".gl-node", has_text="no gradient of").first
    expect(end).to_be_visible()
    expect(panel.root.locator(".gl-svg").first).to_contain_text("stopped at detach")
    end.click()
    assert "In [2], line 18" in panel.inspector("torch.detach")
    both_themes(notebook, "gradient-ends")
