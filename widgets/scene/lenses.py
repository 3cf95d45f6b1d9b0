"""Lenses: a further property of each box, in words and in one of eight tones, with the same layout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import msgspec

from graphcore.errors import AlreadyExistsError, NotFoundError

if TYPE_CHECKING:
    from graphcore.graph import Node

BUILT_IN: Final = ("structure", "shapes", "devices", "gradients", "functions", "cells", "time", "values")
Classify = TypeVar("Classify", bound=Callable[..., Any])


class OwnLens(msgspec.Struct, frozen=True, kw_only=True):
    """A lens of a user: the function that classifies nodes, and the title in the list of lenses."""

    classify: Callable[[Any], object]
    title: str

    def class_of(self, node: Node) -> str:
        """The class of a node, "" if it stays unmarked; raises whatever the user's function raises."""
        value = self.classify(node)
        return "" if value is None else str(value)


_own: dict[str, OwnLens] = {}


@overload
def lens(classify: Classify) -> Classify: ...
@overload
def lens(*, title: str) -> Callable[[Classify], Classify]: ...
def lens(classify: Classify | None = None, *, title: str = "") -> Classify | Callable[[Classify], Classify]:
    """Add a lens to all views: a function that returns the class of a node in words.

    A node of class "" or None stays unmarked. Boxes of one class get the same colour and pattern, and a row in the legend; a scope shows how many nodes of each class are in it. A
    function of the same name replaces the lens. Views show it with their next picture:

        from widgets import lens

        @lens
        def inputs(node):
            return f"{len(node.inputs)} inputs"

    Args:
        classify: takes a `graphcore.Node`. Its name is that of the lens, for `%graph lens NAME`. If it fails, nothing is marked, and the
            legend shows the error.
        title: the title in the list of lenses; the function's name with spaces by default.

    Raises:
        AlreadyExistsError: a built-in lens has the name.
    """
    if classify is None:
        return partial(_add, title=title)
    return _add(classify, title=title)


def _add(classify: Classify, *, title: str) -> Classify:
    name = classify.__name__
    if name in BUILT_IN:
        raise AlreadyExistsError(f"Lens '{name}' is built in: required a name other than {', '.join(BUILT_IN)}")
    _own[name] = OwnLens(classify=classify, title=title or name.replace("_", " ").capitalize())
    return classify


def remove_lens(name: str) -> None:
    """Remove a lens that was added by `lens`.

    Raises:
        NotFoundError: there is none of this name.
    """
    if _own.pop(name, None) is None:
        raise NotFoundError(f"There is no lens '{name}' to remove: required one of {', '.join(_own) or 'none'}")


def lens_names() -> tuple[str, ...]:
    """The names of all lenses."""
    return (*BUILT_IN, *_own)


def own_lenses() -> tuple[tuple[str, OwnLens], ...]:
    """The lenses that were added by `lens`, by name."""
    return tuple(_own.items())


def failure_note(error: Exception) -> str:
    """The note of a lens whose function raised `error`."""
    return f"The lens failed: {type(error).__name__}: {error}"


def cell_label(node: Node) -> str:
    """The label of the cell run that made a node, with a remark for deleted cells; "" without cells."""
    if node.source is None or node.source.run is None:
        return ""
    label = node.source.run.label
    return f"{label}, deleted" if node.graph.cells.is_without_cell(node) else label
