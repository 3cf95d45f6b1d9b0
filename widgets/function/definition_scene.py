"""Diagrams of definitions: arguments, nodes and returns with symbolic types and attrs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from graphcore.attrs import AttrValue, Placeholder
from graphcore.definitions import FunctionDef
from graphcore.definitions.types import ArgDef, NodeDef, OpDef
from graphcore.dtypes import DType
from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.functions.library import GRADIENT_OP
from graphcore.text import debug_string
from widgets.inspection import FunctionInfo, Inspection, TensorRow
from widgets.messages import SearchMessage
from widgets.render.compiled import without_long_edges
from widgets.scene.calls import Callee, callees_of
from widgets.scene.find import hits
from widgets.scene.query import Facts
from widgets.scene.types import Lens, NodeKind, Scene, SceneEdge, SceneNode
from widgets.scene.words import attr_text, counted, kind_of_op, user_name

MAX_NODES: Final = 400
"""Definitions with more nodes are not drawn; their text is there."""
_RETURN: Final = "return:"


class Definition:
    """A function definition.

    Args:
        fdef: the function.
        library: the library with the functions it calls.
    """

    def __init__(self, fdef: FunctionDef, library: FunctionLibraryDefinition) -> None:
        self.fdef = fdef
        self._library = library
        self._nodes = {node.name: node for node in fdef.node_def}
        self._args = {arg.name: arg for arg in fdef.signature.input_arg}

    @property
    def text(self) -> str:
        """The text form."""
        return debug_string(self.fdef).strip("\n")

    def scene(self, *, title: str = "definition", revision: int = 0) -> Scene:
        """The diagram. Types on the lines are symbolic, in the terms of the signature: `T`."""
        count = len(self._nodes)
        if count > MAX_NODES:
            return Scene(title=title, nodes=[], edges=[], revision=revision, summary=f"{count:,} nodes, too many to draw: read the text")
        nodes = [
            *[
                SceneNode(
                    id=arg.name,
                    label=user_name(self.fdef.arg_attr.get(index, {})) or arg.name,
                    kind="placeholder",
                    op="argument",
                    detail=_type_text(arg, {}),
                )
                for index, arg in enumerate(self._args.values())
            ],
            *[self._box(node) for node in self._nodes.values()],
            *[_return_box(arg) for arg in self.fdef.signature.output_arg],
        ]
        scene = Scene(
            title=title,
            nodes=nodes,
            edges=self._edges({node.id for node in nodes}),
            lenses=[Lens(name="structure", title="Structure")],
            revision=revision,
            total_nodes=len(nodes),
            summary=counted(count, "node"),
        )
        return without_long_edges(scene)

    def callee(self, box_id: str, place: int) -> Callee | None:
        """The function called by a node, by number, with placeholders in its attrs; None without one."""
        node = self._nodes.get(box_id)
        callees = [] if node is None else self._callees(node)
        return callees[place] if 0 <= place < len(callees) else None

    def inspect(self, box_id: str) -> Inspection | None:
        """The inspection of an argument, node or return."""
        if box_id in self._args:
            arg = self._args[box_id]
            row = TensorRow(name=arg.name, tensor="", dtype=_type_text(arg, {}), shape="")
            return Inspection(id=box_id, name=arg.name, op="", kind="argument", doc=arg.description, outputs=[row])
        if box_id.startswith(_RETURN):
            name = box_id.removeprefix(_RETURN)
            source = self.fdef.ret.get(name, "")
            row = TensorRow(name="from", tensor=source, dtype="", shape="", node=self._producer(source))
            return Inspection(id=box_id, name=name, op="", kind="return", inputs=[row])
        node = self._nodes.get(box_id)
        return None if node is None else self._inspect_node(node)

    def find(self, query: str, *, limit: int) -> SearchMessage:
        """The nodes that match a query; at most `limit` are returned, all are counted."""
        facts = [
            Facts(name=node.name, op=node.op, attrs={name: attr_text(value) for name, value in node.attr.items()})
            for node in self._nodes.values()
        ]
        return hits(query, facts, limit=limit)

    def _op_def(self, op: str) -> OpDef | None:
        try:
            return self._library.look_up_op_def(op)
        except GraphError:
            return None

    def _callees(self, node: NodeDef) -> list[Callee]:
        return callees_of(node, is_function=node.op in self._library)

    def _box(self, node: NodeDef) -> SceneNode:
        called = self._callees(node)
        kind: NodeKind = kind_of_op(node.op) or ("function" if called else "op")
        detail = ", ".join(callee.title for callee in called if callee.function.name != node.op) or _placeholder_text(node)
        if kind == "constant" and "value" in node.attr:
            detail = attr_text(node.attr["value"])
        return SceneNode(
            id=node.name, label=node.name, kind=kind, op=node.op, detail=detail, role="gradient" if node.op == GRADIENT_OP else "forward"
        )

    def _producer(self, text: str) -> str:
        name = text.removeprefix("^").partition(":")[0]
        return name if name in self._nodes or name in self._args else ""

    def _edges(self, boxes: set[str]) -> list[SceneEdge]:
        edges: dict[str, SceneEdge] = {}

        def add(text: str, target: str) -> None:
            source = self._producer(text)
            control = text.startswith("^")
            if source not in boxes:
                return
            key = f"{source}->{'^' if control else ''}{target}"
            label = "" if control else self._label(text)
            before = edges.get(key)
            edges[key] = (
                SceneEdge(id=key, source=source, target=target, kind="control" if control else "data", label=label)
                if before is None
                else msgspec.structs.replace(before, count=before.count + 1, label=label if label == before.label else "")
            )

        for node in self._nodes.values():
            for text in node.input:
                add(text, node.name)
        for name, text in self.fdef.ret.items():
            add(text, _RETURN + name)
        for name, producer in self.fdef.control_ret.items():
            add(f"^{producer}", _RETURN + name)
        return list(edges.values())

    def _label(self, text: str) -> str:
        """The symbolic type of the tensor that an input names."""
        name, _, rest = text.partition(":")
        arg = self._args.get(name)
        if arg is not None:
            return _type_text(arg, {}, rest)
        node = self._nodes[name]
        op_def = self._op_def(node.op)
        output, _, index = rest.partition(":")
        arg = next((item for item in op_def.output_arg if item.name == output), None) if op_def is not None else None
        return "" if arg is None else _type_text(arg, node.attr, index)

    def _inspect_node(self, node: NodeDef) -> Inspection:
        op_def = self._op_def(node.op)
        inputs = [
            TensorRow(
                name="",
                tensor=text,
                dtype=self._label(text) if ":" in text or text in self._args else "",
                shape="",
                node=self._producer(text),
            )
            for text in node.input
            if not text.startswith("^")
        ]
        return Inspection(
            id=node.name,
            name=node.name,
            op=node.op,
            kind=self._box(node).kind,
            node_def=debug_string(node),
            doc="" if op_def is None else "\n\n".join(filter(None, (op_def.summary, op_def.description))),
            signature="" if op_def is None else debug_string(op_def),
            device=node.device,
            attrs=[(name, attr_text(value)) for name, value in sorted(node.attr.items())],
            inputs=inputs,
            functions=[self._info(place, callee) for place, callee in enumerate(self._callees(node))],
        )

    def _info(self, place: int, callee: Callee) -> FunctionInfo:
        definition = self._library.find(callee.function.name)
        return FunctionInfo(
            place=place,
            label=callee.label,
            name=callee.title,
            attrs=", ".join(f"{name}={attr_text(value)}" for name, value in sorted(callee.function.attr.items())),
            definition="" if definition is None or callee.gradient else debug_string(definition).strip("\n"),
            opens=definition is not None or callee.gradient,
        )


def _return_box(arg: ArgDef) -> SceneNode:
    return SceneNode(id=_RETURN + arg.name, label=arg.name, kind="return", op="return", detail=_type_text(arg, {}))


def _placeholder_text(node: NodeDef) -> str:
    """The placeholder attrs: `T=$T`."""
    return ", ".join(f"{name}=${value.name}" for name, value in node.attr.items() if isinstance(value, Placeholder))


def _type_text(arg: ArgDef, attrs: Mapping[str, AttrValue], index: str = "") -> str:
    """The type of an argument, or of its element `index`: `T`, `N × T`, `float`."""
    number = f"{_bound(arg.number_attr, attrs)} × " if arg.number_attr and not index else ""
    listed = attrs.get(arg.type_list_attr)
    if isinstance(listed, tuple) and index.isdigit() and int(index) < len(listed):
        return attr_text(listed[int(index)])
    kind = arg.type.text if arg.type is not None else _bound(arg.type_attr or arg.type_list_attr, attrs)
    return f"{number}{kind}" + (" (reference)" if arg.is_ref else "")


def _bound(name: str, attrs: Mapping[str, AttrValue]) -> str:
    value = attrs.get(name)
    if isinstance(value, Placeholder):
        return value.name
    if isinstance(value, tuple):
        return ", ".join([item.text for item in value if isinstance(item, DType)]) or name
    return name if value is None else attr_text(value)
