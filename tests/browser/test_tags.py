"""The tags of lenses cover no label, and go where their text is too small."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel, wait_still
from tests.browser.test_first_contact import LAPTOP

START = "%load_ext kernelext\nimport graphcore as gc\nimport numpy as np\n%graph"
LENS = """from widgets import lens

@lens
def uses(node):
    return f"{len(node.inputs)} inputs, and {len(list(node.consumers()))} uses in this graph"
"""
MODEL = """machine = gc.simulated_devices("1 cpu, 2 gpu")
x = gc.placeholder(gc.float32, [None, 64], name="x")
labels = gc.placeholder(gc.float32, [None, 10], name="labels")
h = x
for number in range(3):
    with gc.name_scope(f"layer{number}"), gc.device(f"/gpu:{number % 2}"):
        W = gc.Variable(gc.ones([64, 64]) / 64.0, name="W")
        h = gc.nn.relu(gc.matmul(h, W), name="out")
parts = gc.split(gc.reshape(h, [-1, 128]), 2, axis=1, name="halves")
h = gc.cond(gc.reduce_sum(h) > 0, lambda: gc.tanh(h), lambda: gc.exp(h))
with gc.device("/gpu:1"):
    V = gc.Variable(gc.ones([64, 10]) / 64.0, name="V")
    scores = gc.nn.softmax(gc.matmul(h, V), name="scores")
loss = gc.reduce_mean(gc.square(scores - labels), name="loss")
step = gc.GradientDescentOptimizer(0.1).minimize(loss)
session = gc.Session(devices=machine)
session.run(gc.global_variables_initializer())
feeds = {x: np.ones([32, 64], np.float32), labels: np.ones([32, 10], np.float32)}
session.run([step, loss, *parts], feeds, gc.RunOptions(trace=True, values=True));"""
LENSES = ("shapes", "devices", "gradients", "functions", "cells", "time", "values", "uses")
COVERED = """root => {
  const inner = ({left, right, top, bottom}) => ({left: left + 1, right: right - 1, top: top + 1, bottom: bottom - 1});
  const seen = selector => [...root.querySelectorAll(selector)]
    .map(element => [element, inner(element.getBoundingClientRect())]).filter(([, rect]) => rect.right > rect.left && rect.bottom > rect.top);
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const tags = seen('.gl-world .gl-mark rect, .gl-hull-name rect');
  const labels = seen('.gl-world :is(.gl-edge-label, .gl-group-label, .gl-node > text, .gl-badge, .edgeLabel .label, .cluster-label, .node .label)')
    .filter(([label]) => label.textContent.trim());
  const found = [];
  for (const [tag, place] of tags) {
    const text = tag.nextElementSibling.textContent;
    for (const [label, other] of labels) if (meet(place, other)) found.push(`${text} covers ${label.textContent}`);
    for (const [other, rect] of tags) if (other !== tag && meet(place, rect)) found.push(`${text} covers the tag ${other.nextElementSibling.textContent}`);
  }
  return [tags.length, found];
}"""


def zoom_until_legible(panel: GraphPanel) -> None:
    """Zoom in until texts are shown; the camera then stays."""
    panel.press("Zoom in (+)")
    wait_still(panel.page)
    while panel.root.locator(".gl-layer.gl-far").count():
        panel.press("Zoom in (+)")
        panel.page.wait_for_timeout(400)


@pytest.mark.slow
@pytest.mark.parametrize("renderer", ["graphviz", "mermaid"])
def test_tags_cover_no_label_and_go_where_their_text_is_too_small(lab: Lab, renderer: str) -> None:
    notebook = lab.open_cells([START, LENS, MODEL])
    size = notebook.page.viewport_size
    assert size is not None
    notebook.page.set_viewport_size(LAPTOP)
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("x").wait_for()
    if renderer == "mermaid":
        panel.choose_renderer(renderer)
    counts = dict.fromkeys(LENSES, 0)
    covered = []
    for state in ("closed", "open"):
        if state == "open":
            before = panel.drawn().revision
            panel.press("Expand all")
            panel.wait_drawn(before)
        zoom_until_legible(panel)
        for lens in LENSES:
            panel.root.locator("select.gl-lenses").select_option(lens)
            tags, found = panel.root.evaluate(COVERED)
            counts[lens] += tags
            covered += [f"{state}, {lens}: {each}" for each in found]
            notebook.screenshot(f"{renderer}-{state}-{lens}")
    assert covered == []
    assert [lens for lens, tags in counts.items() if tags == 0] == [], counts
    for _ in range(20):
        panel.press("Zoom out (-)")
    panel.root.locator(".gl-layer.gl-far").wait_for()
    assert panel.root.evaluate(COVERED) == [0, []]
    notebook.screenshot(f"{renderer}-far")
    notebook.page.set_viewport_size(size)
