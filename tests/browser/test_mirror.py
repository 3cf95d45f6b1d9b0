"""Gradients beside what they differentiate, in JupyterLab and in standalone pages, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.server import ROOT
from widgets.scene import SceneState

DIGITS = """
x = gc.placeholder(gc.float32, [None, 64], name="x")
labels = gc.placeholder(gc.float32, [None, 10], name="labels")
w = gc.Variable(gc.zeros([64, 10]), name="W")
b = gc.Variable(gc.zeros([10]), name="b")
scale = gc.Variable(gc.ones([10]), name="scale")
logits = x @ w + b + gc.stop_gradient(scale * 2.0, name="frozen")
y = gc.softmax(logits, name="y")
loss = gc.reduce_mean(-gc.reduce_sum(labels * gc.log(y), axis=[1]), name="loss")
grads = gc.gradients(loss, [w, b, scale])
"""
# For each gradient whether it is in the row (or column) of its origin, and after it unless that is a gradient itself.
BESIDE = """root => [...root.querySelectorAll('[data-mirrors]')].flatMap(box => {
  const origin = root.querySelector(`[data-node-id="${CSS.escape(box.dataset.mirrors)}"]`);
  if (!origin) return [];
  const [own, other] = [box, origin].map(part => part.querySelector('.gl-shape').getBoundingClientRect());
  const middle = (rect, side, size) => rect[side] + rect[size] / 2;
  const near = (side, size) => Math.abs(middle(own, side, size) - middle(other, side, size)) < 4;
  const isSecond = origin.dataset.mirrors !== undefined;
  const [isRight, isBelow] = [isSecond || own.left > other.right, isSecond || own.top > other.bottom];
  const isBeside = (near('y', 'height') && isRight) || (near('x', 'width') && isBelow);
  return [[box.dataset.nodeId, isBeside]];
})"""


def beside(root: Locator) -> dict[str, bool]:
    """For each gradient that shows with its origin, whether it is beside it."""
    return dict(root.evaluate(BESIDE))


def lit(root: Locator) -> set[str]:
    """The boxes that are lit."""
    return set(root.locator(".gl-node.gl-lit").evaluate_all("boxes => boxes.map(box => box.dataset.nodeId)"))


def digits() -> None:
    exec(DIGITS, {"gc": gc})


def lstm() -> None:
    w, b = gc.Variable(gc.zeros([12, 32]), name="W"), gc.Variable(gc.zeros([32]), name="b")
    h = c = gc.zeros([2, 8])
    for step in range(3):
        x = gc.placeholder(gc.float32, [2, 4], name=f"x{step}")
        with gc.name_scope(f"step{step}"):
            i, j, f, o = gc.ops.split(gc.constant(1), gc.concat([x, h], 1) @ w + b, num_split=4)
            c = c * gc.sigmoid(f) + gc.sigmoid(i) * gc.tanh(j)
            h = gc.tanh(c) * gc.sigmoid(o)
    gc.gradients(gc.reduce_mean(h * h, name="loss"), [w, b])


def while_loop() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    y = gc.while_loop(lambda i, _: i < 5, lambda i, v: (i + 1, gc.tanh(v) * x), [gc.constant(0), x])[1]
    gc.gradients(gc.reduce_sum(y * y, name="loss"), [x])


def mobilenet() -> None:
    gc.import_graph_def((ROOT / "tests" / "data" / "mobilenetv2.pb").read_bytes(), prefix="")
    graph = gc.get_default_graph()
    (y,) = [node.outputs[0] for node in graph.nodes if node.name == "Identity"]
    constants = [node.outputs[0] for node in graph.nodes if node.op == "Const"]
    gc.gradients(gc.reduce_sum(y, name="loss"), [weight for weight in constants if weight.dtype.is_floating and weight.shape.dims])
    assert len(graph) > 2_000


def lstm_loop() -> None:
    xs = gc.placeholder(gc.float32, [4, 2, 3], name="xs")
    w, b = gc.Variable(gc.zeros([8, 20]), name="W"), gc.Variable(gc.zeros([20]), name="b")

    def cell(t: gc.Tensor, h: gc.Tensor, c: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor, gc.Tensor]:
        i, j, f, o = gc.split(gc.matmul(gc.concat([gc.gather(xs, t), h], 1), w) + b, 4, 1)
        c = gc.sigmoid(f) * c + gc.sigmoid(i) * gc.tanh(j)
        return t + 1, gc.sigmoid(o) * gc.tanh(c), c

    h = gc.while_loop(lambda t, _h, _c: t < 4, cell, [gc.constant(0), gc.zeros([2, 5]), gc.zeros([2, 5])], name="lstm")[1]
    gc.gradients(gc.reduce_mean(h * h, name="loss"), [w, b])


def second_derivative() -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    with gc.name_scope("layer"):
        y = gc.sigmoid(x * x, name="y")
    first = gc.gradients(gc.reduce_sum(y, name="loss"), [x])[0]
    gc.gradients(gc.reduce_sum(first * first, name="norm"), [x])


def test_a_notebook_puts_gradients_beside_what_they_differentiate(lab: Lab) -> None:
    notebook = lab.open_cells(["%load_ext kernelext\nimport graphcore as gc\n%graph", DIGITS])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    root = panel.root
    root.locator(".gl-canvas").focus()
    root.locator(".gl-canvas").press("m")
    root.locator('[data-node-id="∇y"]').wait_for()
    notebook.wait_until(lambda: all(beside(root).values()))
    assert {"∇y", "∇loss", "gap:scale"} <= beside(root).keys()
    root.locator(".gl-canvas").press("f")
    root.locator('[data-node-id="y"]').hover()
    assert lit(root) == {"y", "∇y"}
    told = panel.inspect("∇y", "gradient of y")
    assert "Mul[T=float]" in told
    assert "stops gradients" in " ".join(panel.errors())
    root.locator(".gl-canvas").press("f")
    root.locator('[data-node-id="gap:scale"]').click()
    assert "StopGradient" in panel.inspector("frozen")
    notebook.screenshot("light")
    notebook.dark_theme(True)
    try:
        notebook.screenshot("dark")
    finally:
        notebook.dark_theme(False)
    root.get_by_role("button", name="Outline").click()
    expect(root.locator(".gl-tree")).to_contain_text("gradient of y")
    root.get_by_role("button", name="Mirror gradients").click()
    root.locator('[data-node-id="∇y"]').wait_for(state="detached")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "closed"),
    [
        (digits, "∇y"),
        (lstm, "∇/#0.step0/"),
        (lstm_loop, "∇lstm"),
        (while_loop, "∇while"),
        (second_derivative, "∇layer/y"),
        (mobilenet, ""),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_page_puts_gradients_beside_what_they_differentiate(
    browser: Browser, tmp_path: Path, build: Callable[[], None], closed: str
) -> None:
    with gc.Graph().as_default() as graph:
        build()
    file = widgets.save(graph, tmp_path / "page.html", SceneState(mirror=True), title=build.__name__)
    page = browser.new_page(viewport={"width": 1366, "height": 768}, reduced_motion="reduce")
    page.goto(file.as_uri())
    panel = GraphPanel(page)
    before = panel.wait_drawn().revision
    artefacts = ROOT / "artefacts"
    artefacts.mkdir(exist_ok=True)
    rows = beside(panel.root)
    assert len(rows) >= (10 if build is mobilenet else 3)
    if build is second_derivative:
        labels = page.locator("[data-group-id] .gl-group-label, [data-group-id] text").all_text_contents()
        assert any("gradient of gradient" in label for label in labels), labels
    if build is digits:
        page.locator('[data-node-id="y"]').hover()
        assert lit(panel.root) == {"y", "∇y"}
        page.locator('[data-node-id="∇y"]').click()
        expect(page.locator(".gl-inspector")).to_contain_text("T=float")
        page.keyboard.press("Escape")
        page.keyboard.press("f")
    assert all(rows.values()), rows
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.screenshot(path=artefacts / f"mirror_{build.__name__}_{scheme}.png")
    if closed:
        page.locator(f'[data-node-id="{closed}"] [data-action="expand"]').click()
        panel.wait_drawn(before)
        assert page.locator(f'[data-group-id="{closed.removesuffix("/")}/"]').count() == 1
        page.screenshot(path=artefacts / f"mirror_{build.__name__}_open.png")
    page.locator(".gl-canvas").press("m")
    page.wait_for_function("() => !document.querySelector('[data-mirrors=\"loss\"]')?.dataset.nodeId.startsWith('∇')")
    page.close()
