"""A one-page text summary of a graph, for a first look at an unknown file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from graphcore.api.foreign_summary import model_sections
from graphcore.attrs import TensorValue
from graphcore.frontends.record import foreign_of
from graphcore.graph import Graph, Node, Tensor
from graphcore.plumbing import ARG, FEEDABLE
from graphcore.text import debug_string

_INPUTS: Final = FEEDABLE | ARG
_MOST_LINES: Final = 20
_WIDTH: Final = 12


def summarize_graph(graph: Graph) -> str:
    """Summarise a graph as text: nodes, inputs, outputs, signatures, ops, functions, constants, errors."""
    foreign = foreign_of(graph)
    if foreign is not None:
        counts = Counter(node.op for node in graph.op_nodes())
        model = [(title, _limited(lines)) for title, lines in model_sections(graph, foreign)]
        ops = _limited([f"{count:>6,}  {op}" for op, count in counts.most_common()])
        sections = [*model, ("nodes", [f"{len(graph):,}"]), ("ops", ops), ("scopes", _scopes(graph))]
        return "".join(_section(title, lines) for title, lines in sections if lines)
    sections = [
        ("nodes", [f"{len(graph):,} with {sum(len(node.node_def.input) for node in graph.op_nodes()):,} inputs"]),
        ("versions", [_versions(graph)]),
        ("inputs", _limited([_tensor_line(node.outputs[0]) for node in graph.op_nodes() if node.op in _INPUTS and node.outputs])),
        ("outputs", _limited([_tensor_line(tensor) for tensor in _results(graph)])),
        ("signatures", _signatures(graph.signatures)),
        ("ops", _ops(graph)),
        ("scopes", _scopes(graph)),
        ("functions", _limited([_heading(debug_string(function)) for function in graph.library])),
        ("constants", _constants(graph)),
        ("errors", _limited([f"{node.name}: {node.error.message}" for node in graph.op_nodes() if node.error is not None])),
    ]
    return "".join(_section(title, lines) for title, lines in sections if lines)


def graph_in_brief(graph: Graph) -> str:
    """A graph in a few lines: its inputs, the nodes of each scope and of each op, its first errors."""
    scopes = Counter(node.name.partition("/")[0] for node in graph.op_nodes() if "/" in node.name)
    fed = [node for node in graph.op_nodes() if node.outputs and (node.op in _INPUTS or node.registration.traits.role == "placeholder")]
    inputs = [_tensor_line(node.outputs[0]).partition("  (")[0] for node in fed]
    errors = [f"{node.name}: {node.error.message.partition(chr(10))[0]}" for node in graph.op_nodes() if node.error is not None]
    lines = [
        ("inputs", _in_one_line(inputs)),
        ("scopes", _in_one_line([f"{scope}/ {count:,}" for scope, count in scopes.most_common()])),
        ("ops", _in_one_line([f"{count:,} {op}" for op, count in Counter(node.op for node in graph.op_nodes()).most_common()])),
        ("errors", _in_one_line(errors, most=2)),
    ]
    return "\n".join([repr(graph), *(f"  {title:8} {text}" for title, text in lines if text)])


def _in_one_line(parts: list[str], most: int = 8) -> str:
    more = f" and {len(parts) - most:,} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


def _section(title: str, lines: Iterable[str]) -> str:
    return "".join(f"{title if i == 0 else '':{_WIDTH}}{line}\n" for i, line in enumerate(lines))


def _limited(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], f"... and {len(lines) - _MOST_LINES:,} more"]


def _versions(graph: Graph) -> str:
    versions = graph.versions
    bad = f", not for {', '.join(map(str, versions.bad_consumers))}" if versions.bad_consumers else ""
    return f"producer {versions.producer}, min consumer {versions.min_consumer}{bad}"


def _results(graph: Graph) -> list[Tensor]:
    """The outputs without consumers."""
    return [tensor for node in graph.op_nodes() if not graph.edge_store.has_successors(node) for tensor in node.outputs]


def _tensor_line(tensor: Tensor) -> str:
    name = tensor.name.removesuffix(":0")
    return f"{name}  {tensor.dtype.text} {tensor.shape}  ({tensor.node.op})"


def _signatures(signatures: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, signature in signatures.items():
        lines.append(f"{name}  {signature.method_name}".rstrip())
        for arrow, infos in (("<-", signature.inputs), ("->", signature.outputs)):
            lines += [f"  {arrow} {key}  {info.dtype.text} {info.shape}  {info.name}" for key, info in infos.items()]
    return lines


def _ops(graph: Graph) -> list[str]:
    counts = Counter(node.op for node in graph.op_nodes())
    notes = {node.op: _note(node) for node in graph.op_nodes() if node.is_opaque or node.registration.is_function}
    unknown = sum(note == _UNKNOWN for note in notes.values())
    head = f"{len(counts)} kinds" + (f", {unknown} of them not registered: their nodes can be seen, but not run" if unknown else "")
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [head, *_limited([f"{count:>7,}  {op}{notes.get(op, '')}" for op, count in order])]


_UNKNOWN: Final = "  (not registered)"


def _note(node: Node) -> str:
    return _UNKNOWN if node.is_opaque else "  (function)"


def _scopes(graph: Graph) -> list[str]:
    counts = Counter(name.partition("/")[0] for name in (node.name for node in graph.op_nodes()) if "/" in name)
    bytes_of: Counter[str] = Counter()
    for node in graph.op_nodes():
        if "/" in node.name:
            bytes_of[node.name.partition("/")[0]] += _constant_bytes(node)
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _limited([f"{count:>7,}  {scope}/  {_size(bytes_of[scope])}".rstrip() for scope, count in order])


def _constants(graph: Graph) -> list[str]:
    sizes = {node.name: _constant_bytes(node) for node in graph.op_nodes()}
    sizes = {name: size for name, size in sizes.items() if size}
    if not sizes:
        return []
    largest = max(sizes, key=lambda name: sizes[name])
    return [f"{_size(sum(sizes.values()))} in {len(sizes):,}; the largest is {largest} with {_size(sizes[largest])}"]


def _constant_bytes(node: Node) -> int:
    """The bytes of the constants in the node's attrs; an invalid declared size counts as none."""
    return sum(max(value.num_bytes(), 0) for value in node.node_def.attr.values() if isinstance(value, TensorValue))


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes" if count else ""


def _heading(text: str) -> str:
    """The first line of a function's text."""
    return text.strip().partition("\n")[0].removesuffix(" {")
