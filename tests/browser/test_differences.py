"""Differences in the browser: of a cell run again in JupyterLab, and of two files in a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import graphcore as gc
import widgets
from graphcore.__main__ import main
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.browser.notebook_page import ARTEFACTS, NotebookPage

DATA = Path(__file__).parents[1] / "data"
START = "%load_ext kernelext\nimport graphcore as gc"
CELLS = [
    START,
    'x = gc.placeholder(gc.float32, [None, 4], name="x")',
    'h = gc.relu(x, name="h")',
    'y = gc.square(h, name="y")',
    "%graph diff",
]


def states(page: Page) -> dict[str, str]:
    """The state of each box by name."""
    found: list[list[str]] = page.locator("[data-node-id]").evaluate_all("boxes => boxes.map(box => [box.dataset.name, box.dataset.state])")
    return dict(found)


def test_a_cell_run_again_shows_what_it_changed_and_nothing_if_it_changed_nothing(lab: Lab) -> None:
    notebook = lab.open_cells(CELLS)
    for cell in range(4):
        notebook.run_cell(cell)
    notebook.edit_and_run(2, 'h = gc.tanh(x, name="h")\nextra = gc.exp(h, name="extra")')
    notebook.run_cell(4)
    panel = GraphPanel(notebook.page)
    panel.box("extra").wait_for()
    assert "1 added, 1 changed, 2 unchanged" in notebook.text(4)
    assert states(notebook.page) == {"x": "normal", "h": "changed", "y": "normal", "extra": "new"}
    assert "op: Relu → Tanh" in (panel.box("h").get_attribute("aria-label") or "")
    panel.root.get_by_text("Legend").click()
    assert panel.root.locator(".gl-legend").inner_text().split("\n")[-4:] == ["+", "new", "~", "changed"]
    notebook.screenshot("light")
    notebook.dark_theme()
    notebook.screenshot("dark")
    notebook.dark_theme(False)
    both_states_stand_side_by_side_and_follow_the_cells(notebook, panel)
    notebook.run_cell(2)
    notebook.page.wait_for_function("() => document.querySelector('.graphloupe').textContent.includes('No difference')")
    assert set(states(notebook.page).values()) == {"normal"}


def both_states_stand_side_by_side_and_follow_the_cells(notebook: NotebookPage, panel: GraphPanel) -> None:
    """Open both states of a live difference, edit the graph, and come back to the one picture."""
    panel.root.get_by_role("button", name="Side by side").click()
    before, after = [panel.root.locator(f'[data-side="{side}"]') for side in ("before", "after")]
    before.locator('[data-node-id="h"]').click()
    expect(after.locator(".graphloupe")).to_have_attribute("data-selected", "h")
    expect(after.locator('[data-node-id="extra"]')).to_have_attribute("data-state", "new")
    expect(before.locator('[data-node-id="extra"]')).to_have_count(0)
    notebook.screenshot("beside-light")
    notebook.dark_theme()
    notebook.screenshot("beside-dark")
    notebook.dark_theme(False)
    notebook.edit_and_run(3, 'y = gc.square(h, name="other")')
    after.locator('[data-node-id="other"]').wait_for()
    after.locator('[data-node-id="other"]').click()
    expect(before.locator(".graphloupe")).to_have_attribute("data-selected", "y")
    panel.root.get_by_role("button", name="In words").last.click()
    expect(panel.root.locator(".gl-diff-words")).to_contain_text("y is now other")
    panel.root.get_by_role("button", name="One picture").last.click()
    expect(panel.root.locator(".gl-fn")).to_have_count(0)
    notebook.edit_and_run(3, 'y = gc.square(h, name="y")')


def test_the_line_under_a_cell_opens_what_it_changed_by_mouse_and_keyboard(lab: Lab) -> None:
    notebook = lab.open_cells([*CELLS[:4], "%graph"])
    for cell in (0, 4, 1, 2, 3):
        notebook.run_cell(cell)
    panel = GraphPanel(notebook.page)
    panel.box("y").wait_for()
    assert notebook.text(3) == "+1 node"
    notebook.edit_and_run(2, 'h = gc.reduce_sum(x, 1, name="h")')
    line = notebook.cell(2).get_by_role("link", name="+1 node, 1 replaced, shapes of 2 changed")
    expect(panel.box("y")).to_have_attribute("data-state", "changed")  # the live picture marks what the last cell changed
    line.click()
    expect(panel.box("y")).to_have_attribute("data-state", "normal")  # the difference only says that y has another shape
    expect(panel.box("h")).to_have_attribute("data-state", "changed")
    notebook.screenshot("line-light")
    notebook.dark_theme()
    notebook.screenshot("line-dark")
    notebook.dark_theme(False)
    line.focus()
    notebook.page.keyboard.press("Enter")  # and back to the graph
    expect(panel.box("h")).to_have_attribute("data-state", "normal")
    line.click()
    expect(panel.box("h")).to_have_attribute("data-state", "changed")
    notebook.edit_and_run(3, 'y = gc.exp(h, name="y")')
    expect(panel.box("h")).to_have_attribute("data-state", "normal")


def digits() -> tuple[gc.Graph, gc.Graph]:
    """The digits softmax before and after its gradients."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, 784], name="x")
        weights = [gc.Variable(gc.zeros([784, 10]), name="W"), gc.Variable(gc.zeros([10]), name="b")]
        y = gc.softmax(gc.matmul(x, weights[0]) + weights[1], name="y")
        loss = gc.negative(gc.reduce_mean(gc.reduce_sum(gc.log(y), axis=1)), name="loss")
        before = graph.copy()
        gc.gradients(loss, weights)
    return before, graph


def mobile_net() -> tuple[gc.Graph, gc.Graph]:
    """MobileNetV2 before and after it is optimised."""
    graph = gc.load(DATA / "mobilenetv2.pb")
    optimised = graph.copy()
    gc.optimize_graph(None, optimised)
    return graph, optimised


def loop() -> tuple[gc.Graph, gc.Graph]:
    """A loop before and after it is lowered."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [4], name="x")
        _, total = gc.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s * 2.0 + x), [gc.constant(0), x], name="loop")
        gc.exp(total, name="y")
    lowered = graph.copy()
    gc.lower_functional_ops(gc.InstantiatedFunctions(lowered.library), lowered)
    return graph, lowered


def show(browser: Browser, file: Path, name: str) -> Page:
    """Open a page, and keep a picture of it in light and in dark colours."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_function("() => document.querySelector('.graphloupe[data-busy]')?.dataset.busy === 'false'")
    ARTEFACTS.mkdir(exist_ok=True)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.screenshot(path=ARTEFACTS / f"difference-{name}-{scheme}.png")
    return page


@pytest.mark.slow
@pytest.mark.parametrize(("build", "found"), [(digits, {"new"}), (mobile_net, {"removed", "changed"}), (loop, {"new", "changed"})])
def test_the_page_of_two_files_shows_both_and_opens_what_is_unchanged(
    browser: Browser, tmp_path: Path, build: Callable[[], tuple[gc.Graph, gc.Graph]], found: set[str]
) -> None:
    first, second = build()
    paths = [str(gc.save(graph, tmp_path / name)) for graph, name in ((first, "a.pb"), (second, "b.pb"))]
    file = tmp_path / "page.html"
    assert main(["diff", *paths, "--out", str(file)]) == 0
    page = show(browser, file, build.__name__)
    assert set(states(page).values()) == {"normal", *found}
    different = page.locator('[data-node-id]:not([data-state="normal"])')
    assert different.count() == page.locator("[data-node-id] .gl-badge").count() > 0
    assert "unchanged; " in page.locator(".gl-status").inner_text()
    box = page.locator('[data-node-id*="#6"][data-state="normal"] [data-action="expand"]').first
    if box.count():
        count = len(states(page))
        box.click()
        page.wait_for_function("count => document.querySelectorAll('[data-node-id]').length > count", arg=count)
        assert set(states(page).values()) == {"normal", *found}
    page.close()


def test_a_removed_node_is_dashed_and_its_edges_say_that_they_are_gone(browser: Browser, tmp_path: Path) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        y = gc.square(gc.tanh(x, name="gone"), name="y")
    before = graph.copy()
    graph.update_edge(x.node, 0, y.node, 0)
    graph.remove_node(next(node for node in graph.nodes if node.name == "gone"))
    page = show(browser, widgets.save(gc.graph_diff(before, graph), tmp_path / "page.html"), "removed")
    assert states(page) == {"x": "normal", "gone": "removed", "y": "changed"}
    dashes = page.locator('[data-node-id="gone"] .gl-shape').evaluate("shape => getComputedStyle(shape).strokeDasharray")
    assert dashes != "none"
    assert page.locator('[data-node-id="gone"] .gl-badge').text_content() == "−"
    labels = page.locator("[data-edge-id] .gl-edge-label").all_text_contents()
    assert sorted(label[0] for label in labels) == ["+", "−", "−"]
    page.close()


def test_attrs_types_shapes_devices_and_wires_are_told_on_boxes_and_in_full_beside_them(browser: Browser, tmp_path: Path) -> None:
    graphs = []
    for size, op, dtype in ((8, gc.relu, gc.float32), (16, gc.tanh, gc.float64)):
        graph = gc.Graph()
        with graph.as_default():
            x = gc.placeholder(gc.float32, [None, size, size, 3], name="x")
            with gc.device(f"/device:{'CPU' if size == 8 else 'GPU'}:0"):
                stride = size // 8
                h = gc.nn.conv2d(x, gc.constant(1.0, shape=[3, 3, 3, 4]), strides=[1, stride, stride, 1], padding="SAME", name="conv")
            h = op(h, name="act")
            gc.reduce_mean(h if size == 8 else gc.cast(h, dtype, name="cast"), name="m")
        graphs.append(graph)
    page = show(browser, widgets.save(gc.graph_diff(graphs[0], graphs[1]), tmp_path / "page.html"), "attrs")
    told = {}
    for name in ("x", "conv", "act", "m", "cast"):
        page.locator(f'[data-node-id="{name}"]').click()
        expect(page.locator(".gl-inspector header .gl-name")).to_have_text(name)
        told[name] = page.locator(".gl-changes li").all_inner_texts()
    assert told == {
        "x": ["shape: [?,8,8,3] → [?,16,16,3]", "output 0: [?,8,8,3] → [?,16,16,3]"],
        "conv": ["strides: [1, 1, 1, 1] → [1, 2, 2, 1]", "device: /device:CPU:0 → /device:GPU:0"],
        "act": ["op: Relu → Tanh"],
        "m": ["T: float → double", "input 0: act → cast", "output 0: float → double"],
        "cast": ["new"],
    }
    page.close()
