"""Sixty hostile names are only text in the MIME renderer, its PNG and its PDF."""

from __future__ import annotations

from itertools import pairwise

import nbformat
import pytest

from tests.browser.conftest import STARTED, Lab
from tests.browser.test_saved_notebook import choose_no_kernel
from tests.support.hostile_names import HOSTILE_NAMES
from widgets.messages import SceneMessage
from widgets.render.saved_picture import SavedPicture, to_saved_bundle
from widgets.scene import Scene, SceneEdge, SceneGroup, SceneNode
from widgets.scene.types import LegendEntry, Lens, LensMark

ACTIVE = "script, iframe, object, embed, link, base, meta, form, a[href], img, image, foreignObject, animate, use"


def hostile_picture() -> SavedPicture:
    """Every name as a node, a frame, an edge, an error, and a mark with its row in the legend."""
    names = HOSTILE_NAMES
    nodes = [
        SceneNode(
            id=f"{at}{name}", label=name, kind="op", op=name, detail=name, cell=name, error=name, state="error", group="g" + name,
            lenses={"own": LensMark(text=name, tone=1)},
        )
        for at, name in enumerate(names)
    ]  # fmt: skip
    edges = [SceneEdge(id=f"e{at}", source=a.id, target=b.id, label=a.label, error=b.label) for at, (a, b) in enumerate(pairwise(nodes))]
    legend = [LegendEntry(tone=1, text=name) for name in names]
    lenses = [Lens(name="structure", title="Structure"), Lens(name="own", title=names[0], legend=legend, note=names[1])]
    groups = [SceneGroup(id="g" + name, label=name) for name in names]
    scene = Scene(title=names[0], nodes=nodes, edges=edges, groups=groups, lenses=lenses, summary=names[1])
    return SavedPicture(message=SceneMessage(scene=scene, mermaid="flowchart TB\n n0 --> n1\n click n0 href 'javascript:alert(1)'"))


def write(lab: Lab) -> str:
    """A notebook with the picture that Jupyter has not seen, and so does not trust."""
    path = lab.write_cells(["1 + 1"])
    file = lab.server.work / path
    notebook = nbformat.read(file, as_version=4)
    notebook.metadata.clear()
    notebook.cells[0]["outputs"] = [nbformat.v4.new_output("display_data", to_saved_bundle(hostile_picture()))]
    nbformat.write(notebook, file)
    return path


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
        page.evaluate("async () => { await window.jupyterapp.restored; }")
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
