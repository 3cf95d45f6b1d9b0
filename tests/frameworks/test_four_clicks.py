"""The three faults in the notebooks about PyTorch and JAX are found in four clicks and keys."""

from __future__ import annotations

import nbformat
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel, wait_still
from tests.support.tools.course import NOTEBOOKS

pytestmark = pytest.mark.browser
IN_FRONT = ".graphloupe:not(.jp-Notebook *):not(.lm-mod-hidden *)"


class Reader:
    """A reader of a notebook at a laptop's size, whose clicks and keys are counted."""

    def __init__(self, lab: Lab, name: str) -> None:
        path = NOTEBOOKS / "extra" / f"{name}.ipynb"
        cells = nbformat.read(path, as_version=4).cells
        self.cells = {cell["id"]: index for index, cell in enumerate(cells) if cell["cell_type"] == "code"}
        self.notebook = lab.open_copy(path)
        self.notebook.page.set_viewport_size({"width": 1366, "height": 768})
        self.panel = GraphPanel(self.notebook.page, IN_FRONT)
        self.actions = 0
        self._name = name

    def run_to(self, last: str) -> None:
        """Run the cells that have not run up to one, the cells of mistakes excepted."""
        while True:
            cell, index = next(iter(self.cells.items()))
            del self.cells[cell]
            if cell != "clash":
                self.notebook.run_cell(index)
            if cell == last:
                return

    def click(self, place: Locator) -> None:
        expect(place).to_be_in_viewport()
        place.click()
        self.actions += 1

    def key(self, key: str) -> None:
        self.panel.root.locator(".gl-canvas").press(key)
        self.actions += 1

    def pictures(self, name: str) -> None:
        for dark in (True, False):
            self.notebook.dark_theme(dark)
            wait_still(self.notebook.page)
            self.notebook.screenshot(f"{self._name}-{name}-{'dark' if dark else 'light'}")


FOUND = {
    "pytorch": {
        "sizes": ("nn.Linear(2, hidden)", "nn.Linear(16, 16)"),
        "value": ("The first NaN or Inf: log", "line 4 (return -(right * torch.log(p))"),
        "gradient": ("torch.detach", "self.seen = h = h.detach()"),
    },
    "jax": {
        "sizes": ("20 is axis 1 of params['first']['w']", "16 is axis 0 of params['second']['w']"),
        "value": ("The first NaN or Inf: exp", "line 2 (e = jnp.exp(model(params, x))); its inputs were finite"),
        "gradient": ("stop_gradient", "h = jax.lax.stop_gradient(h)"),
    },
}


@pytest.mark.parametrize("name", FOUND)
def test_the_faults_of_a_training_loop_are_found_in_four_clicks_and_keys(lab: Lab, name: str) -> None:
    pytest.importorskip("torch" if name == "pytorch" else name)
    reader, texts = Reader(lab, name), FOUND[name]
    panel = reader.panel
    reader.run_to("show")
    panel.wait_drawn()
    reader.run_to("wider")
    red = panel.root.locator('[data-node-id][data-state="error"]').last
    reader.click(red)
    sizes = panel.inspector(texts["sizes"][0])
    assert texts["sizes"][1] in sizes
    reader.pictures("sizes")

    reader.run_to("values")
    panel.wait_drawn()
    reader.key("v")
    for text in texts["value"]:
        expect(panel.root.locator(".gl-health")).to_contain_text(text)
    reader.pictures("value")
    panel.root.locator(".gl-canvas").press("v")  # found: the pane is closed

    reader.run_to("mirror")
    end = panel.root.locator(".gl-node", has_text="no gradient of").first
    expect(end).to_be_attached()
    wait_still(reader.notebook.page)
    reader.key("f")
    wait_still(reader.notebook.page)
    reader.pictures("gradients")
    reader.click(end)
    assert texts["gradient"][1] in panel.inspector(texts["gradient"][0])
    reader.pictures("gradient")
    assert reader.actions == 4
