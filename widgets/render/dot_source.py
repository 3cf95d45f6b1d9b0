"""DOT text as an object of the `graphviz` package."""

from __future__ import annotations

import contextlib
from collections.abc import Container

import graphviz

from widgets.render.engine import EngineError, engine


class DotSource(graphviz.Source):  # type: ignore[misc]  # the package has no types
    """A `graphviz.Source` that notebooks show without the program `dot`, which `render` and `pipe` need."""

    def _repr_mimebundle_(self, include: Container[str] | None = None, exclude: Container[str] | None = None) -> dict[str, str]:
        """The picture by the engine's Graphviz, and the text; without the engine the text alone."""
        shown = {"text/plain": str(self.source)}
        with contextlib.suppress(EngineError):
            shown["image/svg+xml"] = engine.ask("graphviz", str(self.source))
        kinds = (kind for kind in shown if (include is None or kind in include) and (exclude is None or kind not in exclude))
        return {kind: shown[kind] for kind in kinds}
