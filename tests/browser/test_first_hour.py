"""The first hour of a newcomer: words under cells, and their picture, on a small laptop's screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel, wait_still
from tests.browser.notebook_page import NotebookPage
from tests.browser.test_first_contact import LAPTOP, covered, red

MODEL = """%load_ext kernelext
import graphcore as gc
import numpy as np
x = gc.placeholder(gc.float32, [None, 4], name="x")
labels = gc.placeholder(gc.float32, [None, 3], name="labels")
with gc.name_scope("model"):
    W = gc.Variable(gc.zeros([4, 3]), name="W")
    logits = gc.matmul(gc.tanh(x), W, name="logits")
loss = gc.reduce_mean(gc.squared_difference(logits, labels), name="loss")
right = gc.equal(gc.argmax(logits, 1), gc.argmax(labels, 1), name="right")
accuracy = gc.reduce_mean(gc.cast(right, gc.float32), name="accuracy")
session = gc.Session()
session.run(gc.global_variables_initializer());
%graph"""
FAILING = {
    "session.run(loss, {x: np.zeros([100, 4]), labels: np.zeros([99, 3])})": (
        "as many rows in 'model/logits:0' as in 'labels:0'",
        "[100,3] and [99,3]",
        "here 100 and 99",
    ),
    "gc.GradientDescentOptimizer(0.5).minimize(-accuracy)": ("no gradient passes 'ArgMax'", "An accuracy can only be watched"),
    "(nothing,) = gc.gradients(loss, [gc.constant(1.0)])\nsession.run([nothing])": ("Cannot fetch None", "a gradient is None where"),
    "z = gc.reshape(gc.zeros([3, 4]), [5, 5], name='bad')": ("a shape of 12 elements", "[5,5], which has 25"),
    "gc.relo(x)": ("relo", "relu"),
    """endless = gc.while_loop(lambda i: gc.less(i, 1e9), lambda i: i + 1.0, [gc.constant(0.0)])
session.run(endless, options=gc.RunOptions(timeout_in_ms=300))""": ("the end of the run within 300 ms", "Allow more time"),
}
REMARKED = {
    "for _ in range(60):\n    W.assign_add(gc.zeros([4, 3]))": "60 AssignAdd nodes were built",
    "with gc.device('/gpu:0'):\n    far = gc.constant(1.0, name='far')\nsession.run(far);": "requests /device:GPU:0, which this session does not have",
    "with gc.device('/job:ps/task:7'):\n    farther = gc.constant(1.0, name='farther')\nsession.run(farther);": "requests /job:ps/task:7",
    "none = gc.gradients(loss, [gc.constant(1.0)])": "gradients gives None",
}
DEEP = """for number, name in enumerate(["wide", "deep", "long"]):
    with gc.name_scope(name):
        for op in (gc.tanh, gc.exp, gc.sin, gc.cos, gc.abs)[: 3 + number]:
            h = op(x if op is gc.tanh else h)
slopes = gc.gradients(gc.reduce_sum(h) + loss, [W, x])"""
WHOLE = "output => output.scrollWidth <= output.clientWidth + 1"


@pytest.fixture
def laptop(lab: Lab) -> Iterator[NotebookPage]:
    """A notebook with a model and cells that fail or are remarked on, on a small screen."""
    notebook = lab.open_cells([MODEL, *FAILING, *REMARKED])
    size = notebook.page.viewport_size
    assert size is not None
    notebook.page.set_viewport_size(LAPTOP)
    notebook.run_cell(0)
    GraphPanel(notebook.page).box("loss").wait_for()
    yield notebook
    notebook.page.set_viewport_size(size)


def test_errors_say_what_is_required_and_remarks_are_no_errors(laptop: NotebookPage) -> None:
    notebook = laptop
    for index, words in enumerate(FAILING.values(), 1):
        notebook.run_cell(index)
        shown = notebook.cell(index).locator(".jp-OutputArea")
        for word in words:
            expect(shown).to_contain_text(word)
        for misleading in ("says what", "operands could not", "broadcast together", "node is not defined"):
            expect(shown).not_to_contain_text(misleading)
        assert all(shown.locator(".jp-OutputArea-output").evaluate_all(f"all => all.map({WHOLE})"))
        notebook.screenshot(f"error-{index}")
    for index, remark in enumerate(REMARKED.values(), 1 + len(FAILING)):
        notebook.run_cell(index)
        assert not [output for output in notebook.outputs(index) if output["output_type"] in ("error", "stream")]
        expect(notebook.cell(index).locator(".jp-OutputArea")).to_contain_text(remark)
        expect(notebook.cell(index).locator(".jp-OutputArea")).not_to_contain_text("`")
        assert all(colour(place) != ERROR for place in notebook.cell(index).get_by_text(remark[:20]).all())
    notebook.screenshot("remarks")
    notebook.dark_theme()
    notebook.screenshot("remarks-dark")
    notebook.dark_theme(False)


ERROR = "--jp-error-color1"


def colour(place: Locator) -> str:
    """The name of the theme's colour that a text has."""
    found: str = place.evaluate(
        """place => {
          const own = getComputedStyle(place).color;
          const probe = document.createElement('span');
          document.body.append(probe);
          probe.style.color = 'var(--jp-error-color1)';
          const error = getComputedStyle(probe).color;
          probe.remove();
          return own === error ? '--jp-error-color1' : own;
        }"""
    )
    return found


@pytest.mark.slow
def test_a_refused_reshape_is_the_only_red_box_and_takes_no_shape_from_others(laptop: NotebookPage) -> None:
    notebook, panel = laptop, GraphPanel(laptop.page)
    notebook.edit_and_run(
        1, "h = gc.tanh(x, name='h')\nz = gc.reshape(gc.zeros([3, 4]), [5, 5], name='bad')\nafter = gc.tanh(z, name='after')"
    )
    panel.root.locator('[data-node-id][data-state="error"]').wait_for()
    assert red(panel) == ["refused:bad"]
    before = {edge["text"] for edge in panel.edges() if "labels" in edge["text"]}
    notebook.edit_and_run(1, "gc.relo(x)")
    notebook.wait_until(lambda: red(panel) == [])
    assert {edge["text"] for edge in panel.edges() if "labels" in edge["text"]} == before
    assert "float [?" in " ".join(before)


@pytest.mark.slow
def test_lenses_tell_gradients_of_scopes_cells_and_the_time_of_the_cell_only(laptop: NotebookPage) -> None:
    notebook, panel = laptop, GraphPanel(laptop.page)
    drawn = panel.drawn().revision
    notebook.edit_and_run(1, "slopes = gc.gradients(loss, [W], name='slopes')")
    panel.wait_drawn(drawn)
    panel.box("slopes").wait_for()
    wait_still(panel.page)
    took = panel.root.locator(".gl-status-facts").inner_text()
    assert took.endswith(" ms")
    lenses = panel.root.locator("select.gl-lenses")
    lenses.select_option("gradients")
    marks = {name: panel.box(name).get_attribute("data-lens-text") or "" for name in ("model", "slopes", "right")}
    assert "forward, differentiated" in marks["model"]
    assert "not differentiated" not in marks["model"]
    assert "gradient" in marks["slopes"]
    assert marks["right"] == "not differentiated"
    lenses.select_option("cells")
    assert panel.root.locator('.gl-node[data-tone="7"]').count() == 0, "7 is the red of errors"
    panel.page.set_viewport_size({"width": 1366, "height": 700})
    panel.box("loss").click()
    panel.inspector("loss")
    panel.page.wait_for_timeout(600)
    assert panel.root.locator(".gl-status-facts").inner_text() in (took, "")
    notebook.screenshot("cells")


@pytest.mark.slow
def test_a_fit_of_a_small_picture_leaves_what_is_opened_later_legible_and_no_control_covers_it(laptop: NotebookPage) -> None:
    notebook, panel = laptop, GraphPanel(laptop.page)
    panel.root.locator(".gl-canvas").focus()
    panel.page.keyboard.press("f")
    wait_still(panel.page)
    drawn = panel.drawn().revision
    notebook.edit_and_run(1, DEEP)
    panel.wait_drawn(drawn)
    wait_still(panel.page)
    drawn = panel.drawn().revision
    panel.press("Expand all")
    panel.wait_drawn(drawn)
    wait_still(panel.page)
    assert panel.root.locator("[data-node-id]").count() > 20
    assert scale(panel) >= 0.9 * 0.99
    panel.root.locator(".gl-canvas").focus()
    panel.page.keyboard.press("End")
    panel.page.wait_for_timeout(700)
    wait_still(panel.page)
    name = panel.root.locator(".gl-node.gl-selected").first.get_attribute("data-name") or ""
    assert covered(panel, name) == []
    notebook.screenshot("opened")
    notebook.dark_theme()
    notebook.screenshot("opened-dark")
    notebook.dark_theme(False)


def scale(panel: GraphPanel) -> float:
    """The size of a pixel of the picture on the screen."""
    found: float = panel.root.evaluate(
        "root => { const box = root.querySelector('.gl-node .gl-shape'); return box.getBoundingClientRect().width / box.getBBox().width; }"
    )
    return found


@pytest.mark.slow
def test_a_variable_made_of_another_s_initial_value_waits_for_its_initializer_and_names_are_those_that_people_gave(
    laptop: NotebookPage,
) -> None:
    notebook, panel = laptop, GraphPanel(laptop.page)
    notebook.edit_and_run(1, "V = gc.Variable(W.initialized_value(), name='V')")
    panel.box("V").wait_for()
    drawn = panel.drawn().revision
    panel.press("Expand all")
    panel.wait_drawn(drawn)
    into = [edge["text"] for edge in panel.edges()]
    assert any(re.search(r"control from model/W/Assign to \S*cond|control from \S*W/Assign to \S*", text) for text in into), into
    titles = panel.root.locator(".gl-world title").all_text_contents()
    assert not [title for title in titles if "#" in title]
    text = panel.export("mermaid")
    assert "&#" not in text
    assert not re.search(r"#\d+;", text)


def test_a_picture_is_light_again_when_its_selection_or_the_mouse_goes(laptop: NotebookPage) -> None:
    notebook, panel = laptop, GraphPanel(laptop.page)
    panel.box("labels").click()
    panel.inspector("labels")
    panel.press("Downstream")
    panel.root.locator(".gl-node.gl-off").first.wait_for()
    drawn = panel.drawn().revision
    notebook.edit_and_run(1, "more = gc.tanh(loss, name='more')\nother = gc.zeros([2], name='other')")
    panel.wait_drawn(drawn)
    panel.box("more").wait_for()
    dimmed = panel.root.locator(".gl-off").evaluate_all("all => all.map(each => each.dataset.name ?? '')")
    assert "other" in dimmed
    assert "more" not in dimmed
    panel.root.locator(".gl-canvas").focus()
    panel.page.keyboard.press("Escape")
    notebook.wait_until(lambda: panel.root.locator(".gl-off").count() == 0)

    wait_still(panel.page)  # the picture moves into the room that the inspector left
    panel.box("labels").hover(force=True)
    notebook.wait_until(lambda: panel.root.locator(".gl-node.gl-lit").count() == 1)
    panel.page.mouse.move(5, 5)
    notebook.wait_until(lambda: panel.root.locator(".gl-lit").count() == 0)
