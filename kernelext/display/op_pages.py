"""The page of an op: what it does, formulas of shapes, a picture and an example, as HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from IPython.core.error import TryNext
from IPython.core.interactiveshell import InteractiveShell

from graphcore.api import ops
from graphcore.api.op_help import Use, example_lines, op_of, shape_lines, uses
from graphcore.api.ops import snake_case
from graphcore.definitions import OpDef
from graphcore.graph import Graph
from graphcore.support.shown import html_text
from kernelext.guard import Guard

HOOK: Final = "show_in_pager"
MIME: Final = "application/vnd.graphloupe.page+html"
"""The page among the texts that IPython makes for `?`: it passes HTML of its own on to no pager."""
_MOST_RESULTS: Final = 4
_PRE: Final = "style='font-family:monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin-bottom:1em'"


class OpPages:
    """Pages for `gc.ops.NAME?` in notebooks; a terminal shows the text.

    Args:
        shell: the IPython shell.
        guard: keeps failures away from the user: the text is shown then.
        picture: returns the HTML of a static picture of a graph, None if there is none.
    """

    def __init__(self, shell: InteractiveShell, guard: Guard, picture: Callable[[Graph], str | None]) -> None:
        self._shell: Any = shell  # its hooks have no types
        self._guard = guard
        self._picture = picture

    def start(self) -> None:
        """Register with the inspector and the pager."""
        inspector = self._shell.inspector
        if hasattr(inspector, "mime_hooks"):  # IPython 8.22 or newer
            inspector.mime_hooks = {**inspector.mime_hooks, MIME: self._page_of}
            self._shell.set_hook(HOOK, _with_page, 0)

    def stop(self) -> None:
        """Unregister."""
        inspector = self._shell.inspector
        if hasattr(inspector, "mime_hooks"):
            inspector.mime_hooks = {mime: hook for mime, hook in inspector.mime_hooks.items() if mime != MIME}
        chain = getattr(self._shell.hooks, HOOK).chain
        chain[:] = [entry for entry in chain if getattr(entry[1], "__func__", None) is not _with_page]

    def _page_of(self, asked: Any) -> str | None:
        """The page of what a user asked for, None unless it is a function of `gc.ops`."""
        pages: list[str] = []
        with self._guard("writing the page of an op"):
            op_def = None if asked.detail_level else op_of(asked.obj)
            if op_def is not None:
                pages.append(op_page(op_def, self._picture))
        return pages[0] if pages else None


def _with_page(_shell: object, data: Any, start: int = 0, screen_lines: int = 0) -> None:  # noqa: ARG001 - IPython passes them by name
    """Make the page of an op the HTML of what a pager shows; the next pager shows it."""
    page = data.pop(MIME, None) if isinstance(data, dict) else None
    if page is not None:
        data["text/html"] = page
    raise TryNext


def op_page(op_def: OpDef, picture: Callable[[Graph], str | None]) -> str:
    """The page of an op.

    Args:
        op_def: the op.
        picture: returns the HTML of a static picture of a graph, None if there is none.
    """
    name = snake_case(op_def.name)
    is_function = name in dir(ops)
    shown = uses(op_def) if is_function else []
    arguments = getattr(ops, name).__doc__.partition("Args:")[2] if is_function else ""
    parts = [
        f"<p><b><code>{html_text(f'gc.ops.{name}' if is_function else op_def.name)}</code></b> {html_text(op_def.summary)}</p>",
        f"<p>{html_text(op_def.description)}</p>" if op_def.description else "",
        _preformatted("Shapes", "\n".join(shape_lines(shown))),
        _draw(shown[0], picture) if shown else "",
        _preformatted("Example", "\n".join(example_lines(shown[0], name))) if shown else "",
        _preformatted("Arguments and results", arguments.strip("\n")) if arguments else "",
    ]
    return f"<div>{''.join(parts)}</div>"


def _draw(use: Use, picture: Callable[[Graph], str | None]) -> str:
    """The picture of a use, with a box for each of the first results."""
    graph = use.node.graph
    for number, tensor in enumerate(use.node.outputs[:_MOST_RESULTS]):
        graph.apply_op("_Retval", [tensor], {"index": number}, use.outputs[number].partition(" ")[0])
    return picture(graph) or ""


def _preformatted(title: str, text: str) -> str:
    return f"<p><b>{title}</b></p><pre {_PRE}>{html_text(text)}</pre>" if text else ""
