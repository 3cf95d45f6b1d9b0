"""Explains shapes by running shape functions again, backwards from the result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from graphcore.attrs import Array, AttrValue, TensorValue
from graphcore.definitions.value_text import summarize_attr_value
from graphcore.dtypes import DType
from graphcore.errors import GraphError
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.provenance.opaque_origins import opaque_step
from graphcore.graph.provenance.origins import Fact, How, Origin, ShapeExplanation
from graphcore.graph.provenance.value_origins import Element, element_sources
from graphcore.graph.provenance.what_if import KnownPart, Result, needed, replay
from graphcore.graph.shapes.constant_values import why_not_evaluated
from graphcore.graph.shapes.function_shapes import why_not_followed
from graphcore.graph.shapes.loop_shapes import is_loop_head
from graphcore.graph.shapes.symbolic_refiner import Symbols
from graphcore.inference import DimensionHandle, ShapeHandle
from graphcore.plumbing import CONST

_MOST_FACTS: Final = 20_000
"""The most steps of one explanation behind forks, since a graph may lead back to everything.

The way up to the first fork is followed to its end.
"""
_DEEPEST: Final = 40
_MOST_STEPS: Final = 60
"""Of a longer way without forks the middle is left out."""
_MOST_STEPS_BEHIND_FORKS: Final = 4
"""The same behind forks: origins are within each other, and what copies or writes them goes as deep."""
_MOST_SHOWN: Final = 16
"""The most elements of a value in a text."""
_GUESS: Final = 7
"""A size in place of an unknown one, to find the results that depend on it."""

_NUMBERS: Final = re.compile(r"[-\d?,.\[\]]+")

_Local = tuple[How, str, list[Fact], int | None]
"""The reason in words, the origin, the number."""


class KnownSteps:
    """Single steps backwards, to be shared by explanations of one graph while it does not change.

    Attributes:
        steps: the step from each fact.
        agreeing: the dimensions that must agree with each, of steps that are shown.
    """

    __slots__ = ("agreeing", "steps")

    def __init__(self) -> None:
        self.steps: dict[Fact, _Local] = {}
        self.agreeing: dict[Fact, tuple[Fact, ...]] = {}

    def step(self, fact: Fact, tensor: Tensor) -> _Local:
        """One step backwards from `fact`, which is about `tensor`."""
        local = self.steps.get(fact)
        if local is None:
            local = self.steps[fact] = _Step(fact, tensor).explain()
        return local

    def agreeing_with(self, fact: Fact, tensor: Tensor) -> tuple[Fact, ...]:
        """The dimensions that must agree with this one."""
        if fact.kind != "dimension" or self.steps[fact][0] not in {"passed", "computed"}:
            return ()
        facts = self.agreeing.get(fact)
        if facts is None:
            facts = self.agreeing[fact] = _agreeing(fact, tensor)
        return facts


def explain_tensor(tensor: Tensor) -> ShapeExplanation:
    """Explain the shape of `tensor`, a tensor of a settled graph, by dimension."""
    node = tensor.node
    trail = _Trail(node.graph.symbols(), KnownSteps())
    return ShapeExplanation(
        tensor=tensor.name,
        dtype=tensor.dtype.text,
        shape=node.graph.shape_text(tensor),
        rank=trail.origin(Fact(tensor.name, "rank"), tensor),
        dimensions=tuple(trail.origins("dimension", tensor)),
        held=tuple(trail.origins("held", tensor)),
        error="" if node.error is None else node.error.message,
        chains=() if node.error is None else node.error.chains,
    )


def explain_sizes(tensor: Tensor, steps: KnownSteps, most: int) -> list[Origin]:
    """The origins of the dimensions of `tensor` and of its resource; of its rank if it has neither.

    Args:
        tensor: a tensor of a settled graph.
        steps: those of earlier explanations; new ones are added.
        most: the most steps behind forks.
    """
    trail = _Trail(tensor.node.graph.symbols(), steps, most)
    origins = trail.origins("dimension", tensor) + trail.origins("held", tensor)
    return origins or ([trail.origin(Fact(tensor.name, "rank"), tensor)] if tensor.shape.dims is None else [])


def explain_fact(tensor: Tensor, fact: Fact, steps: KnownSteps, most: int) -> Origin:
    """Explain one fact about the shape of `tensor`; the other arguments are those of `explain_sizes`."""
    return _Trail(tensor.node.graph.symbols(), steps, most).origin(fact, tensor)


def explain_error(node: Node) -> tuple[Origin, ...]:
    """The chains of a clash at `node`: a smallest set of facts that its shape function refuses."""
    wrong = replay(node).error
    if wrong is None:
        return ()
    kind = _kind_of(wrong)
    parts = needed(node, lambda result: result.error is not None and _kind_of(result.error) == kind)
    merged = _merged_values([(_fact_of(node, part), node.inputs[part.slot]) for part in parts])
    trail = _Trail(node.graph.symbols(), KnownSteps())
    chains = [trail.origin(fact, tensor) for fact, tensor in merged]
    if len({fact.tensor for fact, _ in merged}) < 2 or _names_attr(node, wrong):
        chains.append(_required(node))
    return tuple(chains)


def _names_attr(node: Node, error: GraphError) -> bool:
    """True iff a number in the error is one of the node's attrs."""
    named = re.findall(r"\d+", error.message.partition(" for '")[0])
    lengths = {arg.number_attr for arg in node.op_def.input_arg}
    return any(
        type(value) is int and value > 1 and str(value) in named and name not in lengths for name, value in node.node_def.attr.items()
    )


def _kind_of(error: GraphError) -> str:
    """The text of an error without numbers."""
    return _NUMBERS.sub("#", error.message.partition(" for '")[0].partition(". Shapes are")[0])


def _merged_values(pairs: list[tuple[Fact, Tensor]]) -> list[tuple[Fact, Tensor]]:
    """The facts with elements of a value merged to the value if all are needed."""
    merged: dict[Fact, Tensor] = {}
    for fact, tensor in pairs:
        size = tensor.shape.num_elements
        elements = sum(other.kind == "element" and other.tensor == fact.tensor for other, _ in pairs)
        whole = fact.kind == "element" and elements == size
        merged[Fact(fact.tensor, "value") if whole else fact] = tensor
    return list(merged.items())


def _required(node: Node) -> Origin:
    """The op's side of a clash: a required rank, or an attr that does not fit."""
    settings = _settings(node)
    text = f"`{node.name}` (op {node.op}) asks for it" + (f", with {settings}" if settings else "")
    return Origin(Fact(f"{node.name}:0", "requirement"), None, "required", node.name, node.op, text, node.source)


class _Trail:
    """One explanation, with a cache of origins."""

    def __init__(self, symbols: Symbols, steps: KnownSteps, most: int = _MOST_FACTS) -> None:
        self._steps = steps
        self._most = most
        self._symbols = symbols
        self._found: dict[Fact, Origin] = {}
        self._in_progress: set[Fact] = set()
        self._behind_forks = 0
        self._left_out: dict[Fact, int] = {}

    def origins(self, kind: Literal["dimension", "held"], tensor: Tensor) -> list[Origin]:
        """The origins of all dimensions of `tensor`, or of the resource that it stands for."""
        data = (tensor.node.handle_data or {}).get(tensor.index)
        shape = _handle(tensor) if kind == "dimension" else data[0].shape if data else ShapeHandle()
        return [self.origin(Fact(tensor.name, kind, index), tensor) for index in range(len(shape.dims or ()))]

    def origin(self, fact: Fact, tensor: Tensor, depth: int = 0) -> Origin:
        """The origin of `fact`, which is about `tensor`."""
        chain: list[tuple[Fact, Tensor, _Local]] = []
        while fact not in self._found and fact not in self._in_progress and (not depth or self._behind_forks < self._most):
            self._in_progress.add(fact)
            self._behind_forks += depth > 0
            local = self._steps.step(fact, tensor)
            chain.append((fact, tensor, local))
            if len(local[2]) != 1:
                break
            fact = local[2][0]
            tensor = _tensor(tensor.node, fact)
        because = self._because(chain, fact, tensor, depth)
        most = _MOST_STEPS_BEHIND_FORKS if depth else _MOST_STEPS
        if len(chain) > most + 1:
            half, left_out = most // 2, len(chain) - most
            skipped, at, (_, _, _, size) = chain[half]
            middle: _Local = ("cut", f"is passed on by {left_out} more nodes", [], size)
            chain = [*chain[:half], (skipped, at, middle), *chain[half + left_out :]]
            self._left_out[skipped] = left_out
        for link, at, (how, text, _, size) in reversed(chain):
            node = at.node
            merged = () if how == "cut" else self._steps.agreeing_with(link, at)
            value = _value_text(link, at) or self._name(link, at)
            origin = Origin(link, size, how, node.name, node.op, text, node.source, because, merged, value, self._left_out.get(link, 0))
            self._found[link] = origin
            because = (origin,)
        return because[0]

    def _name(self, fact: Fact, tensor: Tensor) -> str:
        """The name of an unknown size, "" if it has none."""
        dims = _handle(tensor).dims if fact.kind == "dimension" else None
        if dims is None or fact.index >= len(dims) or dims[fact.index].value >= 0 or dims[fact.index].origin is None:
            return ""
        return self._symbols.text(dims[fact.index])

    def _because(self, chain: Sequence[tuple[Fact, Tensor, _Local]], fact: Fact, tensor: Tensor, depth: int) -> tuple[Origin, ...]:
        """The causes of the last link of the chain."""
        if not chain or chain[-1][0] != fact:
            return (self._found.get(fact) or _cut(fact, tensor),)
        facts = chain[-1][2][2]
        if depth >= _DEEPEST:
            return tuple([_cut(cause, _tensor(tensor.node, cause)) for cause in facts])
        return tuple([self.origin(cause, _tensor(tensor.node, cause), depth + 1) for cause in facts])


def _cut(fact: Fact, tensor: Tensor) -> Origin:
    node = tensor.node
    return Origin(fact, _size(fact, tensor), "cut", node.name, node.op, f"{fact}: see there", node.source, value=_value_text(fact, tensor))


def _value_text(fact: Fact, tensor: Tensor) -> str:
    array = _value(tensor) if fact.kind == "value" else None
    return "" if array is None else _array_text(array)


def _array_text(array: Array) -> str:
    shown = str(array.reshape(-1)[:_MOST_SHOWN].tolist()) if array.ndim else str(array)
    return shown if array.size <= _MOST_SHOWN else f"{shown[:-1]}, ...]"


def _handle(tensor: Tensor) -> ShapeHandle:
    handles = tensor.node.output_handles
    return handles[tensor.index] if tensor.index < len(handles) else ShapeHandle()


def _tensor(node: Node, fact: Fact) -> Tensor:
    """The tensor of a fact: an input of `node`, or the tensor whose shape its output has."""
    others = [other for other in node.like.values() if isinstance(other, Tensor)]
    return next(tensor for tensor in (*node.inputs, *others) if tensor.name == fact.tensor)


def _fact_of(node: Node, part: KnownPart) -> Fact:
    return Fact(node.inputs[part.slot].name, part.kind, part.index)


def _size(fact: Fact, tensor: Tensor) -> int | None:
    """The number in the fact."""
    if fact.kind == "rank":
        return tensor.shape.rank
    if fact.kind == "held":
        data = (tensor.node.handle_data or {}).get(tensor.index)
        return _number(data[0].shape.dims, fact.index) if data else None
    if fact.kind == "dimension":
        return _number(_handle(tensor).dims, fact.index)
    array = _value(tensor)
    if array is not None and (fact.kind == "element" or array.size == 1):
        flat = array.reshape(-1)
        position = max(fact.index, 0)
        return int(flat[position]) if position < flat.size and array.dtype.kind in "iu" else None
    if fact.kind == "element":
        try:
            partial = tensor.node.graph.refiner.constant_partial_shape(tensor.node, tensor.index)
        except GraphError:
            return None  # the value is not a shape
        return None if partial is None else _number(partial.dims, fact.index)
    return None


def _number(dims: tuple[DimensionHandle, ...] | None, index: int) -> int | None:
    if dims is None or index >= len(dims) or dims[index].value < 0:
        return None
    return dims[index].value


def _value(tensor: Tensor) -> Array | None:
    return tensor.node.graph.refiner.evaluate_constant_tensor(tensor.node, tensor.index)


class _Step:
    """One step backwards: from a fact about an output of a node to facts about its inputs."""

    def __init__(self, fact: Fact, tensor: Tensor) -> None:
        self.fact = fact
        self.tensor = tensor
        self.node = tensor.node
        self.size = _size(fact, tensor)

    def explain(self) -> _Local:
        """Make the step."""
        if self.fact.kind in {"value", "element"}:
            return self._of_value()
        if self.node.is_opaque and self.fact.kind == "dimension":
            step = opaque_step(self.node, self.tensor.index, self.fact.index)
            if step is not None:
                return *step, self.size
        like = self.node.like.get(self.tensor.index)
        passed = None if like is not None or self.node.error is not None else self._passed_on()
        if passed is not None:
            return "passed", f"is {passed}", [passed], self.size
        result = replay(self.node)
        if result.error is not None:
            return "unknown", f"is not known: `{self.node.name}` (op {self.node.op}) is wrong", [], self.size
        if like is not None and self._read(result) != self.size:
            return self._of_like(like)
        if self.fact.kind == "rank":
            return self._of_rank(result)
        return self._of_dimension(result)

    def _passed_on(self) -> Fact | None:
        """The first dimension of an input that has the handle of this one, None if there is none. No run is needed."""
        if self.fact.kind != "dimension" or not self.node.graph.refiner.is_direct:
            return None
        own = (_handle(self.tensor).dims or ())[self.fact.index]
        for tensor in self.node.inputs:
            for index, dim in enumerate(_handle(tensor).dims or ()):
                if dim is own:
                    return Fact(tensor.name, "dimension", index)
        return None

    def _of_like(self, like: Tensor | ShapeHandle) -> _Local:
        if isinstance(like, Tensor):
            fact = Fact(like.name, self.fact.kind, self.fact.index)
            return "passed", f"is {fact}, whose gradient this is", [fact], self.size
        return "given", f"was given by set_shape of `{self.tensor.name}`", [], self.size

    def _read(self, result: Result) -> int | None:
        """The number in another run of the shape function, None if it is unknown there."""
        dims = (result.held if self.fact.kind == "held" else result.shapes)[self.tensor.index]
        if dims is None or dims.dims is None:
            return None
        return len(dims.dims) if self.fact.kind == "rank" else _number(dims.dims, self.fact.index)

    def _of_rank(self, result: Result) -> _Local:
        if self.size is None:
            return self._of_unknown(result)
        handle = result.shapes[self.tensor.index]
        same = [slot for slot, shape in enumerate(result.context.inputs) if shape is handle]
        if same:
            fact = Fact(self.node.inputs[same[0]].name, "rank")
            return "passed", f"is {fact}", [fact], self.size
        return self._of_needed()

    def _of_dimension(self, result: Result) -> _Local:
        shape = (result.held if self.fact.kind == "held" else result.shapes)[self.tensor.index]
        dims = None if shape is None else shape.dims
        if dims is None or self.fact.index >= len(dims):
            return "unknown", f"is known only when `{self.node.name}` runs", [], self.size
        places = result.context.places_of(dims[self.fact.index])
        if places:
            fact = _fact_of(self.node, places[0])
            return "passed", f"is {fact}", [fact], self.size
        return self._of_needed() if self.size is not None else self._of_unknown(result)

    def _of_needed(self) -> _Local:
        """The facts needed for this number: all others may be hidden."""
        parts = needed(self.node, lambda result: result.error is None and self._read(result) == self.size)
        facts = [fact for fact, _ in _merged_values([(_fact_of(self.node, part), self.node.inputs[part.slot]) for part in parts])]
        if len(facts) > 1 and self.fact.kind != "rank":
            facts = [fact for fact in facts if fact.kind != "rank"] or facts  # the position of a dimension is not part of its number
        settings = _settings(self.node)
        if not facts:
            return "literal", f"is a literal of `{self.node.name}` (op {self.node.op})" + f": {settings}" * bool(settings), [], self.size
        text = f"is computed by `{self.node.name}` (op {self.node.op})" + (f", with {settings}" if settings else "")
        return "computed", text, facts, self.size

    def _of_unknown(self, result: Result) -> _Local:
        """The facts needed to compute a number that is unknown before a run."""
        node = self.node
        if is_loop_head(node):
            return "unknown", f"differs from one iteration to the next at `{node.name}`", [], None
        facts: list[Fact] = []
        for slot, tensor in enumerate(node.inputs):
            shape = result.context.inputs[slot]
            facts += [Fact(tensor.name, "rank")] if shape.dims is None else self._of_unknown_sizes(slot, shape)
            asked = slot in result.context.requested_input_tensors or slot in result.context.requested_input_tensors_as_partial_shapes
            if asked and _value(tensor) is None:
                facts.append(Fact(tensor.name, "value"))
        if not facts:
            settings = _settings(node)
            settings_text = f": {settings}" if settings and not node.inputs else ""
            not_followed = why_not_followed(node.graph.library, node.node_def)
            if not_followed:
                return "unknown", f"is not known: `{node.name}` (op {node.op}) is a call, {not_followed}", [], None
            return "unknown", f"is known only when the graph runs; `{node.name}` (op {node.op}) leaves it open{settings_text}", [], None
        return "computed", f"is computed by `{node.name}` (op {node.op}) from what is known only when the graph runs", facts, None

    def _of_unknown_sizes(self, slot: int, shape: ShapeHandle) -> list[Fact]:
        """The unknown dimensions of an input that determine this one, found by guessing their sizes."""
        unknown = [KnownPart("dimension", slot, i) for i, dim in enumerate(shape.dims or ()) if dim.value < 0]
        guesses = [replay(self.node, sizes={part: _GUESS}) for part in unknown]
        hits = [part for part, guess in zip(unknown, guesses, strict=True) if guess.error is not None or self._read(guess) is not None]
        return [_fact_of(self.node, part) for part in hits]

    def _of_value(self) -> _Local:
        """The sources of an element of a value, or of all of it."""
        node = self.node
        if node.op == CONST:
            return "literal", f"is a literal: {self._literal()}", [], self.size
        not_evaluated = why_not_evaluated(self.tensor)
        if not_evaluated:
            return "unknown", f"is not known: {not_evaluated}", [], self.size
        sources = element_sources(self.tensor, self.fact.index) if self.fact.kind == "element" or self._is_number() else None
        if sources is None:
            values_read = [Fact(tensor.name, "value") for tensor in node.inputs]
            if not values_read or (self.size is None and _value(self.tensor) is None):
                return "unknown", f"is known only when `{node.name}` (op {node.op}) runs", [], self.size
            return "computed", f"is computed by `{node.name}` (op {node.op})", _first_of_each(values_read), self.size
        facts = _first_of_each([_fact_of_element(node, source) for source in sources])
        if not facts:
            return "unknown", f"is known only when `{node.name}` (op {node.op}) runs", [], self.size
        if len(facts) == 1:
            return (
                "passed",
                f"is {facts[0]}" + ("" if node.registration.traits.numbers_from_shapes is None else f", read by `{node.name}`"),
                facts,
                self.size,
            )
        return "computed", f"is computed by `{node.name}` (op {node.op})", facts, self.size

    def _is_number(self) -> bool:
        return self.tensor.shape.rank == 0 or self.tensor.shape.num_elements == 1

    def _literal(self) -> str:
        array = _value(self.tensor)
        if array is None:
            return f"the value of `{self.node.name}`"
        whole = _array_text(array)
        return f"element {self.fact.index} of {whole}" if self.fact.kind == "element" and array.ndim else whole


def _fact_of_element(node: Node, source: Element) -> Fact:
    tensor = node.inputs[source.slot]
    if source.kind == "element" and tensor.shape.rank == 0:
        return Fact(tensor.name, "value")
    return Fact(tensor.name, source.kind, source.index)


def _first_of_each(facts: list[Fact]) -> list[Fact]:
    return list(dict.fromkeys(facts))


def _agreeing(fact: Fact, tensor: Tensor) -> tuple[Fact, ...]:
    """The dimensions of other inputs that must equal this one: another size there is refused."""
    node = tensor.node
    size = _size(fact, tensor)
    result = replay(node)
    shape = result.shapes[tensor.index]
    if result.error is not None or shape.dims is None or fact.index >= len(shape.dims):
        return ()
    own = result.context.places_of(shape.dims[fact.index])
    if not own:
        return ()
    met = {id(other) for pair in result.context.merged_dims for other in pair if shape.dims[fact.index] in pair}
    facts: list[Fact] = []
    for slot, handle in enumerate(result.context.inputs):
        for index, dim in enumerate(handle.dims or ()):
            part = KnownPart("dimension", slot, index)
            if part in own:
                continue
            same = id(dim) in met if dim.value < 0 or size is None else dim.value == size > 1 and _is_bound(node, part, own[0], size)
            if same:
                facts.append(_fact_of(node, part))
    return tuple(facts)


def _is_bound(node: Node, part: KnownPart, own: KnownPart, size: int) -> bool:
    """True iff both must be equal: another size of one is refused, of both it is not."""
    changed = replay(node, sizes={part: size + 1})
    return changed.error is not None and replay(node, sizes={part: size + 1, own: size + 1}).error is None


def _settings(node: Node) -> str:
    """The attrs of a node that concern shapes."""
    shown = [
        f"{name}={_shown(value)}" for name, value in node.node_def.attr.items() if not name.startswith("_") and _counts(node, name, value)
    ]
    return ", ".join(shown)


def _counts(node: Node, name: str, value: AttrValue) -> bool:
    if isinstance(value, DType) or name in {"container", "shared_name", "debug_name", "allowed_devices", "frame_name", "seed", "seed2"}:
        return False
    if isinstance(value, tuple) and (not value or isinstance(value[0], DType)):
        return False
    declared = node.op_def.find_attr(name)
    return declared is None or declared.default_value != value


def _shown(value: AttrValue) -> str:
    if isinstance(value, TensorValue):
        return f"a value of shape {value.shape}"
    return summarize_attr_value(value)
