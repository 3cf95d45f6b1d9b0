"""The displays of mistakes, as a notebook and a terminal show them.

`python -m tests.golden.mistakes.displays` writes the golden files anew.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from graphcore.graph import reset_default_graph
from tests.golden.mistakes.mistakes import MISTAKES, Mistake
from tests.kernelext.conftest import NotebookShell

FOLDER: Final = Path(__file__).parent
TEXT: Final = FOLDER / "mistakes.txt"
HTML: Final = FOLDER / "mistakes.html"
_LOAD: Final = "%load_ext kernelext\n%graph quiet"
_BEGIN: Final = "import numpy as np\nimport graphcore as gc"
_KEPT: Final = ("In", "Out", "exit", "quit", "open", "get_ipython")
_IMAGE: Final = re.compile(r'src="data:image/svg\+xml;base64,[^"]*"')
_CODE_OF_PACKAGES: Final = re.compile(r"^(?:graphcore|kernelext|numpy|IPython)/.*\n(?:    .*\n)?", re.MULTILINE)
_LINE_OF_LIBRARY: Final = re.compile(r"(\.py, line )\d+")
_COLOR: Final = re.compile(r"\x1b\[[0-9;]*m")
_FOLDER: Final = re.compile(r"/[\w/.-]*tmp[\w.-]*/")


class Display(NamedTuple):
    """The display of one mistake: HTML with its picture, and text without colors."""

    mistake: Mistake
    html: str
    text: str


def displays(mistakes: tuple[Mistake, ...] = MISTAKES) -> Iterator[Display]:
    """Make the mistakes in an IPython shell with the extension, each in a notebook of its own."""
    shown: list[dict[str, Any]] = []
    with _shell() as shell:
        shell.kernel = object()
        shell.display_pub.publish = lambda data, **_: shown.append(data)  # type: ignore[method-assign]  # keeps the outputs
        for mistake in mistakes:
            shown.clear()
            reset_default_graph()
            shell.execution_count = 1
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                _run(shell, mistake)
            bundle: dict[str, str] = next((data for data in reversed(shown) if "graphloupe-error" in data.get("text/html", "")), {})
            html, text = (_FOLDER.sub("FOLDER/", bundle.get(kind, "")) for kind in ("text/html", "text/plain"))
            yield Display(mistake, html, _COLOR.sub("", text))


def without_drawing(html: str) -> str:
    """HTML without the drawing, without frames of packages and without line numbers of Python's library."""
    return _LINE_OF_LIBRARY.sub(r"\1...", _CODE_OF_PACKAGES.sub("", _IMAGE.sub('src="..."', html)))


def golden(made: Iterable[Display]) -> tuple[str, str]:
    """The content of the golden files: all displays as text and as HTML, the latter without drawings."""
    all_made = [*made]
    texts = [f"== {each.mistake.title}\n\n{_indented(each.mistake.cells[-1])}\n\n{each.text}\n" for each in all_made]
    pages = [f"<h2>{each.mistake.title}</h2>\n{without_drawing(each.html)}\n" for each in all_made]
    return "\n".join(texts), "\n".join(pages)


def _indented(code: str) -> str:
    return "\n".join([f"    {line}" for line in code.splitlines()])


def _run(shell: NotebookShell, mistake: Mistake) -> None:
    del shell.user_ns["In"][1:]
    for name in [name for name in shell.user_ns if not name.startswith("_") and name not in _KEPT]:
        del shell.user_ns[name]
    shell.run(_BEGIN, "begin")
    for number, written in enumerate(mistake.cells):
        cell, code = str(number), written
        if written.startswith("# again"):
            head, _, code = written.partition("\n")
            cell = head.split()[2]
        gone = [str(each) for each in mistake.deleted] if mistake.deleted and number > max(mistake.deleted) else []
        fails = number == len(mistake.cells) - 1 or "# fails" in written
        if shell.run(code, cell, deletedCells=gone).success is fails:
            raise AssertionError(f"{mistake.title}: cell {number} was required to {'fail' if fails else 'run'}")
    for thread in threading.enumerate():
        if thread.name == "graphloupe-stills":
            thread.join()


@contextmanager
def _shell() -> Iterator[NotebookShell]:
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    shell = NotebookShell.instance(config=config)
    shell.request = {}
    shell.colors = "nocolor"
    reset_default_graph()
    shell.run(_LOAD, "load")
    try:
        yield shell
    finally:
        shell.run("%unload_ext kernelext", "unload")
        close: Any = shell.atexit_operations
        atexit.unregister(close)
        close()
        NotebookShell.clear_instance()
        reset_default_graph()


if __name__ == "__main__":
    texts, pages = golden(displays())
    TEXT.write_text(texts, encoding="utf-8")
    HTML.write_text(pages, encoding="utf-8")
