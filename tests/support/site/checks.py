"""Checks of the built site: links lead somewhere, and pages load nothing from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

LOADING: Final = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Links(HTMLParser):
    """The links, loaded files and anchors of a page, and its pictures without a text."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.untold: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if LOADING.get(tag) in values:
            self.loaded.append(values[LOADING[tag]])
        if tag == "img" and not values.get("alt"):
            self.untold.append(values.get("src", "")[:60])


def read(page: Path) -> Links:
    """The links of a page."""
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def faults(folder: Path) -> list[str]:
    """The faults of all pages below `folder`, as lines."""
    pages = {page: read(page) for page in sorted(folder.rglob("*.html"))}
    return [f"{page.relative_to(folder)}: {fault}" for page, links in pages.items() for fault in page_faults(page, links, pages)]


def page_faults(page: Path, links: Links, pages: dict[Path, Links]) -> list[str]:
    """The faults of one page."""
    lines = [f"loads {address} from elsewhere" for address in links.loaded if urlsplit(address).netloc]
    lines += [f"picture without a text: {source}" for source in links.untold]
    for address in dict.fromkeys([*links.links, *links.loaded]):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if target.is_dir():
            target /= "index.html"
        if not target.is_file():
            lines.append(f"leads nowhere: {address}")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            lines.append(f"no such place: {address}")
    return lines
