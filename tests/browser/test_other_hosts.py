"""Hosts beside JupyterLab, imitated.

Their module is a `data:` address, their buffers are of another frame, they have no manager, they lose messages, or they are below a path.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import graphcore as gc
from tests.browser.conftest import Lab, Window
from tests.browser.server import LabServer
from tests.browser.test_saved_notebook import BUILD, START, explore, open_without_kernel, saved
from widgets.live.graph_view import GraphView
from widgets.shown_once import ANSWER_SECONDS

# A host: it imports the module from a `data:` address, as hosts without files do, and hands it a model with nothing but traits and messages.
# Its frame has a realm of its own: buffers made there are no instances of this page's classes.
HOST = """async ({ module, traits, asViews }) => {
  const listeners = new Set();
  const frame = document.createElement('iframe');
  frame.hidden = true;
  document.body.append(frame);
  const realm = frame.contentWindow;
  const bytesOf = (base64) => {
    const text = atob(base64);
    const buffer = new realm.ArrayBuffer(text.length);
    const bytes = new realm.Uint8Array(buffer);
    for (let place = 0; place < text.length; place++) bytes[place] = text.charCodeAt(place);
    return asViews ? new realm.DataView(buffer) : buffer;
  };
  const deliver = (messages) => {
    for (const [content, buffers] of messages) for (const listen of [...listeners]) listen(content, buffers.map(bytesOf));
  };
  const model = {
    get: (name) => traits[name],
    on: (event, callback) => { if (event === 'msg:custom') listeners.add(callback); },
    off: (event, callback) => { if (event === 'msg:custom') listeners.delete(callback); },
    send: (content) => void window.toKernel(content).then(deliver),
  };
  setInterval(() => void window.toKernel(null).then(deliver), 100);
  const { default: widget } = await import(`data:text/javascript;base64,${module}`);
  const el = document.createElement('div');
  document.body.append(el);
  await widget.initialize?.({ model });
  widget.render({ model, el });
}"""
# The page's messages to the kernel are lost, as where a proxy or a front end drops those of widgets.
LOSE = """() => {
  const send = WebSocket.prototype.send;
  window.losesNoMore = () => { WebSocket.prototype.send = send; };
  WebSocket.prototype.send = function (data) {
    const text = typeof data === 'string' ? data : new TextDecoder().decode(data);
    if (!text.includes('comm_msg')) send.call(this, data);
  };
}"""
CELLS = [
    "import graphcore as gc",
    'x = gc.placeholder(gc.float32, [2], name="x")\ny = gc.tanh(x, name="y")\ngc.show(gc.get_default_graph(), title="mine")',
]


def small_graph() -> gc.Graph:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 4], name="x")
        with gc.name_scope("layer"):
            gc.tanh(x @ gc.ones([4, 3], name="W"), name="y")
    return graph


class Kernel:
    """The kernel's end of a view in a page without Jupyter."""

    def __init__(self, view: GraphView) -> None:
        self.view = view
        self._messages: list[tuple[Any, list[str]]] = []
        view.send = self._keep

    def _keep(self, content: Any, buffers: list[bytes] | None = None) -> None:
        self._messages.append((content, [base64.b64encode(buffer).decode() for buffer in buffers or []]))

    def exchange(self, content: Any) -> list[tuple[Any, list[str]]]:
        """Take a message of the page, if there is one, and give those for it."""
        if content is not None:
            self.view._handle_custom_msg(content, [])
        messages, self._messages = self._messages, []
        return messages


def hosted(page: Page, view: GraphView, *, as_views: bool) -> Kernel:
    """The view in a page that is a host."""
    kernel = Kernel(view)
    page.goto("about:blank")
    page.expose_function("toKernel", kernel.exchange)
    traits = {name: getattr(view, name) for name in ("title", "home", "kind", "panel", "language")}
    module = base64.b64encode(str(view._esm).encode()).decode()
    page.evaluate(HOST, {"module": module, "traits": traits, "asViews": as_views})
    return kernel


@pytest.mark.parametrize("as_views", [True, False], ids=["views", "buffers"])
def test_a_host_with_data_modules_and_buffers_of_another_frame_shows_and_answers(browser: Browser, as_views: bool, tmp_path: Path) -> None:
    view = GraphView(small_graph(), title="hosted")
    page = browser.new_page(viewport={"width": 1000, "height": 700}, reduced_motion="reduce")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    hosted(page, view, as_views=as_views)
    page.locator('[data-node-id="x"]').click()
    expect(page.get_by_label("Inspector", exact=True)).to_contain_text("float [?,4]")
    page.locator(".gl-canvas").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    with view.graph.as_default():
        gc.negative(view.graph["layer/y:0"], name="later")
    view.refresh()  # a later cell
    page.locator('[data-node-id="later"]').wait_for()
    page.screenshot(path=str(tmp_path / "host.png"))
    assert errors == []
    page.close()


def test_a_picture_whose_widget_does_not_answer_becomes_a_page_in_the_output(lab: Lab) -> None:
    notebook = lab.open_cells(CELLS)
    notebook.run_cell(0)
    notebook.page.evaluate(LOSE)
    try:
        notebook.run_cell(1)
        frame = notebook.cell(1).frame_locator("iframe[title=mine]")
        frame.locator('[data-node-id="y"]').click()
        expect(frame.get_by_label("Inspector", exact=True)).to_contain_text("float [2]")
        notebook.screenshot("fallback")
    finally:
        notebook.page.evaluate("() => window.losesNoMore()")


@pytest.mark.slow
def test_views_and_saved_pictures_work_over_a_sub_path_as_on_a_jupyterhub(browser: Browser, tmp_path: Path) -> None:
    server = LabServer(tmp_path, base="/user/ada")
    server.start()
    window = Window(server, browser, motion="reduce")
    try:
        lab = Lab(server, window, "sub-path", window.traffic)
        notebook = saved(lab, [START, BUILD])
        explore(open_without_kernel(lab, notebook))
        window.traffic.assert_clean()
    finally:
        window.close()
        server.stop()


@pytest.mark.slow
def test_where_the_widget_answers_only_the_live_picture_is_in_sight(lab: Lab) -> None:
    notebook = lab.open_cells(CELLS)
    notebook.run_all()
    output = notebook.cell(1)
    output.locator('[data-node-id="y"]').first.wait_for()
    notebook.page.wait_for_timeout(1000 * ANSWER_SECONDS + 500)
    expect(output.locator("iframe[title=mine]")).to_have_count(0)
    expect(output.locator('[data-node-id="y"]:visible')).to_have_count(1)
    expect(output.locator(".graphloupe-still img:visible")).to_have_count(0)
    notebook.screenshot("shown")
