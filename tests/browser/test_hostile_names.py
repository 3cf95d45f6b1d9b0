"""Sixty hostile names are only text in views, pages, saved pictures, PNG and PDF."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.conftest import STARTED, Lab
from tests.browser.test_saved_notebook import choose_no_kernel
from tests.support.hostile_names import HOSTILE_NAMES
from tests.support.hostile_view import DEPTH, hostile_scene
from widgets.messages import SceneMessage
from widgets.render import to_page
from widgets.render.saved_picture import SavedPicture, to_saved_bundle

ACTIVE = "script, iframe, object, embed, link, base, meta, form, a[href], img, image, foreignObject, animate, use"


def hostile_picture() -> SavedPicture:
    """A saved picture of hostile names."""
    return SavedPicture(message=SceneMessage(scene=hostile_scene()))


def missing(place: Locator) -> list[str]:
    """The names that are not in the text of these elements; names of control characters are left out."""
    text = "\n".join(place.evaluate_all("all => all.map(({textContent}) => textContent)"))
    return [name for name in HOSTILE_NAMES if name.isprintable() and name not in text]


def check_picture(view: Locator) -> None:
    """Check tooltips, outline, breadcrumbs, minimap, lenses, legend and status line of a view."""
    view.locator("[data-node-id]").first.wait_for(state="attached")
    assert view.locator("[data-node-id]").count() == 60
    assert missing(view.locator("[data-node-id] > title")) == []
    assert missing(view.locator(".gl-status")) == []
    view.locator(".gl-lenses").select_option("own")
    assert HOSTILE_NAMES[0] in view.locator(".gl-lenses option").all_text_contents()
    assert missing(view.locator(".gl-legend")) == []
    for _ in range(6):
        view.get_by_role("button", name="Zoom in").click()
    view.locator(".gl-minimap").wait_for(state="visible")
    view.get_by_role("button", name="Outline: the graph as a list").click()
    assert missing(view.locator('[role="treeitem"]')) == []
    ids = view.locator('[role="treeitem"]').evaluate_all("rows => rows.map(({dataset}) => dataset.id)")
    crumbs = view.locator(".gl-way .gl-crumb")
    seen = []
    for last in range(DEPTH - 1, 60, DEPTH):
        view.locator('[role="treeitem"]').nth(next(at for at, box in enumerate(ids) if box.startswith(f"n{last}"))).click()
        expect(crumbs).to_have_count(DEPTH + 2)
        seen += crumbs.all_text_contents()
    assert [name for name in HOSTILE_NAMES if name.isprintable() and name and name not in seen] == []
    assert view.locator(ACTIVE).count() == 0


def check_search(view: Locator) -> None:
    """Check the results of a search that finds everything, and the boxes that it highlights."""
    view.locator(".gl-search-field").fill("a")
    view.locator('.gl-hits [role="option"]').first.wait_for()
    assert view.locator(ACTIVE).count() == 0
    view.locator(".gl-hit-note button", has_text="Highlight all").click()
    view.locator(".gl-node.gl-off").first.wait_for(state="attached")


@pytest.mark.slow
def test_sixty_hostile_names_are_text_everywhere_in_a_live_view(lab: Lab) -> None:
    notebook = lab.open_cells(["from tests.support.hostile_view import open_hostile_view\nview = open_hostile_view()"])
    page = notebook.page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    notebook.run_all()
    view = page.locator(".graphloupe")
    check_picture(view)
    assert HOSTILE_NAMES[0] in page.locator(".lm-TabBar-tabLabel").all_text_contents()
    assert page.locator(".lm-TabBar-tabLabel *").count() == 0
    assert missing(view.locator(".gl-inspector")) == []
    view.locator(".gl-search-field").fill("anything")
    view.locator('.gl-hits [role="option"]').nth(59).wait_for(state="attached")
    assert missing(view.locator(".gl-hits")) == []
    check_search(view)
    assert missing(view.locator(".gl-status")) == []
    assert dialogs == []
    notebook.screenshot("live")


def test_sixty_hostile_names_are_text_everywhere_in_a_standalone_page(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(to_page(SceneMessage(scene=hostile_scene())), "utf-8")
    page = browser.new_page()
    try:
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        page.goto(file.as_uri())
        check_picture(page.locator(".graphloupe"))
        check_search(page.locator(".graphloupe"))
        assert dialogs == []
    finally:
        page.close()


def write(lab: Lab) -> str:
    """A notebook with the picture that Jupyter has not seen, and so does not trust."""
    path = lab.write_cells(["1 + 1"])
    file = lab.server.work / path
    notebook = nbformat.read(file, as_version=4)
    notebook.metadata.clear()
    notebook.cells[0]["outputs"] = [nbformat.v4.new_output("display_data", to_saved_bundle(hostile_picture()))]
    nbformat.write(notebook, file)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("application", ["lab", "notebook7"])
def test_sixty_hostile_names_are_text_in_a_saved_picture_its_png_and_its_pdf(lab: Lab, application: str) -> None:
    assert len(set(HOSTILE_NAMES)) == 60
    path = write(lab)
    notebook = lab.new_page(path)
    page = notebook.page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    # Without a printer the frame that would be printed stays.
    page.add_init_script("window.print = () => {}")
    if application == "lab":
        page.goto(f"{lab.server.url}/lab/workspaces/hostile?token={lab.server.token}")
        page.wait_for_function(STARTED)
        notebook.command("docmanager:open", {"path": path, "factory": "Notebook"})
    else:
        page.goto(f"{lab.server.url}/notebooks/{path}?token={lab.server.token}")
    choose_no_kernel(notebook)
    view = page.locator(".graphloupe")
    view.locator("[data-node-id]").first.wait_for(state="attached")
    assert view.locator("[data-node-id]").count() == 60
    for lens in ("own", "structure"):
        view.locator(".gl-lenses").select_option(lens)
        assert view.locator(ACTIVE).count() == 0
    view.locator(".gl-search-field").fill("alert")
    view.locator('.gl-hits [role="option"]').first.wait_for()
    assert view.locator(ACTIVE).count() == 0
    view.locator(".gl-search-field").fill("")

    view.get_by_role("button", name="Export the picture").click()
    with page.expect_download() as download:
        view.locator('[data-export="png"]').click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    view.get_by_role("button", name="Export the picture").click()
    view.locator('[data-export="pdf"]').click()
    frame = page.frame_locator(".gl-print")
    frame.locator("svg text").first.wait_for(state="attached")
    assert frame.locator(ACTIVE).count() == 0
    assert "alert(1)" in "".join(frame.locator("svg text").all_text_contents())

    view.locator('[data-renderer-choice="mermaid"]').click()
    page.locator(".graphloupe[data-renderer='mermaid'][data-busy='false']").wait_for()
    assert view.locator("[data-node-id]").count() == 60
    assert view.locator(ACTIVE).count() == 0
    assert dialogs == []
    notebook.screenshot(application)
