"""Summaries of models of other frameworks, for terminals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphcore.frontends.words import weight_bytes

if TYPE_CHECKING:
    from graphcore.frontends.record import ForeignRecord
    from graphcore.graph import Graph


def model_sections(graph: Graph, record: ForeignRecord) -> Iterator[tuple[str, list[str]]]:
    """The sections of a summary: kind, facts, inputs, outputs, weights and functions of a model."""
    source = record.source
    by_role: dict[str, list[str]] = {"placeholder": [], "return": []}
    for node in graph.op_nodes():
        lines = by_role.get(node.registration.traits.role)
        if lines is not None:
            tensor = node.outputs[0] if node.outputs else node.inputs[0] if node.inputs else None
            lines.append(node.name if tensor is None else f"{node.name}  {tensor.dtype.text} {graph.shape_text(tensor)}")
    yield "model", [", ".join(filter(None, (source.kind, source.name, source.producer)))]
    yield "facts", [f"{name}: {text}" for name, text in source.facts.items()]
    yield "notes", list(source.notes)
    yield "inputs", by_role["placeholder"]
    yield "outputs", by_role["return"]
    weights = [weight_bytes(node.weight) for node in record.nodes.values() if node.weight is not None]
    if weights:
        unknown = sum(size < 0 for size in weights)
        more = f", the size of {unknown:,} is unknown" if unknown else ""
        yield "weights", [f"{sum(size for size in weights if size > 0):,} bytes in {len(weights):,} tensors{more}"]
    classes = Counter(record.classes.values())
    yield "modules", [f"{count:>6}  {kind}" for kind, count in classes.most_common(20)]
    yield "functions", [function.name for function in source.functions.values()][:20]
