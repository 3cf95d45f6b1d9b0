"""Notebooks on the site: saved pictures get a live page each."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import Any, Final

import msgspec
import nbformat

from widgets.language import set_language
from widgets.messages import SceneMessage
from widgets.render.html import to_page
from widgets.render.saved_picture import SCENE_MIME_TYPE

NO_OUTPUTS: Final = "*This notebook is saved without outputs: open it in JupyterLab with `make lab`, and run it.*"


def write_course(source: Path, extra: Path) -> None:
    """Make the notebooks in `source` fit for the site, and write their pictures' pages below `extra`."""
    for path in sorted(source.rglob("*.ipynb")):
        notebook: Any = nbformat.read(path, as_version=4)
        folder = extra / path.relative_to(source).parent / "pictures"
        with_pages(notebook, folder, path.stem)
        if not any(cell.get("outputs") for cell in notebook.cells):
            notebook.cells.insert(1, nbformat.v4.new_markdown_cell(NO_OUTPUTS))
        # The site runs no kernel, and colours the code of cells by this name.
        notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
        nbformat.write(notebook, path)
    set_language("en")  # for the pages that follow


def with_pages(notebook: Any, folder: Path, stem: str) -> None:
    """Write a page for each saved picture of a notebook, and a link to it below the still one."""
    number = 0
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            picture = output.get("data", {}).pop(SCENE_MIME_TYPE, None)
            if picture is None or not picture.get("graph_gzip_base64"):
                continue
            number += 1
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{stem}-{number}.html"
            message = msgspec.convert(picture["message"], SceneMessage)
            set_language(picture.get("language") or "en")
            page = to_page(message, data=base64.b64decode(picture["graph_gzip_base64"]))
            (folder / name).write_text(page, encoding="utf-8")
            output["data"]["text/html"] += f'<p><a href="{escape(f"pictures/{name}", quote=True)}">Open this picture</a></p>'
