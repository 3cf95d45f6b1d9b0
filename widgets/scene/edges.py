"""Edges between boxes: one for each pair of boxes and kind, for any number of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from widgets.scene.boxes import Box, Visible
from widgets.scene.calls import has_hub, is_choice
from widgets.scene.devices import copies_mark, crosses_devices
from widgets.scene.types import EdgeKind, LensMark, Role, SceneEdge, State

if TYPE_CHECKING:
    from graphcore.graph import Node, Tensor
    from widgets.scene.calls import CallBody
    from widgets.scene.shapes.clash_lines import ClashLines
    from widgets.scene.shapes.dimensions import Dimensions
    from widgets.scene.tree import Call

CROWD: Final = 3
"""More control edges than this into one box are thinned out."""
REMOVED: Final = " (removed)"
"""Ends the ids of edges that are gone."""
SIGNS: Final[dict[State, str]] = {"new": "+ ", "removed": "− "}
"""Begin the labels of edges in the picture of a difference."""
_MARKS: Final[dict[EdgeKind, str]] = {"data": "", "control": "^", "reference": "&"}


class Bundle:
    """All tensors (or control edges) between two boxes, and the copies of tensors to other devices.

    In the picture of a difference `new` and `removed` count the edges that were not there before, and those of removed nodes; a bundle that
    `is_gone` has edges that kept nodes had before.
    """

    __slots__ = ("copies", "errors", "is_back_edge", "is_gone", "kind", "new", "removed", "source", "target", "tensors")

    def __init__(self, source: Box, target: Box, kind: EdgeKind) -> None:
        self.source = source
        self.target = target
        self.kind: EdgeKind = kind
        self.tensors: dict[tuple[str, int], Tensor] = {}
        self.copies: dict[tuple[Tensor, str], None] = {}
        self.errors: list[str] = []
        self.is_back_edge = False
        self.new = self.removed = 0
        self.is_gone = False

    @property
    def id(self) -> str:
        """An id that is stable across scenes."""
        return edge_id(self.source.id, self.target.id, self.kind) + (REMOVED if self.is_gone else "")

    @property
    def state(self) -> State:
        """`new` or `removed` in the picture of a difference if all tensors are."""
        if self.is_gone or self.removed >= self.count:
            return "removed"
        return "new" if self.new >= self.count else "normal"

    @property
    def count(self) -> int:
        """The number of tensors; 1 for control edges, which carry none."""
        return len(self.tensors) or 1

    def output(self) -> str:
        """`:1 ` for one tensor of a box whose node has several outputs."""
        tensors = list(self.tensors.values())
        if len(tensors) != 1 or self.source.main is not tensors[0].node or len(tensors[0].node.outputs) < 2:
            return ""
        return f":{tensors[0].index} "

    def label(self, dimensions: Dimensions) -> str:
        """Type and shape if all tensors agree, else empty, since the count suffices."""
        labels = {dimensions.label(tensor) for tensor in self.tensors.values()}
        return labels.pop() if len(labels) == 1 else ""


class LostInput:
    """An input whose producer was removed from the graph."""

    __slots__ = ("error", "target", "tensor")

    def __init__(self, tensor: Tensor, target: Box, error: str) -> None:
        self.tensor = tensor
        self.target = target
        self.error = error


def edge_id(source: str, target: str, kind: EdgeKind) -> str:
    """The id of the edge of one kind between two boxes."""
    return f"{source}->{_MARKS[kind]}{target}"


class _Bundles:
    """Bundles by their boxes, one table for each kind."""

    def __init__(self) -> None:
        self.tables: dict[EdgeKind, dict[tuple[Box, Box], Bundle]] = {"data": {}, "reference": {}, "control": {}}

    def of(self, source: Box, target: Box, kind: EdgeKind) -> Bundle:
        table = self.tables[kind]
        bundle = table.get((source, target))
        if bundle is None:
            bundle = table[source, target] = Bundle(source, target, kind)
        return bundle

    def add(self, source: Box, target: Box, tensor: Tensor) -> Bundle | None:
        """Add a tensor from one box to another; None if that is the same box."""
        if source is target:
            return None
        bundle = self.of(source, target, "reference" if _is_reference(tensor) else "data")
        bundle.tensors[tensor.node.name, tensor.index] = tensor
        return bundle


def bundle_edges(visible: Visible) -> tuple[list[Bundle], list[LostInput]]:
    """The bundles between boxes, in the order of their target nodes, and the inputs without a producer."""
    bundles = _Bundles()
    box_of = visible.box_of
    lost: list[LostInput] = []
    for box in visible.boxes:
        for node in box.nodes:
            for slot, tensor in enumerate(node.inputs):
                if box_of.get(tensor.node.name) is box:
                    continue  # most edges of a large graph are within a box
                argument_sources = visible.argument_sources(tensor)
                if not argument_sources:
                    lost.append(LostInput(tensor, box, node.input_errors.get(slot, "")))
                for source, given in argument_sources:
                    bundle = bundles.add(source, box, given)
                    if bundle is not None and crosses_devices(given.node, node):
                        bundle.copies[given, node.assigned_device] = None
                    if bundle is not None and node.input_errors and slot in node.input_errors:
                        bundle.errors.append(f"{tensor.name} into {node.name}: {node.input_errors[slot]}")
            for producer in node.control_inputs:
                for source in visible.awaited(producer):
                    if source is not box:
                        bundles.of(source, box, "control")
    for call in visible.calls.values():
        _join_bodies(visible, call, bundles)
    found = [bundle for table in bundles.tables.values() for bundle in table.values()]
    return _without_implied(found), lost


def _without_implied(bundles: list[Bundle]) -> list[Bundle]:
    """Leave out control edges that a path of tensors and another control edge imply.

    They say nothing more, and dozens of them cross a model whose output waits for every read of a parameter.
    """
    waits: dict[Box, set[Box]] = {}
    for bundle in bundles:
        if bundle.kind == "control":
            waits.setdefault(bundle.target, set()).add(bundle.source)
    crowded = {target: sources for target, sources in waits.items() if len(sources) > CROWD}
    if not crowded:
        return bundles
    after: dict[Box, list[Box]] = {}
    for bundle in bundles:
        if bundle.kind == "data":
            after.setdefault(bundle.source, []).append(bundle.target)
    implied = {
        (source, target)
        for target, sources in crowded.items()
        for source in sources
        if len(source.nodes) > 1 and _reaches(source, (sources - {source}), after)
    }
    return [bundle for bundle in bundles if bundle.kind != "control" or (bundle.source, bundle.target) not in implied]


def _reaches(start: Box, ends: set[Box], after: dict[Box, list[Box]]) -> bool:
    """True iff tensors lead from one box to one of others, and not back."""
    seen = {start}
    stack = [start]
    found = False
    while stack:
        for target in after.get(stack.pop(), ()):
            if target is start:
                return False
            found = found or target in ends
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return found


def _join_bodies(visible: Visible, call: Call, bundles: _Bundles) -> None:
    """Add the edges into the bodies of an open call, and for a loop those back into its own box."""
    node = call.node
    hub = visible.box_of.get(node.name) if has_hub(node) else None
    for body in call.bodies():
        for index, arg in enumerate(body.args):
            target = visible.box_of[arg.name]
            if hub is not None:
                bundles.add(hub, target, arg.outputs[0])
            elif index < len(node.inputs):
                for source, tensor in visible.argument_sources(node.inputs[index]):
                    bundles.add(source, target, tensor)
        if hub is None:
            _join_controls(visible, node, body, bundles)
            continue
        for ret in () if is_choice(node) else body.rets:
            back = bundles.add(visible.box_of[ret.name], hub, ret.inputs[0])
            if back is not None:
                back.is_back_edge = True


def _join_controls(visible: Visible, node: Node, body: CallBody, bundles: _Bundles) -> None:
    """Pass the control inputs of an open call on to its body."""
    for producer in node.control_inputs:
        for source in visible.awaited(producer):
            for target in visible.beginnings(body):
                if source is not target:
                    bundles.of(source, target, "control")


def scene_edge(bundle: Bundle, roles: dict[str, Role], dimensions: Dimensions, clashes: ClashLines, visible: Visible) -> SceneEdge:
    """The edge for a bundle; `roles` by box id."""
    gradient = roles[bundle.target.id] == "gradient"
    orders = [visible.order(box.nodes[0].name) for box in (bundle.source, bundle.target)]
    loose = orders[1] > 0 and orders[0] != orders[1]
    turned = orders[0] > 0 and orders[0] % 2 == 0  # gradients of gradients flow as the forward pass does
    label = bundle.label(dimensions)
    dims = dimensions.common(bundle.tensors.values()) if label else []
    label = SIGNS.get(bundle.state, "") + bundle.output() + label
    lenses = {"shapes": _shape_mark(bundle, dimensions)} if bundle.tensors else {}
    if bundle.copies:
        lenses["devices"] = copies_mark(bundle.copies)
    return SceneEdge(
        id=bundle.id,
        state=bundle.state,
        source=bundle.source.id,
        target=bundle.target.id,
        kind=bundle.kind,
        label=label,
        count=bundle.count,
        dims=dims,
        error="\n".join(bundle.errors),
        clash=clashes.lines.get((bundle.source.id, bundle.target.id), 0) if bundle.kind != "control" else 0,
        reversed=bundle.is_back_edge or (gradient and roles[bundle.source.id] == "gradient" and not turned and not loose),
        loose=loose,
        role="gradient" if gradient or roles[bundle.source.id] == "gradient" else "forward",
        lenses=lenses,
    )


def _is_reference(tensor: Tensor) -> bool:
    dtype = tensor.node.output_types[tensor.index]
    return dtype.is_ref or dtype.text == "resource"


SHAPE_TONES: Final = {
    "scalar": 1,
    "vector": 2,
    "matrix": 3,
    "rank 3 and more": 4,
    "sizes partly known": 5,
    "several shapes": 6,
    "rank unknown": 7,  # shown in red
}


def shape_class(tensors: list[Tensor]) -> str:
    """The row of the shapes lens's legend for these tensors."""
    classes = set()
    for tensor in tensors:
        shape = tensor.shape
        if shape.dims is None:
            classes.add("rank unknown")
        elif not shape.is_fully_defined:
            classes.add("sizes partly known")
        else:
            classes.add(("scalar", "vector", "matrix", "rank 3 and more")[min(len(shape.dims), 3)])
    return classes.pop() if len(classes) == 1 else "several shapes"


def _shape_mark(bundle: Bundle, dimensions: Dimensions) -> LensMark:
    tensors = list(bundle.tensors.values())
    found = shape_class(tensors)
    text = dimensions.label(tensors[0]) if len(tensors) == 1 else f"{len(tensors)} tensors, {found}"
    return LensMark(text=text, tone=SHAPE_TONES[found])
