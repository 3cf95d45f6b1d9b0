"""The boxes and frames of a picture, and the box of each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from widgets.scene.calls import CallBody, callee_arguments, has_hub, is_choice
from widgets.scene.outside import OutsideOrigins
from widgets.scene.roles import Roles
from widgets.scene.tree import FOLDS, MOST_FRAMES, Call, Group, Part, Scope, Thing

if TYPE_CHECKING:
    from graphcore.graph import Node, Tensor

_node_id: Final = attrgetter("id")

MOST_ORDERS: Final = 9
"""Gradients of higher order are not told apart."""

TOO_DEEP: Final = f"closed: {MOST_FRAMES} frames around it"

Foldable: TypeAlias = Scope | Group | Thing | Call


class Box:
    """One visible box. `main` is the node it shows (None for a scope), `nodes` are all its nodes, `depth` the number of frames around it."""

    __slots__ = ("depth", "group", "id", "main", "nodes", "part")

    def __init__(self, box_id: str, group: str, part: Part, main: Node | None, nodes: list[Node], depth: int = 0) -> None:
        self.id = box_id
        self.group = group
        self.part = part
        self.main = main
        self.nodes = nodes
        self.depth = depth


class Frame:
    """One open scope, thing, call or group."""

    __slots__ = ("id", "parent", "part")

    def __init__(self, frame_id: str, parent: str, part: Foldable) -> None:
        self.id = frame_id
        self.parent = parent
        self.part = part


class Visible:
    """The boxes and frames of one picture, the box of each node, open calls, and the backward pass.

    Args:
        roles: the roles in the graph.
        origins: in a mirrored picture, for each gradient node the name of the node that it differentiates.

    Attributes:
        words: in a mirrored picture, what a box of the backward pass is, by its id.
    """

    __slots__ = ("box_of", "boxes", "calls", "frames", "given", "origins", "outside", "roles", "words")

    def __init__(self, roles: Roles, origins: Mapping[str, str] | None = None) -> None:
        self.roles = roles
        self.origins: Mapping[str, str] = origins or {}
        self.words: dict[str, str] = {}
        self.boxes: list[Box] = []
        self.frames: list[Frame] = []
        self.box_of: dict[str, Box] = {}
        self.calls: dict[str, Call] = {}
        self.given: dict[str, Tensor] = {}
        """The tensors that come into the arguments of open bodies from outside, by the name of the argument node."""
        self.outside = OutsideOrigins(self.given)

    def shown(self, parts: Sequence[Part]) -> Sequence[Part]:
        """The parts with nodes of the forward pass if the backward pass mirrors them, else all."""
        if not self.origins:
            return parts
        found: list[Part] = []
        for part in parts:
            if isinstance(part, Thing | Call) and part.node.name in self.origins:
                found.extend(self.shown(part.parts() if isinstance(part, Thing) else part.beside()))
            elif isinstance(part, FOLDS):
                nodes = part.all_nodes()
                if not nodes or any(node.name not in self.origins for node in nodes):
                    found.append(part)
            elif part.name not in self.origins:
                found.append(part)
        return found

    def order(self, name: str) -> int:
        """In a mirrored picture 1 for a gradient, 2 for a gradient of a gradient, and so on; else 0."""
        order = 0
        while (name := self.origins.get(name, "")) and order < MOST_ORDERS:
            order += 1
        return order

    def add(self, box: Box) -> None:
        """Add a box."""
        self.boxes.append(box)
        for node in box.nodes:
            self.box_of[node.name] = box

    def place(self, parts: Sequence[Part], group: str, opened: set[str], depth: int = 0) -> None:
        """Add the boxes and frames of some parts.

        Args:
            group: the frame around them.
            opened: the keys of open parts.
            depth: the number of frames around them.
        """
        for part in self.shown(parts):
            if not isinstance(part, FOLDS):
                self.add(Box(part.name, group, part, part, [part]))
            elif part.key in opened:
                frame = part.key + "/"
                self.frames.append(Frame(frame, group, part))
                if isinstance(part, Call):
                    self.open_call(part)
                self.place(part.parts(), frame, opened, depth + 1)
            else:
                main = part.node if isinstance(part, Thing | Call) else None
                box_id = part.key + "/" if main is None else main.name
                self.add(Box(box_id, group, part, main, [node for node in in_order(part) if node.name not in self.origins], depth))

    def open_call(self, call: Call) -> None:
        """Record an open call."""
        self.calls[call.node.name] = call
        hub = has_hub(call.node)
        given = callee_arguments(call.node) or []
        for body in call.bodies():
            self.roles.inner |= body.gradients
            if not hub:
                self.given.update({arg.name: tensor for arg, tensor in zip(body.args, given, strict=False)})

    def argument_sources(self, tensor: Tensor) -> list[tuple[Box, Tensor]]:
        """The boxes that produce a tensor, with its name there: for an open call the returns of its bodies."""
        call = self.calls.get(tensor.node.name)
        if call is None or (has_hub(call.node) and not is_choice(call.node)):
            box = self.box_of.get(tensor.node.name)
            return [] if box is None else [(box, tensor)]
        rets = [body.rets[tensor.index] for body in call.bodies() if tensor.index < len(body.rets)]
        return [(self.box_of[ret.name], ret.inputs[0] if ret.inputs[0].shape.dims is not None else tensor) for ret in rets]

    def inner_nodes(self) -> list[Node]:
        """The nodes of all open bodies."""
        return [node for call in self.calls.values() for body in call.bodies() for node in body.nodes]

    def place_of(self, node: Node) -> str:
        """The id of a node's box, or of the frame of an open call; "" if it is not visible."""
        return self.place_of_name(node.name)

    def place_of_name(self, name: str) -> str:
        """`place_of` for a node by its name."""
        box = self.box_of.get(name)
        return box.id if box is not None else f"{name}/" if name in self.calls else ""

    def awaited(self, node: Node) -> list[Box]:
        """The boxes that a control dependency on a node waits for."""
        call = self.calls.get(node.name)
        if call is None or has_hub(call.node):
            box = self.box_of.get(node.name)
            return [] if box is None else [box]
        return [box for body in call.bodies() for last in (body.control_rets or body.rets) for box in self.awaited(last)]

    def beginnings(self, body: CallBody) -> list[Box]:
        """The first boxes of a body."""
        first = body.args or [node for node in body.nodes if not node.inputs and not node.control_inputs]
        return [box for node in first for box in self._first_boxes(node)]

    def _first_boxes(self, node: Node) -> list[Box]:
        call = self.calls.get(node.name)
        if call is None or has_hub(node):
            return [self.box_of[node.name]]
        return [box for body in call.bodies() for box in self.beginnings(body)]


def in_order(part: Foldable) -> list[Node]:
    """The nodes of a part by id: their order does not depend on how the part was formed."""
    return sorted(part.all_nodes(), key=_node_id)
