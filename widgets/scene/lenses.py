"""Lenses: a further property of each box, in words and in one of eight tones, with the same layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import msgspec

from graphcore.errors import AlreadyExistsError, NotFoundError
from widgets.scene.boxes import Box
from widgets.scene.devices import device_of, device_words, devices_of
from widgets.scene.edges import SHAPE_TONES, shape_class
from widgets.scene.instances import numbered, numbered_classes
from widgets.scene.roles import Roles
from widgets.scene.time_lens import time_marks
from widgets.scene.tree import Group
from widgets.scene.types import LegendEntry, Lens, LensMark
from widgets.scene.value_lens import value_marks
from widgets.scene.words import called_functions, tensor_label

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node
    from widgets.scene.shapes.dimensions import Dimensions

BUILT_IN: Final = ("structure", "shapes", "devices", "gradients", "functions", "cells", "time", "values")
Classify = TypeVar("Classify", bound=Callable[..., Any])
_LAST_TONE: Final = 6
"""The tone of the sixth class and all after it; 7 is the red of what is wrong."""
_GRADIENT_TONES: Final = {"not differentiated": 0, "forward, differentiated": 1, "gradient": 2, "gradient seed or sum": 3}


class OwnLens(msgspec.Struct, frozen=True, kw_only=True):
    """A lens of a user: the function that classifies nodes, and the title in the list of lenses."""

    classify: Callable[[Any], object]
    title: str

    def class_of(self, node: Node) -> str:
        """The class of a node, "" if it stays unmarked; raises whatever the user's function raises."""
        found = self.classify(node)
        return "" if found is None else str(found)


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


class LensView:
    """One lens over one scene: the mark of each box, the legend, and a note.

    The note is `empty` if nothing is marked.
    """

    def __init__(
        self, name: str, title: str, marks: dict[str, LensMark], legend: list[LegendEntry], *, empty: str = "", note: str = ""
    ) -> None:
        unmarked = not any(mark.tone for mark in marks.values())
        self.lens = Lens(name=name, title=title, legend=legend, note=(unmarked and empty) or note)
        self.marks = marks


def all_lenses(graph: Graph, boxes: list[Box], roles: Roles, dimensions: Dimensions) -> list[LensView]:
    """All lenses for these boxes, including empty ones."""
    differentiated = {record.forward for record in graph.gradient_records.values()}

    def gradient_class(node: Node) -> str:
        if not roles.is_gradient(node):
            return "forward, differentiated" if node.name in differentiated else "not differentiated"
        record = graph.gradient_records.get(node.name)
        return "gradient seed or sum" if record is None or record.function is None else "gradient"

    def gradient_words(node: Node) -> str:
        record = graph.gradient_records.get(node.name)
        found = gradient_class(node)
        return found if record is None or record.function is None else f"gradient of {record.forward} ({record.function.name})"

    return [
        LensView("structure", "Structure", {}, []),  # kinds and roles have their own shapes and colours
        _shapes(boxes, dimensions),
        _view(
            "devices",
            "Devices",
            boxes,
            device_of,
            words=device_words,
            rest="no device requested",
            empty="No node asks for a device",
            several="several devices",
            first=devices_of(graph.op_nodes()),
        ),
        _view(
            "gradients",
            "Gradients",
            boxes,
            gradient_class,
            tones=_GRADIENT_TONES,
            words=gradient_words,
            empty="Nothing here was differentiated",
        ),
        _view("functions", "Functions", boxes, _function, rest="no function call", empty="No node calls a function"),
        _view("cells", "Cells", boxes, _cell, rest="made outside a cell", empty="No node was made by a cell"),
        _time(graph, boxes),
        _values(graph, boxes),
        *(_own_view(name, own, boxes) for name, own in _own.items()),
    ]


def _own_view(name: str, own: OwnLens, boxes: list[Box]) -> LensView:
    try:
        return _view(name, own.title, boxes, own.class_of, rest="unmarked", empty="No node here is marked")
    except Exception as error:  # noqa: BLE001 - a user's function must not cost the user the picture
        return LensView(name, own.title, {}, [], empty=failure_note(error))


def failure_note(error: Exception) -> str:
    """The note of a lens whose function raised `error`."""
    return f"The lens failed: {type(error).__name__}: {error}"


def _time(graph: Graph, boxes: list[Box]) -> LensView:
    marks, legend, note = time_marks(graph, boxes)
    return LensView("time", "Time", marks, legend, note=note)


def _values(graph: Graph, boxes: list[Box]) -> LensView:
    marks, legend, note = value_marks(graph, boxes)
    return LensView("values", "Values", marks, legend, note=note)


def cell_label(node: Node) -> str:
    """The label of the cell run that made a node, with a remark for deleted cells; "" without cells."""
    if node.source is None or node.source.run is None:
        return ""
    label = node.source.run.label
    return f"{label}, deleted" if node.graph.cells.is_without_cell(node) else label


def _function(node: Node) -> str:
    return ", ".join(called_functions(node))


def _cell(node: Node) -> str:
    return cell_label(node)


def _view(
    name: str,
    title: str,
    boxes: list[Box],
    classify: Callable[[Node], str],
    *,
    tones: Mapping[str, int] | None = None,
    rest: str = "",
    words: Callable[[Node], str] | None = None,
    empty: str = "",
    several: str = "",
    first: Iterable[str] = (),
) -> LensView:
    """A lens by classes; "" is the class of unmarked nodes.

    `empty` is the reason why a lens without marks has none. By default the classes get tones 1, 2, ... in order, and the last tone for all others;
    those in `first` come first: those of the whole graph keep their tones whatever is open.
    With `several`, the words for it, boxes with nodes of several classes have the last tone, too, and the legend has the classes of all nodes.
    """
    counts = _counters(boxes, classify)
    given = tones or {}
    if tones is None:
        tones = _tones_in_order([*first, *[item for counter in counts.values() for item in counter]])
    marks = {}
    mixed = False
    used: dict[int, str] = {}
    for box in boxes:
        counter = _marked(counts[box.id], given)
        if not any(counter):
            continue
        main = max(filter(None, counter), key=counter.__getitem__)
        named = [item for item in counter if item]
        is_mixed = bool(several) and len(named) > 1
        tone = _LAST_TONE if is_mixed else tones.get(main, 0)
        mixed = mixed or is_mixed
        for item in named if several else [main]:
            used.setdefault(tones.get(item, 0), item)
        if words is not None and len(box.nodes) == 1:
            text = words(box.nodes[0])
        else:
            text = (numbered_classes(box.part, classify, rest) if len(counter) > 1 else "") or _counter_text(counter, rest)
        marks[box.id] = LensMark(text=text, tone=tone)
    if list(tones.values()).count(_LAST_TONE) > 1:
        used[_LAST_TONE] = "others"
    if mixed:
        used[_LAST_TONE] = " or ".join([text for text in (used.get(_LAST_TONE, ""), several) if text])
    return LensView(name, title, marks, [LegendEntry(tone=tone, text=text) for tone, text in sorted(used.items())], empty=empty)


def _marked(counter: Counter[str], tones: Mapping[str, int]) -> Counter[str]:
    """The classes that have a tone of their own, if there are any: the others say nothing about the box."""
    return Counter({item: count for item, count in counter.items() if tones.get(item)}) or counter


def _tones_in_order(classes: Iterable[str]) -> dict[str, int]:
    named = dict.fromkeys([item for item in classes if item])
    return {"": 0} | {item: min(number, _LAST_TONE) for number, item in enumerate(named, 1)}


def _counters(boxes: list[Box], classify: Callable[[Node], str]) -> dict[str, Counter[str]]:
    """The classes of the nodes in each box; boxes of one node share theirs, since most boxes are such."""
    alone: dict[str, Counter[str]] = {}
    found = {}
    for box in boxes:
        if len(box.nodes) != 1:
            found[box.id] = Counter(map(classify, box.nodes))
            continue
        only = classify(box.nodes[0])
        counter = alone.get(only)
        if counter is None:
            counter = alone[only] = Counter([only])
        found[box.id] = counter
    return found


def _counter_text(counter: Counter[str], rest: str) -> str:
    if len(counter) == 1:
        return next(iter(counter)) or rest
    parts = [f"{item or rest} × {count:,}" for item, count in counter.most_common(3)]
    return ", ".join(parts) + (", …" if len(counter) > 3 else "")


def passed_on(repeat: Group) -> tuple[str, str]:
    """The class of shapes that the instances of a repeat pass on, and their types and shapes in words."""
    tensors = [tensor for tensor in repeat.outputs if tensor is not None]
    if not tensors or len(tensors) < len(repeat.instances):
        return "", ""
    labels = [tensor_label(tensor) for tensor in tensors]
    return shape_class(tensors), numbered(labels) or f"each {labels[0]}"


def _shapes(boxes: list[Box], dimensions: Dimensions) -> LensView:
    """The shapes lens marks the outputs of nodes; edges have their own marks."""
    marks = {}
    used: dict[int, str] = {}
    for box in boxes:
        if isinstance(box.part, Group) and box.part.instances:
            found, text = passed_on(box.part)
        else:
            outputs = [] if box.main is None else box.main.outputs
            found = shape_class(outputs) if outputs else ""
            text = ", ".join(dimensions.label(tensor) for tensor in outputs[:4]) + (", …" if len(outputs) > 4 else "")
        if not found:
            continue
        tone = SHAPE_TONES[found]
        used[tone] = found
        marks[box.id] = LensMark(text=text, tone=tone)
    return LensView("shapes", "Shapes", marks, [LegendEntry(tone=tone, text=text) for tone, text in sorted(used.items())])
