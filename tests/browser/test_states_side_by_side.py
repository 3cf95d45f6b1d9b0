"""Both states of a difference side by side: what is done in one picture is done in the other."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.notebook_page import ARTEFACTS


def build(name: str, act: Callable[..., gc.Tensor], tail: int) -> gc.Graph:
    """Six scopes of four nodes, one of which is another op, and some nodes behind them."""
    graph = gc.Graph()
    with graph.as_default():
        h = gc.placeholder(gc.float32, [None, 4], name="x")
        for block in range(6):
            with gc.name_scope(f"{name}{block}"):
                for step in range(4):
                    h = (act if (block, step) == (3, 2) else gc.tanh)(h, name=f"step{step}")
        for step in range(tail):
            h = gc.exp(h, name=f"tail{step}")
    return graph


BUILD = f"""from collections.abc import Callable

{inspect.getsource(build)}
before, after = build("layer", gc.relu, 0), build("block", gc.sigmoid, 2)"""


class Sides:
    """The two pictures of a difference."""

    def __init__(self, place: Locator) -> None:
        self.place = place
        self.before, self.after = [place.locator(f'[data-side="{side}"]') for side in ("before", "after")]

    def show(self, way: str) -> None:
        self.place.get_by_role("button", name=way).click()
        if way == "Side by side":
            for side in (self.before, self.after):
                expect(side.locator(".graphloupe")).to_have_attribute("data-busy", "false")

    def check(self) -> None:
        """Select, open, move, zoom and fit in either picture, and see it done in the other."""
        self.box(self.before, "layer2/").click()
        expect(self.root(self.after)).to_have_attribute("data-selected", "block2/")
        expect(self.root(self.after)).not_to_have_class(re.compile("gl-inspecting"))
        self.box(self.after, "block4/").click()
        expect(self.root(self.before)).to_have_attribute("data-selected", "layer4/")
        self.box(self.after, "block4/").locator('[data-action="expand"]').click()
        for side, name in ((self.before, "layer4/step2"), (self.after, "block4/step2")):
            expect(self.box(side, name)).to_be_attached()
        self.box(self.before, "layer4/step2").click(force=True)
        expect(self.root(self.after)).to_have_attribute("data-selected", "block4/step2")
        self.after.page.keyboard.press("Escape")
        for leads, follows in ((self.before, self.after), (self.after, self.before)):
            self.move(leads, follows)
        self.after.get_by_role("button", name="Fit the whole graph").click()
        self.before.page.wait_for_timeout(600)
        seen = [self.transform(side) for side in (self.before, self.after)]
        self.before.get_by_role("button", name="Fit the whole graph").click()
        self.before.page.wait_for_timeout(600)
        assert [self.transform(side) for side in (self.before, self.after)] == seen

    def move(self, leads: Locator, follows: Locator) -> None:
        leads.page.wait_for_timeout(600)  # until nothing glides
        start = [self.transform(side) for side in (leads, follows)]
        canvas = leads.locator(".gl-canvas")
        bounds = canvas.bounding_box()
        assert bounds is not None
        x, y = bounds["x"] + 12, bounds["y"] + bounds["height"] / 2
        mouse = leads.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + 30, y + 10)
        mouse.move(x + 60, y + 25)
        mouse.up()
        end = [self.transform(side) for side in (leads, follows)]
        moved = [(after[0] - before[0], after[1] - before[1]) for before, after in zip(start, end, strict=True)]
        assert abs(moved[0][0]) > 30
        assert all(abs(one - other) <= 2 for one, other in zip(*moved, strict=True)), moved
        leads.get_by_role("button", name="Zoom in").click()
        leads.page.wait_for_timeout(500)
        zoomed = [self.scale(side) for side in (leads, follows)]
        assert zoomed[0] > 0
        leads.get_by_role("button", name="Zoom out").click()
        leads.page.wait_for_timeout(500)
        again = [self.scale(side) for side in (leads, follows)]
        assert abs(zoomed[0] / again[0] - 1.3) < 0.02
        assert abs(zoomed[1] / again[1] - 1.3) < 0.02

    @staticmethod
    def root(side: Locator) -> Locator:
        return side.locator(".graphloupe")

    @staticmethod
    def box(side: Locator, name: str) -> Locator:
        return side.locator(f'[data-node-id="{name}"]')

    @staticmethod
    def transform(side: Locator) -> tuple[float, float]:
        style = side.locator(".gl-layer").evaluate("layer => layer.style.transform")
        x, y = re.findall(r"-?[\d.]+(?=px)", style)
        return float(x), float(y)

    @staticmethod
    def scale(side: Locator) -> float:
        return float(side.locator(".gl-layer").evaluate("layer => layer.querySelector('[data-node-id]').getBoundingClientRect().width"))


def keep(page: Page, name: str) -> None:
    """Keep a picture in light and in dark colours."""
    ARTEFACTS.mkdir(exist_ok=True)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.screenshot(path=ARTEFACTS / f"sides-{name}-{scheme}.png")


@pytest.mark.slow
def test_the_pictures_of_a_page_move_open_and_select_together(browser: Browser, tmp_path: Path) -> None:
    file = widgets.save(gc.graph_diff(build("layer", gc.relu, 0), build("block", gc.sigmoid, 2)), tmp_path / "page.html")
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(file.as_uri())
    sides = Sides(page.locator("#graphloupe"))
    expect(page.locator(".gl-diff-place").first.locator(".graphloupe")).to_have_attribute("data-busy", "false")
    keep(page, "one")
    sides.show("Side by side")
    keep(page, "beside")
    sides.check()
    keep(page, "used")
    sides.show("In words")
    expect(page.locator(".gl-diff-words")).to_contain_text("scope layer0/ is now block0/")
    keep(page, "words")
    sides.show("One picture")
    assert page.locator('[data-node-id="tail0"]').first.is_visible()
    page.close()


def test_the_output_of_a_cell_shows_both_states_side_by_side(lab: Lab) -> None:
    notebook = lab.open_cells(["%load_ext kernelext\nimport graphcore as gc", BUILD, "%diff before after"])
    notebook.run_all()
    output = notebook.cell(2).locator(".jp-OutputArea-output").first
    sides = Sides(output)
    output.locator(".gl-of-difference").wait_for()
    sides.show("Side by side")
    sides.check()
    notebook.screenshot("light")
    notebook.dark_theme()
    notebook.screenshot("dark")
    notebook.dark_theme(False)
    sides.show("In words")
    expect(output.locator(".gl-diff-words")).to_contain_text("3 added, 1 removed")


@pytest.mark.slow
def test_the_states_are_whole_below_each_other_in_a_narrow_output(lab: Lab) -> None:
    notebook = lab.open_cells(["%load_ext kernelext\nimport graphcore as gc", BUILD, "%diff before after"])
    size = notebook.page.viewport_size
    assert size is not None
    notebook.page.set_viewport_size({"width": 850, "height": 768})
    notebook.run_all()
    output = notebook.cell(2).locator(".jp-OutputArea-output").first
    place = output.locator(".gl-of-difference")
    expect(place).to_have_class(re.compile("gl-fn-narrow"))
    sides = Sides(output)
    sides.show("Side by side")
    around, *each = [locator.bounding_box() for locator in (place, sides.before, sides.after)]
    notebook.screenshot("narrow")
    notebook.page.set_viewport_size(size)
    before, after = each
    assert around is not None
    assert before is not None
    assert after is not None
    assert min(before["height"], after["height"]) > 400
    assert before["y"] + before["height"] <= after["y"] + 1
    assert after["y"] + after["height"] <= around["y"] + around["height"] + 1
    sides.show("One picture")
    whole = place.bounding_box()
    assert whole is not None
    assert whole["height"] < 500


def test_compared_runs_are_a_picture_with_the_first_difference_selected(lab: Lab) -> None:
    compare = """import numpy as np
gc.compare_runs(build("layer", gc.relu, 0), build("layer", gc.sigmoid, 0), np.ones((2, 4), np.float32))"""
    notebook = lab.open_cells(["%load_ext kernelext\nimport graphcore as gc", BUILD, compare])
    notebook.run_all()
    view = notebook.cell(2).locator(".graphloupe").first
    expect(view).to_have_attribute("data-selected", "layer3/step2")
    expect(view).to_have_attribute("data-lens", "difference_by_tolerance")
    titles = view.locator(".gl-lenses option").all_text_contents()
    assert {"Difference by tolerance", "Relative difference", "Max abs difference", "Cosine of both", "Signal to difference"} <= set(titles)
    view.scroll_into_view_if_needed()
    notebook.screenshot("light")
    notebook.dark_theme()
    notebook.screenshot("dark")
    notebook.dark_theme(False)
