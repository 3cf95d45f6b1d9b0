"""Pictures and panes in Chinese: a page, and a live view that changes its language."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import graphcore as gc
import widgets
from tests.browser.conftest import Lab
from tests.browser.graph_panel import GraphPanel
from widgets.language import set_language

CELLS = [
    "%load_ext kernelext\nimport graphcore as gc\n%graph",
    'x = gc.placeholder(gc.float32, [2], name="Inputs")\ny = gc.tanh(x, name="y")',
    "%graph language zh",
    "%graph language en",
    "%graph language fr",
]


def test_a_page_in_chinese_has_chinese_panes_and_the_names_of_the_graph(browser: Browser, tmp_path: Path) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [2], name="Inputs")
        with gc.name_scope("layer"):
            y = gc.tanh(x * 2.0, name="y")
        gc.gradients(y, [x])
    set_language("zh")
    try:
        file = widgets.save(graph, tmp_path / "page.html")
    finally:
        set_language("en")
    page = browser.new_page(viewport={"width": 1200, "height": 800}, color_scheme="light", reduced_motion="reduce")
    page.goto(file.as_uri())
    page.locator('[data-node-id="Inputs"]').click()
    inspector = page.get_by_label("检查器", exact=True)
    expect(inspector.get_by_role("heading", name="输出", exact=True)).to_be_visible()
    expect(inspector).to_contain_text("Inputs")
    expect(page.get_by_label("透镜", exact=True).locator("option").first).to_have_text("结构")
    expect(page.locator(".gl-legend summary")).to_have_text("图例")
    page.get_by_role("button", name="键盘快捷键").click()
    expect(page.get_by_role("dialog", name="键盘快捷键")).to_contain_text("沿连线移动")
    page.keyboard.press("Escape")
    page.get_by_label("透镜", exact=True).select_option("gradients")
    expect(page.locator(".gl-legend")).to_contain_text("未求导")
    page.screenshot(path=str(tmp_path / "light.png"))
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=str(tmp_path / "dark.png"))
    page.close()


@pytest.mark.slow
def test_a_live_view_changes_its_language(lab: Lab) -> None:
    notebook = lab.open_cells(CELLS)
    for cell in range(2):
        notebook.run_cell(cell)
    panel = GraphPanel(notebook.page)
    panel.box("Inputs").wait_for()
    expect(panel.root.locator(".gl-legend summary")).to_have_text("Legend")
    notebook.run_cell(2)
    expect(panel.root.locator(".gl-legend summary")).to_have_text("图例")
    expect(panel.root.locator(".gl-status")).to_contain_text("2 个节点,1 条边")
    panel.box("Inputs").wait_for()
    notebook.screenshot("chinese")
    notebook.run_cell(3)
    expect(panel.root.locator(".gl-legend summary")).to_have_text("Legend")
    notebook.run_cell(4)
    assert "language needs one of en, zh, got 'fr'" in notebook.text(4)
