"""The summary of one scope: at most so many groups and items, in the order of the dataflow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from graphcore.frontends.record import foreign_of
from widgets.scene.structure.alike import Symbols, differences, main_ops
from widgets.scene.structure.decompose import Order, Span, elements, elements_within
from widgets.scene.structure.evidence import telling_layers
from widgets.scene.structure.items import Items
from widgets.scene.structure.naming import (
    begins_layer,
    common_name,
    common_scope,
    is_foreign,
    is_layer_norm,
    is_scaled,
    is_telling,
    kind_name,
    layer_of,
    ops_name,
    shape_words,
    shared_words,
)
from widgets.scene.structure.repeats import Element, Kernel, find_runs
from widgets.scene.structure.serving import is_heavy, is_plumbing
from widgets.scene.structure.widths import Widths, is_padded

if TYPE_CHECKING:
    from graphcore.graph import Node, Tensor

_Part: TypeAlias = "tuple[Span, list[Span]]"
"""An interval with its instances; none if it is not a repeat."""
PARTS: Final = 30
"""The most parts of a summary."""
MANY: Final = 100
"""Elements and repeats beyond this number are not a description: another way to cut the order is tried."""
LAYERS_ABOVE: Final = 16
"""With more parts than this, operations are joined to layers: a convolution with its normalisation and activation."""
TALL: Final = 12
"""An interval of at least so many items may have repeats in itself."""
SMALL: Final = 3
"""So many operations may belong to the layer before them: a normalisation with known statistics."""


@dataclass(slots=True)
class Bunch:
    """Items that are shown together; a repeat has `instances`, a single item is its own bunch.

    Attributes:
        items: all items inside, in order.
        label: a short name, "" for a single item.
        output: the tensor that it passes on.
        instances: the bunches of a repeat.
        differences: the ops in which the instances differ, in words.
        shared: parameters of all instances.
        is_plain: true if the items have no structure to find.
    """

    items: list[int]
    label: str = ""
    output: Tensor | None = None
    instances: list[Bunch] = field(default_factory=list)
    differences: str = ""
    shared: list[int] = field(default_factory=list)
    is_plain: bool = False


def summarise(items: Items, sequence: Sequence[int], serving: Collection[str], *, most: int = PARTS) -> list[Bunch]:
    """Group acyclic items into at most `most` bunches. The arrows between bunches form no cycle.

    Args:
        sequence: the items in the order of evaluation.
        serving: the names of nodes that are parameters, constants or plumbing.
    """
    weak = [all(node.name in serving for node in items.members[item]) for item in range(len(items))]
    order = Order(items, sequence, weak)
    symbols = Symbols()
    ops = [main_ops(items.members[item], serving) for item in sequence]
    marks = [_mark(items, item, serving, symbols) for item in sequence]
    widths = Widths(items, serving)
    kernels = [_kernels(items.members[item], widths) for item in sequence]
    summary = _Summary(order, ops, weak, serving)

    def element(span: Span) -> Element:
        return Element(
            symbols.of_span(order, marks, span),
            _total(ops, span),
            widths.known(summary.output(span)),
            tuple([kernel for place in range(*span) for kernel in kernels[place]]),
        )

    found = _best_found(order, element)
    if len(found) == 1 and not found[0][1]:  # nothing comes apart
        found = [(Span(position, position + 1), []) for position in range(len(items))]
    return summary.bunches(_shortened(found, order, ops, most))


def _best_found(order: Order, element: Callable[[Span], Element]) -> list[_Part]:
    """The elements and repeats of an order, from the way to cut it that describes it best."""
    best: list[_Part] | None = None
    cuts: list[list[Span]] = []
    for fine, most in ((False, 1), (True, 1), (False, 2)):
        if most > 1 and best is not None and _rank(best, len(order.order))[0]:
            break
        spans = [part for stretch in _stretches(order) for part in elements(order, stretch, fine=fine, most=most)]
        if spans in cuts:
            continue
        cuts.append(spans)
        found = _found([inner for part in spans for inner in _repeats_within(order, part, element)], element)
        if best is None or _rank(found, len(order.order)) > _rank(best, len(order.order)):
            best = found
    return best or []


def _found(spans: list[Span], element: Callable[[Span], Element]) -> list[_Part]:
    """The elements in their order, with repeats joined."""
    found: list[_Part] = []
    place = 0
    for run in find_runs([element(span) for span in spans]):
        found.extend((span, []) for span in spans[place : run.span.start])
        instances = [Span(spans[each.start].start, spans[each.stop - 1].stop) for each in run.instances]
        found.append((Span(instances[0].start, instances[-1].stop), instances))
        place = run.span.stop
    found.extend((span, []) for span in spans[place:])
    return found


def _rank(found: list[_Part], size: int) -> tuple[bool, int, int]:
    """Order of preference: few repeats are most of it; few items, each repeat counted once; few parts."""
    repeats = [span.size for span, instances in found if len(instances) > 1]
    described = sum(instances[0].size if instances else span.size for span, instances in found)
    return 2 * sum(repeats) > size and 2 * len(repeats) <= PARTS and len(found) <= MANY, -described, -len(found)


def _repeats_within(order: Order, span: Span, element: Callable[[Span], Element]) -> list[Span]:
    """The interval in parts if most of it is a repeat whose instances all use something from before.

    Such as the layers of a decoder, which use what the encoder makes.
    """
    parts = elements_within(order, span) if span.size >= TALL else [span]
    if len(parts) < 4 or 2 * max(part.size for part in parts) > span.size:
        return [span]
    for run in find_runs([element(part) for part in parts]):
        instances = [Span(parts[each.start].start, parts[each.stop - 1].stop) for each in run.instances]
        covered = instances[-1].stop - instances[0].start
        if len(instances) > 1 and 2 * covered > span.size and all(_uses_before(order, each, span.start) for each in instances):
            return parts
    return [span]


def _uses_before(order: Order, span: Span, start: int) -> bool:
    """True iff an interval uses tensors from before `start`."""
    return any(source < start for place in range(*span) for source in order.inputs[place])


_NUMBER: Final = re.compile(r"[._]?\d+$", re.ASCII)
"""The number of a module among those of a list."""


class _Summary:
    """Makes bunches of intervals, with names and shapes."""

    def __init__(self, order: Order, ops: list[Counter[str]], weak: list[bool], serving: Collection[str]) -> None:
        self.serving = serving
        self.order = order
        self.ops = ops
        self.weak = weak
        self.names = [node.name for nodes in order.items.members for node in nodes[:1]]
        first = next((node for nodes in order.items.members for node in nodes), None)
        foreign = None if first is None else foreign_of(first.graph)
        self.classes = {} if foreign is None else foreign.classes
        main_items = [item for item, main in zip(order.order, ops, strict=True) if main]
        self.around = common_scope([node.name for item in main_items for node in order.items.members[item]]) if self.classes else ""
        self.within = shared_words([self.names[item] for item, main in zip(order.order, ops, strict=True) if main])

    def output(self, span: Span) -> Tensor | None:
        """The first output of the last item that is not serving."""
        for position in range(span.stop - 1, span.start - 1, -1):
            item = self.order.order[position]
            if not self.weak[item]:
                nodes = self.order.items.members[item]
                main = nodes[0] if len(nodes) == 1 else _last([node for node in nodes if node.name not in self.serving])
                return main.outputs[0] if main.outputs else None
        return None

    def bunches(self, found: list[_Part]) -> list[Bunch]:
        """A bunch for each interval, with different labels."""
        made = [self._bunch(span, instances) for span, instances in found]
        _tell_apart([bunch for bunch in made if len(bunch.items) > 1])
        return made

    def _bunch(self, span: Span, instances: list[Span]) -> Bunch:
        items = self.order.order[span.start : span.stop]
        inner = [self._bunch(each, []) for each in instances] if len(instances) > 1 else []
        if inner:
            for number, bunch in enumerate(inner, 1):
                bunch.label = bunch.label or f"{number} of {len(inner)}"
            _tell_apart(inner)
        first = instances[-1] if instances else span
        label = self._label(items, first, instances)
        told = differences([self._ops(each) for each in instances]) if inner else ""
        return Bunch(list(items), label if len(items) > 1 else "", self.output(span), inner, told)

    def _name(self, items: Sequence[int]) -> str:
        return common_name([self.names[item] for item in items if not self.weak[item]], self.within)

    def _label(self, items: Sequence[int], usual: Span, instances: Sequence[Span]) -> str:
        module = self._module(instances or [usual])
        if module:
            return module
        name = self._name(items)
        if is_telling(name):
            return name
        ops = self._ops(usual) or self._all_ops(usual)
        return (
            kind_name(ops, telling_layers(self._nodes(usual), self.serving))
            or name
            or ops_name(ops, is_normalised=self._is_normalised(usual))
        )

    def _module(self, spans: Sequence[Span]) -> str:
        """The module that each of some intervals is: `layers LlamaDecoderLayer`; "" if they are none."""
        if not self.classes:
            return ""
        found = {self._module_of(span) for span in spans}
        return found.pop() if len(found) == 1 else ""

    def _module_of(self, span: Span) -> str:
        items = [item for item in self.order.order[span.start : span.stop] if not self.weak[item]]
        nodes = [node for item in items for node in self.order.items.members[item] if node.name not in self.serving]
        path = common_scope([node.name for node in nodes if not is_plumbing(node)])  # the dropout before a layer is not its own
        kind = "" if len(path) <= len(self.around) else self.classes.get(path, "")
        return f"{_NUMBER.sub('', path.rpartition('/')[2])} {kind}" if kind else ""

    def _nodes(self, span: Span) -> list[Node]:
        return [node for item in self.order.order[span.start : span.stop] for node in self.order.items.members[item]]

    def _all_ops(self, span: Span) -> Counter[str]:
        return Counter([node.op for node in self._nodes(span)])

    def _is_normalised(self, span: Span) -> bool:
        ops = self._ops(span)
        return is_scaled(ops) and not is_layer_norm(ops) and is_layer_norm(self._all_ops(span))

    def _ops(self, span: Span) -> Counter[str]:
        return _total(self.ops, span)


def _total(ops: Sequence[Counter[str]], span: Span) -> Counter[str]:
    """The ops of an interval."""
    total: Counter[str] = Counter()
    for place in range(*span):
        total.update(ops[place])
    return total


def _mark(items: Items, item: int, serving: Collection[str], symbols: Symbols) -> int:
    nodes = [node for node in items.members[item] if node.name not in serving]
    return symbols.of_nodes(nodes or items.members[item][:1])


def _kernels(nodes: Sequence[Node], widths: Widths) -> list[Kernel]:
    """The products and convolutions among some nodes."""
    return [_kernel(node, widths) for node in nodes if is_heavy(node)]


def _kernel(node: Node, widths: Widths) -> Kernel:
    known = widths.known(node.outputs[0])
    width = known[-1] if known else None
    if layer_of(node.op) == "product" or len(node.inputs) < 2:
        return Kernel(node.op, width=width)
    dims, strides = node.inputs[1].shape.dims, node.attr.get("strides", node.attr.get("stride"))
    window = None if dims is None else dims[2:] if is_foreign(node) else dims[:-2]
    pointwise = None if window is None or None in window else set(window) <= {1}
    return Kernel(node.op, pointwise, tuple(strides) if isinstance(strides, list | tuple) else (), width, is_padded(node))


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
    inside = _total(ops, span)
    return inside.total() > SMALL or any(begins_layer(op) or not op[0].isalpha() for op in inside)


def _last(nodes: Sequence[Node]) -> Node:
    """The node of a part whose output leaves it."""
    used = {tensor.node.name for node in nodes for tensor in node.inputs}
    ends = [node for node in nodes if node.name not in used and node.outputs]
    return ends[-1] if ends else nodes[0]


def _tell_apart(bunches: list[Bunch]) -> None:
    """Give bunches of the same label different ones: by shape, then by number."""
    for words in (lambda bunch, _: shape_words(None if bunch.output is None else bunch.output.shape.dims), lambda _, number: str(number)):
        labels = Counter(bunch.label for bunch in bunches)
        numbers: Counter[str] = Counter()
        for bunch in bunches:
            label = bunch.label
            if labels[label] > 1:
                numbers[label] += 1
                bunch.label = f"{label} {words(bunch, numbers[label])}".rstrip()
