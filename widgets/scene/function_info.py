"""The functions of a call: definitions, and bodies with the types of this call."""

from __future__ import annotations

from typing import Final

import msgspec

from graphcore.definitions import FunctionDef
from graphcore.errors import GraphError
from graphcore.frontends.record import ForeignBody
from graphcore.graph import topological_order
from graphcore.passes import FunctionBody, graph_to_function_def
from graphcore.text import debug_string
from widgets.inspection import FunctionInfo
from widgets.scene.calls import Call, Callee, callees
from widgets.scene.words import attr_text

_UNNAMED: Final = ("", "_")


def function_infos(call: Call) -> list[FunctionInfo]:
    """One entry for each function called; one that cannot be instantiated has the reason."""
    bodies = {body.callee: body.body for body in call.bodies()}
    foreign = {callee: body for callee, body in bodies.items() if isinstance(body, ForeignBody)}
    if foreign:
        return [
            FunctionInfo(place=place, label=callee.label, name=callee.title, note=foreign[callee].doc, opens=False)
            for place, callee in enumerate(callees(call.node))
            if callee in foreign
        ]
    own = {callee: body for callee, body in bodies.items() if not isinstance(body, ForeignBody)}
    return [_info(place, callee, own.get(callee), call.refusal) for place, callee in enumerate(callees(call.node))]


def definition_of(callee: Callee, body: FunctionBody) -> FunctionDef:
    """The function of a body; for a derived gradient, one made of its nodes."""
    if body.fdef.name not in _UNNAMED:
        return body.fdef
    name = f"{callee.function.name}Grad"
    if body.fdef.signature.output_arg:
        return msgspec.structs.replace(body.fdef, signature=msgspec.structs.replace(body.fdef.signature, name=name))
    return graph_to_function_def(body.graph, name)


def definition_text(callee: Callee, body: FunctionBody) -> str:
    """The definition in the text form."""
    return debug_string(definition_of(callee, body)).strip("\n")


def instantiated_text(body: FunctionBody) -> str:
    """The nodes of a body, with types, producers first."""
    return debug_string([node.node_def for node in topological_order(body.graph)]).strip("\n")


def _info(place: int, callee: Callee, body: FunctionBody | None, refusal: str) -> FunctionInfo:
    attrs = ", ".join(f"{name}={attr_text(value)}" for name, value in sorted(callee.function.attr.items()) if not name.startswith("_"))
    if body is None:
        return FunctionInfo(place=place, label=callee.label, name=callee.title, attrs=attrs, note=refusal)
    try:
        definition = definition_text(callee, body)
    except GraphError as error:
        definition = f"cannot be written as a function: {error.message}"
    return FunctionInfo(
        place=place,
        label=callee.label,
        name=callee.title,
        attrs=attrs,
        definition=definition,
        instantiated=instantiated_text(body),
        derived=callee.gradient and body.fdef.name in _UNNAMED,
        opens=True,
    )
