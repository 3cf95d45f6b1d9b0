"""The policy of a standalone page: only its own script and engines run, and nothing is fetched."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import graphcore as gc
import widgets

LISTEN = """window.violations = [];
document.addEventListener('securitypolicyviolation', ({violatedDirective, blockedURI}) => violations.push(`${violatedDirective} ${blockedURI}`));"""
INJECT = """async () => {
  window.ran = [];
  await new Promise((resolve) => setTimeout(resolve)); // what the debugger itself evaluates may evaluate texts
  const add = (html) => document.body.append(document.createRange().createContextualFragment(html));
  add("<script>ran.push('script element')</script>");
  add("<img src='data:,' onerror=\\"ran.push('handler')\\">");
  add("<iframe src=\\"javascript:parent.ran.push('address')\\"></iframe>");
  add("<script src='data:text/javascript,ran.push(1)'></script>");
  add("<link rel=stylesheet href='http://127.0.0.1:9/x.css'>");
  add("<img src='http://127.0.0.1:9/x.png'>");
  add("<base href='http://127.0.0.1:9/'>");
  for (const run of [() => eval("ran.push('eval')"), () => new Function("ran.push('Function')")(), () => fetch('http://127.0.0.1:9/'),
                     () => fetch('data:,x'), () => fetch(URL.createObjectURL(new Blob(['x'])))])
    try { await run(); ran.push(String(run)); } catch {}
  await new Promise((resolve) => setTimeout(resolve, 300));
  return [ran, document.baseURI === location.href];
}"""


@pytest.fixture
def page(browser: Browser) -> Page:
    page = browser.new_page()
    page.add_init_script(LISTEN)
    return page


def saved_page(tmp_path: Path) -> Path:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 4], name="x")
        with gc.name_scope("layer"):
            for _ in range(60):
                x = gc.tanh(x)
    widgets.save(graph, tmp_path / "page.html")
    return tmp_path / "page.html"


def test_a_page_works_whole_under_its_policy(page: Page, tmp_path: Path) -> None:
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(saved_page(tmp_path).as_uri())
    page.locator("[data-node-id]").first.wait_for(state="attached")
    page.keyboard.press("?")
    licences = page.get_by_text("Licences of the parts of this page")
    licences.click()
    expect(page.locator(".gl-licences pre")).to_contain_text("Eclipse Public License - v 2.0")
    page.keyboard.press("Escape")
    page.locator('[data-renderer-choice="mermaid"]').click()
    page.locator(".graphloupe[data-renderer=mermaid][data-busy=false]").wait_for()
    assert page.evaluate("violations") == []
    assert messages == []
    page.close()


def test_nothing_that_is_put_into_a_page_runs_or_is_fetched(page: Page, tmp_path: Path) -> None:
    finished: list[str] = []
    page.on("requestfinished", lambda request: finished.append(request.url))
    page.goto(saved_page(tmp_path).as_uri())
    page.locator("[data-node-id]").first.wait_for(state="attached")
    assert page.evaluate(INJECT) == [[], True]
    assert len(page.evaluate("violations")) >= 8
    assert [url for url in finished if url.startswith("http")] == []
    page.close()


def bomb(_: bytes) -> bytes:
    found = bytearray(gzip.compress(b"[" * 30_000_000))
    found[-4:] = (1000).to_bytes(4, "little")
    return bytes(found)


def without_its_format(graph: bytes) -> bytes:
    return gzip.compress(gzip.decompress(graph).partition(b"\n")[2])


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (bomb, "more than the 1000 bytes that it says"),
        (without_its_format, "saved by another version of Graphloupe: run the notebook again"),
    ],
)
def test_what_is_no_graph_of_this_version_is_refused_and_the_picture_stays(
    page: Page, tmp_path: Path, changed: Callable[[bytes], bytes], reason: str
) -> None:
    path = saved_page(tmp_path)
    before, graph, after = re.split(r'(?<="graph_gzip_base64":")([^"]*)', path.read_text(encoding="utf-8"))
    graph = base64.b64encode(changed(base64.b64decode(graph))).decode()
    path.write_text(before + graph + after, encoding="utf-8")
    page.goto(path.as_uri())
    page.locator("[data-node-id]").first.wait_for(state="attached")
    page.keyboard.press("/")
    page.keyboard.type("Tanh")
    expect(page.locator(".graphloupe")).to_contain_text(reason)
    page.close()
