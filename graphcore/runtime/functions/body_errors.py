"""Errors in the bodies of functions that a graph calls, with advice."""

from __future__ import annotations

import difflib
import re
from typing import Final

from graphcore.definitions import FunctionDef
from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph.model.node import Node
from graphcore.registry import op_registry

_NO_OP: Final = re.compile(r"Op type not registered '(?P<op>[^']+)'")
_NO_TENSOR: Final = re.compile(r"(?:input|Return \S+ ->) (?P<node>[^\s:]+)\S* is not found")
_NO_ATTR: Final = re.compile(r"type attr not found: (?P<attr>\w+)")


def in_body(error: GraphError, call: Node) -> GraphError:
    """The error with the function and the call that it concerns, and with advice.

    Args:
        error: an error in the body of the function.
        call: the node that calls the function.
    """
    library: FunctionLibraryDefinition = call.graph.library
    function = library.find(call.op)
    advice = _advice(error.message, function, library) if function is not None else ""
    text = f"{error.message}\n  in the body of function '{call.op}'"
    return type(error)(text, op=error.op or call.op, node=call.name, source=call.source).advise(error.suggestion or advice)


def _advice(message: str, function: FunctionDef, library: FunctionLibraryDefinition) -> str:
    """The likely mistake, "" if it is not known."""
    if match := _NO_OP.search(message):
        near = difflib.get_close_matches(match["op"], op_registry.names(), n=1)
        return f"Did you mean `{near[0]}`?" if near else ""
    if match := _NO_ATTR.search(message):
        attr = match["attr"]
        return f"Give the node its attrs in square brackets before its inputs, as in `[{attr}=float]` or `[{attr}=${attr}]`."
    if match := _NO_TENSOR.search(message):
        node = next((node for node in function.node_def if node.name == match["node"]), None)
        outputs = [] if node is None else [f"`{node.name}:{output.name}:0`" for output in library.look_up_op_def(node.op).output_arg]
        return f"Write an output of '{match['node']}' as {' or '.join(outputs)}." if outputs else ""
    return ""
