"""The stepper over recorded runs and over a run that waits, by keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from tests.graphcore.runtime.loop_graphs import enter, op, while_loop

CELL = """
%load_ext kernelext
import graphcore as gc
%graph
x = gc.placeholder(gc.float32, [2], name="x")
with gc.name_scope("layer"):
    y = gc.log(gc.multiply(x, 2.0, name="twice"), name="logarithm")
z = gc.reduce_sum(y, name="z")
with gc.Session() as session:
    session.run(z, {x: [0.0, 1.0]}, gc.RunOptions(values=True))
"""


def test_a_page_steps_through_loops_and_branches_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    graph = gc.Graph()
    with graph.as_default():
        limit, two = gc.constant(2, name="limit"), gc.constant(2.0, name="two")
        counted, doubled = while_loop(
            lambda i, _x: op("Less", [i, enter(limit, "turns", constant=True)]),
            lambda i, x: [
                op("Add", [i, enter(gc.constant(1), "turns", constant=True)]),
                op("Mul", [x, enter(two, "turns", constant=True)]),
            ],
            [gc.constant(0), gc.constant(1.0)],
            "turns",
        )
    with gc.Session(graph) as session:
        assert [float(value) for value in session.run([counted, doubled], options=gc.RunOptions(values=True))] == [2.0, 4.0]
    file = widgets.save(graph, tmp_path / "run.html")
    page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="light", reduced_motion="reduce")
    page.goto(file.as_uri())
    page.locator("[data-node-id]").first.wait_for()
    page.locator(".gl-canvas").focus()
    page.keyboard.press("s")
    said = page.locator(".gl-step-said")
    expect(said).to_contain_text("Step 0 of")
    page.get_by_label("Stop where this holds").fill("mul and iteration == 1")
    page.get_by_role("button", name="Run to the next breakpoint").click()
    expect(said).to_contain_text("Mul ran in turns, iteration 1: 4")
    assert page.locator('[data-node-id="Mul"].gl-step-now').count() == 1
    rows = page.locator(".gl-step-loop tbody tr")
    assert rows.all_inner_texts()[0].split() == ["0", "0", "1", "True", "1", "2"]
    assert rows.last.get_attribute("aria-current") == "step"
    assert page.locator(".gl-token").count() > 0
    page.screenshot(path=str(tmp_path / "light.png"))
    page.get_by_label("Step of the run").focus()
    page.keyboard.press("End")
    expect(page.locator('[data-node-id="Mul"]')).to_have_class("gl-node gl-op gl-role-forward gl-state-normal gl-step-dead")
    assert page.locator(".gl-step-tag", has_text="dead").count() > 0
    page.locator(".gl-canvas").focus()
    before = said.inner_text()
    page.keyboard.press(",")
    expect(said).not_to_have_text(before)
    page.get_by_label("Step of the run").focus()
    page.keyboard.press("Home")
    page.locator('[data-node-id="Less"]').click()
    page.keyboard.press("b")
    expect(page.locator(".gl-step-breaks")).to_have_text("or at Less")
    page.get_by_label("Stop where this holds").fill("")
    page.locator(".gl-canvas").focus()
    page.keyboard.press("r")
    expect(said).to_contain_text("Less ran in turns, iteration 0: True")
    page.keyboard.press("y")
    play = page.get_by_role("button", name="Play or pause")
    expect(play).to_have_attribute("aria-pressed", "true")
    expect(said).not_to_contain_text("Less ran")
    page.keyboard.press("y")
    expect(play).to_have_attribute("aria-pressed", "false")
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=str(tmp_path / "dark.png"))
    page.get_by_role("button", name="Close the panel").click()
    expect(page.locator(".gl-step-dead, .gl-token")).to_have_count(0)
    page.close()


def test_a_notebook_runs_to_the_first_infinity_and_opens_its_scope(lab: Lab) -> None:
    notebook = lab.open_cells([CELL])
    notebook.run_all()
    panel = GraphPanel(notebook.page)
    panel.box("z").wait_for()
    root = panel.root
    root.get_by_role("button", name="Collapse all").click()
    panel.box("layer").wait_for()
    root.locator(".gl-canvas").focus()
    notebook.page.keyboard.press("s")
    said = root.locator(".gl-step-said")
    expect(said).to_contain_text("Step 0 of")
    root.get_by_label("NaN or Inf").check()
    notebook.page.keyboard.press("Escape")
    root.locator(".gl-canvas").focus()
    notebook.page.keyboard.press("s")
    notebook.page.keyboard.press("r")
    expect(said).to_contain_text("layer/logarithm ran: float [2] [-inf 0.6931]")
    expect(root.locator('[data-node-id="layer/"].gl-step-now')).to_have_count(1)
    notebook.page.keyboard.press(",")
    notebook.page.keyboard.press("i")
    panel.box("layer/logarithm").wait_for()
    expect(root.locator('[data-node-id="layer/logarithm"].gl-step-now')).to_have_count(1)
    notebook.screenshot("stepper")


LIVE = [
    "%load_ext kernelext\nimport graphcore as gc\n%graph",
    """
x = gc.placeholder(gc.float32, [2], name="x")
count = gc.Variable(0, name="count")
with gc.control_dependencies([gc.assign_add(count, 1, name="counted")]):
    start = gc.identity(x, name="start")
y = gc.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, gc.exp(v - 1.0, name="go")), [gc.constant(0), start], name="loop")[1]
session = gc.Session()
session.run(count.initializer)
run = session.step_through(y, {x: [0.5, 1.0]})""",
    "session.run(count)",
    'run.run_until("counted").name, session.run(count)',
    "run.finish()",
]


@pytest.mark.slow
def test_a_run_that_waits_goes_on_from_the_view_and_from_cells(lab: Lab) -> None:
    notebook = lab.open_cells(LIVE)
    for cell in range(3):
        notebook.run_cell(cell)
    panel = GraphPanel(notebook.page)
    panel.box("start").wait_for()
    root = panel.root
    said = root.locator(".gl-step-said")
    expect(said).to_contain_text("live")
    assert notebook.text(2) == "np.int32(0)"
    notebook.run_cell(3)
    assert "('counted', np.int32(1))" in notebook.text(3)
    expect(said).to_contain_text("Next: start")
    root.locator(".gl-canvas").focus()
    notebook.page.keyboard.press(".")
    expect(said).to_contain_text("start ran: float [2] [0.5 1.]")
    assert root.locator('[data-node-id="start"].gl-step-now').count() == 1
    assert root.locator(".gl-token").count() > 0
    root.get_by_label("Stop where this holds").fill("go and iteration == 1")
    root.get_by_role("button", name="Run to the next breakpoint").click()
    expect(said).to_contain_text("loop:body/go ran in loop, iteration 1: float [2]")
    table = root.locator(".gl-step-loop")
    assert table.locator("thead th").all_inner_texts()[:3] == ["Iteration", "add", "go"]
    assert table.locator("tbody tr").first.inner_text().split("\t")[:3] == ["0", "1", "float [2] [0.6065 1.]"]
    root.locator(".gl-canvas").focus()
    notebook.page.keyboard.press("i")
    root.locator('[data-node-id^="loop:"].gl-step-now').first.wait_for()
    assert root.locator(".gl-inspector").is_hidden()
    notebook.screenshot("live")
    notebook.dark_theme()
    notebook.screenshot("live-dark")
    notebook.dark_theme(False)
    root.locator(".gl-canvas").focus()
    notebook.page.keyboard.press(",")
    expect(said).to_contain_text("live at")
    notebook.run_cell(4)
    notebook.page.keyboard.press("Escape")
    assert "array(" in notebook.text(4)
    root.get_by_label("Step of the run").press("End")
    expect(said).to_contain_text("The run is over")


def test_a_student_predicts_each_step_and_sees_the_score(browser: Browser, tmp_path: Path) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        doubled, squared = gc.add(x, x, name="doubled"), gc.square(x, name="squared")
        total = gc.add(doubled, squared, name="total")
    with gc.Session(graph) as session:
        session.run(total, {x: [1.0, 3.0]}, gc.RunOptions(values=True))
    page = browser.new_page(viewport={"width": 1100, "height": 800}, color_scheme="light", reduced_motion="reduce")
    page.goto(widgets.save(graph, tmp_path / "predict.html").as_uri())
    page.locator("[data-node-id]").first.wait_for()
    page.locator(".gl-canvas").focus()
    page.keyboard.press("s")
    page.get_by_label("Predict first").check()
    step = page.get_by_role("button", name="Step", exact=True)
    verdict, score = page.locator(".gl-verdict"), page.locator(".gl-score")
    step.click()
    expect(verdict).to_have_text("Say first which node runs next")
    expect(page.locator(".gl-step-said")).to_contain_text("Step 0 of")
    page.locator('[data-node-id="x"]').click()
    expect(page.get_by_label("The node that runs next")).to_have_value("x")
    page.get_by_label("Its value").fill("[1, 3]")
    page.keyboard.press("Enter")
    expect(score).to_have_text("right 2, wrong 0")
    page.get_by_label("The node that runs next").fill("total")
    page.keyboard.press("Enter")
    expect(verdict).to_contain_text("total cannot run yet")
    expect(score).to_have_text("right 2, wrong 1")
    page.screenshot(path=str(tmp_path / "light.png"))
    done = page.locator(".gl-step-said").inner_text()
    other = "squared" if "doubled ran" in done else "doubled"
    page.get_by_label("The node that runs next").fill(other)
    page.get_by_label("Its value").fill("1, 9" if other == "squared" else "2, 6")
    step.click()
    page.get_by_label("The node that runs next").fill("total")
    page.get_by_label("Its value").fill("[3, 14]")
    step.click()
    expect(verdict).to_contain_text("Right: total ran, but its value is float [2] [ 3. 15.]".replace("[ ", "["))
    expect(score).to_have_text("right 5, wrong 2")
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=str(tmp_path / "dark.png"))
    page.close()
