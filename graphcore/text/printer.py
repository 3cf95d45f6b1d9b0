"""Prints functions, op signatures and instantiated bodies in TensorFlow's format, with additions.

TensorFlow's format is lossy. Where a reader would guess wrong, this one adds flags after the signature (`@stateless`), function and
argument attrs (`@attr k = v`, `@arg 0 [k=v]`), control outputs that are not control returns (`@control_output [a]`), and the full name of a
device beside the short one (`device=GPU:1 "/job:worker/device:GPU:1"`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphcore.attrs import AttrValue
from graphcore.definitions.types import FunctionDef, GraphDef, NodeDef, OpDef
from graphcore.device_spec import parse_full_name
from graphcore.dtypes import DType
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.plumbing import ARG, RETVAL
from graphcore.registry import op_registry
from graphcore.text.scanner import input_text, name_text, quote
from graphcore.text.signature import signature_text
from graphcore.text.statements import LookUp
from graphcore.text.values import attr_value_text, attrs_text


def debug_string(value: FunctionDef | OpDef | NodeDef | GraphDef | Sequence[NodeDef], look_up: LookUp | None = None) -> str:
    """Print a function, an op's signature, a node, instantiated nodes, or the nodes of a GraphDef.

    `parse_function`, `parse_op_signature` and `parse_nodes` read the text back. Docs and debug info are left out.

    Args:
        value: the value to print.
        look_up: the ops known to a later reader of a function; those of the global registry by default.
    """
    if isinstance(value, FunctionDef):
        return function_text(value, look_up)
    if isinstance(value, OpDef):
        return signature_text(value)
    if isinstance(value, NodeDef):
        return node_text(value)
    return nodes_text(value.node if isinstance(value, GraphDef) else value)


def debug_string_whole(graph_def: GraphDef) -> str:
    """The functions of a graph's library, then its nodes, one a line."""
    functions = "".join([function_text(function) for function in graph_def.library.function])
    return functions + "\n" + "".join([node_text(node) + "\n" for node in graph_def.node])


def function_text(function: FunctionDef, look_up: LookUp | None = None) -> str:
    """The whole definition, beginning with a newline."""
    stateful_by_default = reads_as_stateful(function.node_def, look_up)
    lines = [signature_text(function.signature, stateful_by_default=stateful_by_default) + " {"]
    lines += [f"  @attr {entry}" for entry in _assignments(function.attr.items())]
    lines += [f"  @arg {index} [{', '.join(attrs_text(attrs))}]" for index, attrs in sorted(function.arg_attr.items())]
    if function.signature.control_output != tuple(function.control_ret):
        lines.append(f"  @control_output [{', '.join([name_text(name) for name in function.signature.control_output])}]")
    lines += [f"  {node_text(node)}" for node in function.node_def]
    lines += [f"  @return {name_text(name)} = {input_text(value)}" for name, value in function.control_ret.items()]
    lines += [f"  return {name_text(name)} = {input_text(value)}" for name, value in _returns(function)]
    return "\n" + "\n".join(lines) + "\n}\n"


def node_text(node: NodeDef) -> str:
    """`name = Op[k=v, ...](inputs) @ control inputs`."""
    entries = attrs_text(node.attr)
    if node.device:
        entries.append(_device_text(node.device))
    data = [input_text(name) for name in node.input if not name.startswith("^")]
    control = [input_text(name[1:]) for name in node.input if name.startswith("^")]
    attrs = f"[{', '.join(entries)}]" if entries else ""
    text = f"{name_text(node.name)} = {name_text(node.op)}{attrs}({', '.join(data)})"
    return f"{text} @ {', '.join(control)}" if control else text


def nodes_text(nodes: Sequence[NodeDef]) -> str:
    """Print nodes with `_Arg` and `_Retval` nodes as a signature: `(x:float) -> (y:float) {`, body, `}`."""
    args = sorted([node for node in nodes if node.op in ARG], key=_index)
    rets = sorted([node for node in nodes if node.op in RETVAL], key=_index)
    inputs = ", ".join([f"{name_text(node.name)}:{_type_and_device(node)}" for node in args])
    outputs = ", ".join(
        [f"{input_text(name)}:{_type_and_device(node)}" for node in rets for name in node.input if not name.startswith("^")]
    )
    body = "".join([f"  {node_text(node)}\n" for node in nodes if node.op not in ARG and node.op not in RETVAL])
    return f"\n({inputs}) -> ({outputs}) {{\n{body}}}\n"


def reads_as_stateful(nodes: Iterable[NodeDef], look_up: LookUp | None = None) -> bool:
    """True iff parsing the text without a stateful mark gives a stateful function.

    That is so if an op of the body is stateful or unknown (probably a function).
    """
    look = look_up or op_registry.look_up_op_def
    for op in {node.op for node in nodes}:
        try:
            if look(op).is_stateful:
                return True
        except GraphError:
            return True
    return False


def _returns(function: FunctionDef) -> list[tuple[str, str]]:
    """The returns in the order of the outputs; additional ones come last."""
    outputs = [arg.name for arg in function.signature.output_arg if arg.name in function.ret]
    return [(name, function.ret[name]) for name in dict.fromkeys([*outputs, *function.ret])]


def _assignments(items: Iterable[tuple[str, AttrValue]]) -> list[str]:
    return sorted([f"{name_text(key)} = {attr_value_text(value)}" for key, value in items])


def _device_text(device: str) -> str:
    """The short device name, as in TensorFlow, followed by the full one if the short one is lossy."""
    short = _short_device(device) or "<FAILED_TO_PARSE>"
    return f"device={short}" if device == f"/device:{short}" else f"device={short} {quote(device.encode(errors='surrogatepass'))}"


def _short_device(device: str) -> str | None:
    try:
        spec = parse_full_name(device)
    except InvalidArgumentError:
        return None
    return f"{spec.type or ''}:{spec.id or 0}"


def _type_and_device(node: NodeDef) -> str:
    dtype = node.attr.get("T")
    text = dtype.text if isinstance(dtype, DType) else "INVALID"
    if not node.device:
        return text
    return f"{text}@{_short_device(node.device) or '<FAILED_TO_PARSE_DEVICE>'}"


def _index(node: NodeDef) -> int:
    index = node.attr.get("index")
    return index if isinstance(index, int) else -1
