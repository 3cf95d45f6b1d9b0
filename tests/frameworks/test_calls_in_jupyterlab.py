"""Calls of PyTorch and JAX in the real JupyterLab: edits, errors, restarts of the kernel."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
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


REMARKS = {
    "in-place": (
        "w = torch.ones(3, requires_grad=True)\ndef f(w):\n    y = torch.exp(w)\n    y += 1\n    return y.sum()",
        "f(w)",
        ("changes in place a tensor that the gradient of exp", "line 5: y += 1"),
    ),
    "eval": (
        "net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))\n@torch.no_grad()\ndef predict(x):\n    return net(x).argmax(1)",
        "predict(torch.ones(3, 4))",
        ("net.1 works as in training under torch.no_grad()", "model.eval()"),
    ),
    "broadcast": (
        "net, y = nn.Linear(4, 1), torch.ones(3)\ndef loss(x):\n    return nn.functional.mse_loss(net(x), y)",
        "loss(torch.ones(3, 4))",
        ("are broadcast to (3, 3)", "line 4"),
    ),
}


@pytest.mark.parametrize("name", REMARKS)
def test_a_fault_of_pytorch_without_an_error_is_said_under_the_cell(lab: Lab, name: str) -> None:
    pytest.importorskip("torch")
    code, call, says = REMARKS[name]
    notebook, _ = opened(lab, f"import torch; from torch import nn\n{code}", f"%graph {call}")
    text = notebook.text(2)
    assert all(words in text for words in says), text
    both_themes(notebook, f"remark-{name}")


def test_a_tensor_on_another_device_is_red_and_said_with_its_line(lab: Lab) -> None:
    pytest.importorskip("torch")
    code = "import torch\nscale = torch.ones(8, device='meta')\ndef f(x):\n    return torch.relu(x @ x.T) * scale"
    notebook, panel = opened(lab, code, "%graph f(torch.ones(8, 8))")
    failed = panel.root.locator('[data-node-id][data-state="error"]').first
    failed.click()
    text = panel.inspector("error")
    assert "requires its tensors on one device" in text
    assert "In [2], line 4" in text
    both_themes(notebook, "devices")


def test_compilations_of_each_step_are_counted_under_the_cell(lab: Lab) -> None:
    pytest.importorskip("jax")
    code = "import jax, jax.numpy as jnp\n@jax.jit\ndef step(x):\n    return (x * 2).sum()\nbatches = [jnp.ones(n) for n in (5, 6, 7)]\nx = batches[0]"
    notebook, _ = opened(lab, code, "%graph step(x)")
    notebook.edit_and_run(3, "for x in batches:\n    step(x)")
    assert "`step` has been compiled 3 times (in this picture x was float32[5], float32[7])" in notebook.text(3)
    both_themes(notebook, "compilations")


def test_a_restarted_kernel_shows_the_call_of_jax_again(lab: Lab) -> None:
    pytest.importorskip("jax")
    notebook, panel = opened(lab, JAX, "%graph f(x, w)")
    notebook.restart_kernel()
    expect(panel.root.locator(".gl-status")).to_contain_text("kernel")
    notebook.run_all()
    expect(panel.box("head")).to_be_visible()
    expect(panel.root.locator(".gl-status")).not_to_contain_text("kernel of this picture has ended")
