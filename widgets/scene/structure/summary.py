"""The summary of one scope: at most so many groups and items, in the order of the dataflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from widgets.scene.structure.alike import Symbols, differences, main_ops
from widgets.scene.structure.decompose import Order, Span, elements, evaluation_order
from widgets.scene.structure.items import Dims, Items
from widgets.scene.structure.naming import begins_layer, common_name, ops_name, shape_words, shared_words
from widgets.scene.structure.repeats import Element, find_runs

if TYPE_CHECKING:
    from graphcore.graph import Node

_Part: TypeAlias = "tuple[Span, list[Span]]"
"""An interval with its instances; none if it is not a repeat."""
PARTS: Final = 30
"""The most parts of a summary."""
LAYERS_ABOVE: Final = 16
"""With more parts than this, operations are joined to layers: a convolution with its normalisation and activation."""


@dataclass(slots=True)
class Bunch:
    """Items that are shown together; a repeat has `instances`, a single item is its own bunch.

    Attributes:
        items: all items inside, in order.
        label: a short name, "" for a single item.
        instances: the bunches of a repeat.
        differences: the ops in which the instances differ, in words.
    """

    items: list[int]
    label: str = ""
    shape: Dims = None
    instances: list[Bunch] = field(default_factory=list)
    differences: str = ""


def summarise(items: Items, serving: Collection[str], *, most: int = PARTS) -> list[Bunch]:
    """Group acyclic items into at most `most` bunches. The arrows between bunches form no cycle.

    Args:
        serving: the names of nodes that are parameters, constants or plumbing.
    """
    sequence = evaluation_order(items)
    weak = [all(node.name in serving for node in items.members[item]) for item in range(len(items))]
    order = Order(items, sequence, weak)
    symbols = Symbols()
    ops = [main_ops(items.members[item], serving) for item in sequence]
    marks = [_mark(items, item, serving, symbols) for item in sequence]
    summary = _Summary(order, ops, weak)
    spans = [part for stretch in _stretches(order) for part in elements(order, stretch)]
    row = [
        Element(symbols.of_span(order, marks, span), sum((ops[place] for place in range(*span)), Counter()), summary.shape(span))
        for span in spans
    ]
    found: list[_Part] = []
    place = 0
    for run in find_runs(row):
        found.extend((span, []) for span in spans[place : run.span.start])
        instances = [Span(spans[each.start].start, spans[each.stop - 1].stop) for each in run.instances]
        found.append((Span(instances[0].start, instances[-1].stop), instances))
        place = run.span.stop
    found.extend((span, []) for span in spans[place:])
    if len(found) == 1 and not found[0][1]:  # nothing comes apart
        found = [(Span(position, position + 1), []) for position in range(len(items))]
    return summary.bunches(_shortened(found, order, ops, most))


class _Summary:
    """Makes bunches of intervals, with names and shapes."""

    def __init__(self, order: Order, ops: list[Counter[str]], weak: list[bool]) -> None:
        self.order = order
        self.ops = ops
        self.weak = weak
        self.names = [node.name for nodes in order.items.members for node in nodes[:1]]
        self.within = shared_words([name for item, name in enumerate(self.names) if not weak[item]])

    def shape(self, span: Span) -> Dims:
        """The shape of the first output of the last item that is not serving."""
        for position in range(span.stop - 1, span.start - 1, -1):
            item = self.order.order[position]
            if not self.weak[item]:
                nodes = self.order.items.members[item]
                main = nodes[0] if len(nodes) == 1 else _last(nodes)
                return main.outputs[0].shape.dims if main.outputs else None
        return None

    def bunches(self, found: list[_Part]) -> list[Bunch]:
        """A bunch for each interval, with different labels."""
        made = [self._bunch(span, instances) for span, instances in found]
        _tell_apart([bunch for bunch in made if len(bunch.items) > 1])
        return made

    def _bunch(self, span: Span, instances: list[Span]) -> Bunch:
        items = self.order.order[span.start : span.stop]
        inner = [self._bunch(each, []) for each in instances]
        if inner:
            for number, bunch in enumerate(inner, 1):
                bunch.label = bunch.label or f"{number} of {len(inner)}"
            _tell_apart(inner)
        first = instances[-1] if instances else span
        label = self._name(items) or ops_name(self._ops(first))
        told = differences([self._ops(each) for each in instances]) if instances else ""
        return Bunch(list(items), label if len(items) > 1 else "", self.shape(span), inner, told)

    def _name(self, items: Sequence[int]) -> str:
        return common_name([self.names[item] for item in items if not self.weak[item]], self.within)

    def _ops(self, span: Span) -> Counter[str]:
        return sum((self.ops[place] for place in range(*span)), Counter())


def _mark(items: Items, item: int, serving: Collection[str], symbols: Symbols) -> int:
    nodes = [node for node in items.members[item] if node.name not in serving]
    return symbols.of_nodes(nodes or items.members[item][:1])


def _stretches(order: Order) -> list[Span]:
    """The forward pass and the backward pass, each by itself."""
    stops = [
        place
        for place in range(1, len(order.order))
        if order.items.backward[order.order[place]] != order.items.backward[order.order[place - 1]]
    ]
    return [Span(start, stop) for start, stop in zip([0, *stops], [*stops, len(order.order)], strict=True) if stop > start]


def _shortened(found: list[_Part], order: Order, ops: list[Counter[str]], most: int) -> list[_Part]:
    """Join neighbours until there are few enough: to layers, then all between two repeats, then any."""
    if len(found) > min(most, LAYERS_ABOVE):
        found = _joined(found, lambda _, span: not _begins_layer(span, ops), order, ops)
    if len(found) > most:
        rest = most - sum(1 for _, instances in found if instances)
        singles = sum(1 for _, instances in found if not instances)
        size = max(2, -(-singles // max(1, rest // 2)))
        found = _joined(found, lambda count, _: count < size, order, ops)
    while len(found) > most:
        size = -(-len(found) // most)
        found = [
            (Span(found[start][0].start, found[min(start + size, len(found)) - 1][0].stop), []) for start in range(0, len(found), size)
        ]
    return found


def _joined(found: list[_Part], may_join: Callable[[int, Span], bool], order: Order, ops: list[Counter[str]]) -> list[_Part]:
    """Join neighbours without instances as long as `may_join(number so far, next span)`.

    Inputs and outputs stay by themselves.
    """
    result: list[_Part] = []
    backward = order.items.backward
    count = 0
    for span, instances in found:
        silent = not any(ops[place] for place in range(*span))
        if count and not silent and not instances and may_join(count, span):
            before = result[-1][0]
            if backward[order.order[before.start]] == backward[order.order[span.start]]:
                result[-1] = (Span(before.start, span.stop), [])
                count += 1
                continue
        result.append((span, instances))
        count = 0 if instances or silent else 1
    return result


def _begins_layer(span: Span, ops: list[Counter[str]]) -> bool:
    inside = sum((ops[place] for place in range(*span)), Counter())
    return inside.total() != 1 or any(begins_layer(op) or not op[0].isalpha() for op in inside)


def _last(nodes: Sequence[Node]) -> Node:
    """The node of a part whose output leaves it."""
    used = {tensor.node.name for node in nodes for tensor in node.inputs}
    ends = [node for node in nodes if node.name not in used and node.outputs]
    return ends[-1] if ends else nodes[0]


def _tell_apart(bunches: list[Bunch]) -> None:
    """Give bunches of the same label different ones: by shape, then by number."""
    for words in (lambda bunch, _: shape_words(bunch.shape), lambda _, number: str(number)):
        labels = Counter(bunch.label for bunch in bunches)
        numbers: Counter[str] = Counter()
        for bunch in bunches:
            label = bunch.label
            if labels[label] > 1:
                numbers[label] += 1
                bunch.label = f"{label} {words(bunch, numbers[label])}".rstrip()
