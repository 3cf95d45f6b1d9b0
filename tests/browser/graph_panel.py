"""The live view of a graph in a page, operated like a user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

DRAWN_MS = 60_000
READ_EDGES = """root => [...root.querySelectorAll('[data-edge-id]')].map(edge => ({
  text: edge.getAttribute('aria-label') ?? '', error: edge.getAttribute('data-error') ?? '', role: edge.getAttribute('data-role') ?? '',
}))"""

# Ends when no picture has moved for some frames.
STILL = """() => new Promise(done => {
  let last = '', unmoved = 0;
  const look = () => {
    const now = JSON.stringify([...document.querySelectorAll('.gl-world')].map(drawing => drawing.getBoundingClientRect()));
    unmoved = now === last ? unmoved + 1 : 0;
    last = now;
    if (unmoved > 5) done(); else requestAnimationFrame(look);
  };
  look();
})"""


def wait_still(page: Page) -> None:
    """Wait until the pictures of the page have come to rest."""
    page.evaluate(STILL)


@dataclass(frozen=True)
class Drawn:
    """A picture on the screen: its number, and its delay after the cell's end."""

    revision: int
    delay_ms: float


@dataclass
class GraphPanel:
    """The first view in `page` that fits the selector."""

    page: Page
    selector: str = ".graphloupe"

    @property
    def root(self) -> Locator:
        """The view's own element."""
        return self.page.locator(self.selector).first

    # ---- waiting ----------------------------------------------------------------------------------------------------

    def wait_drawn(self, after: int = -1) -> Drawn:
        """Wait for a stable picture with a number above `after`."""
        self.page.wait_for_function(
            "([selector, after]) => { const root = document.querySelector(selector);"
            " return root && root.dataset.busy === 'false' && Number(root.dataset.revision ?? -1) > after; }",
            arg=[self.selector, after],
            timeout=DRAWN_MS,
        )
        return self.drawn()

    def drawn(self) -> Drawn:
        """The picture that is there now."""
        found: dict[str, str] = self.root.evaluate("root => ({...root.dataset})")
        return Drawn(int(found.get("revision", -1)), float(found.get("delayMs", 0)))

    # ---- looking ----------------------------------------------------------------------------------------------------

    def names(self, role: str = "") -> list[str]:
        """The names of the boxes, optionally of one role."""
        chosen = f'[data-role="{role}"]' if role else ""
        found: list[str] = self.root.locator(f"[data-node-id]{chosen}").evaluate_all("boxes => boxes.map(box => box.dataset.name)")
        return found

    def box(self, name: str) -> Locator:
        """The box of the node or scope called `name`."""
        return self.root.locator(f'[data-node-id][data-name="{name}"]').first

    def edges(self) -> list[dict[str, str]]:
        """Every edge: its label (`text`), error (`error`) and role."""
        found: list[dict[str, str]] = self.root.evaluate(READ_EDGES)
        return found

    def errors(self) -> list[str]:
        """The errors on edges."""
        return [edge["error"] for edge in self.edges() if edge["error"]]

    def inspector(self, about: str = "") -> str:
        """The inspector's text with the kernel's explanations, once it mentions `about`."""
        pane = self.root.locator(".gl-inspector:not([aria-busy='true'])").filter(has_text=about)
        pane.wait_for(state="visible")
        return str(pane.inner_text())

    def status(self) -> str:
        """The status line."""
        return str(self.root.locator(".gl-status").inner_text())

    # ---- using ------------------------------------------------------------------------------------------------------

    def inspect(self, name: str, says: str) -> str:
        """Click a box and wait until the inspector shows it (contains `says`); returns its text."""
        self.box(name).click()
        self.root.locator(".gl-inspector").get_by_text(re.compile(re.escape(says))).first.wait_for()
        return self.inspector()

    def inspect_line(self, words: str, says: str) -> str:
        """Click an edge label and wait until the inspector contains `says`; returns its text."""
        box = self.root.locator("[data-edge-id] .gl-edge-label").filter(has_text=words).first.bounding_box()
        assert box is not None
        self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.root.locator(".gl-inspector").get_by_text(re.compile(re.escape(says))).first.wait_for()
        return self.inspector()

    def open(self, box_id: str) -> Drawn:
        """Open a closed scope by its +."""
        before = self.drawn().revision
        self.root.locator(f'[data-node-id="{box_id}"] [data-action="expand"]').click()
        return self.wait_drawn(before)

    def press(self, label: str) -> None:
        """Press the button with this label."""
        self.root.get_by_role("button", name=label, exact=True).click()

    def choose_renderer(self, name: str) -> None:
        """Switch to `graphviz` or `mermaid` and wait until it has drawn."""
        self.root.locator(f'[data-renderer-choice="{name}"]').click()
        self.page.wait_for_function(
            "([selector, name]) => { const root = document.querySelector(selector);"
            " return root.dataset.renderer === name && root.dataset.busy === 'false'; }",
            arg=[self.selector, name],
            timeout=DRAWN_MS,
        )

    def find(self, query: str) -> list[str]:
        """Type into the search field; returns the names of the hits."""
        field = self.root.locator(".gl-search-field")
        field.fill(query)
        self.root.locator(f'.gl-hits [role="option"][data-name*="{query}"]').first.wait_for()
        found: list[str] = self.root.locator(".gl-hits [data-name]").evaluate_all("hits => hits.map(hit => hit.dataset.name)")
        return found

    def export(self, kind: str) -> str:
        """Download the picture as `svg`, `dot` or `mermaid`; returns the file's text."""
        self.root.get_by_role("button", name=re.compile("^Export")).click()
        with self.page.expect_download() as download:
            self.root.locator(f'[data-export="{kind}"]').click()
        return Path(download.value.path()).read_text(encoding="utf-8")

    def camera(self) -> Any:
        """The position of the picture in its window; changes with every pan and zoom."""
        return self.root.locator(".gl-world").first.evaluate("drawing => JSON.stringify(drawing.getBoundingClientRect())")
