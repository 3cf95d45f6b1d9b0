"""Gradients of calls: a function is differentiated once, and all its calls share two functions.

`F_forward` returns F's results and then the values that gradients need; `F_gradient` takes them. So nothing is computed twice, and a graph
with hundreds of calls of one function is differentiated about as quickly as one with a single call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from graphcore.attrs import Func
from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition, canonicalize
from graphcore.graph import FunctionGraph, Graph, Node, Tensor
from graphcore.passes.functions.defining import define_body
from graphcore.passes.functions.expand import called_function
from graphcore.passes.functions.function_origins import Origins, call_of
from graphcore.passes.gradients.functions.augmented_calls import Call, forward_call, inline_attrs, new_augmented_call, short_name
from graphcore.passes.gradients.functions.differentiation import (
    Copier,
    DifferentiatedBody,
    Differentiation,
    Handle,
    add_returns,
    arrived_outputs,
    handles_of,
    is_argument,
    keep_shape,
    new_node,
)
from graphcore.passes.gradients.functions.keeping import ForwardBody
from graphcore.passes.gradients.functions.reaching import FLOWING
from graphcore.passes.gradients.overrides import num_replacements
from graphcore.shapes import Shape

_MOST_CACHED: Final = 1024
_MOST_NAMED: Final = 3
_Key = tuple[object, ...]
_Selection = tuple[tuple[int, ...], tuple[int, ...]]
"""The returns from which, and the arguments to which, gradients flow."""


def function_gradients(back: Differentiation, node: Node, slots: Sequence[int], scope: str) -> dict[int, Tensor]:
    """The gradients of some inputs of a call.

    Args:
        back: the backward pass, with the gradients of all outputs.
        slots: the wanted inputs.
        scope: the prefix of the new nodes' names.

    Returns:
        The gradients by slot, without inputs that no output depends on.

    Raises:
        NotFoundError: the function is not in the library, or an op in it has no gradient.
    """
    graph, called = back.graph, called_function(node.node_def)
    selection = tuple(arrived_outputs(back, node)), tuple(slots)
    shapes, handles = tuple([tensor.shape for tensor in node.inputs]), handles_of(node.inputs)
    shared = _shared_gradient(back, called, shapes, handles, selection)
    if shared.gradient is None:
        return {}
    inputs = [back.forward_value(node.inputs[number]) for number in shared.arguments]
    handed_over: list[Tensor] = []
    if shared.forward is not None:
        augmented = new_augmented_call(node, shared.forward, scope)
        handed_over = [augmented.outputs[number] for number in shared.values]
    name = graph.names.unique(f"{scope}gradient")
    inputs += [back.output_gradient(node, number, scope) for number in selection[0]]
    inputs += [back.forward_value(tensor) for tensor in handed_over]
    made = new_node(graph, node, name, shared.gradient.op, inputs, shared.gradient.types, shared.gradient.attrs)
    return {slot: keep_shape(graph, tensor, node.inputs[slot]) for slot, tensor in zip(shared.wanted, made.outputs, strict=True)}


class _Gradient(msgspec.Struct, frozen=True, eq=False):
    """The gradients of some returns of a function with respect to some of its arguments.

    Args:
        wanted: the arguments with a gradient.
        gradient: the call that computes them; None if there are none.
        arguments: the arguments it takes, followed by the gradients of the returns, and by values.
        forward: the augmented call, which computes the values; None if there are none.
        values: the indices of the values among its outputs.
        origins: the functions all of this depends on.
    """

    wanted: tuple[int, ...]
    gradient: Call | None
    arguments: tuple[int, ...]
    forward: Call | None
    values: tuple[int, ...]
    origins: Origins


class _Forward:
    """The augmented form of a function: it returns further values, too. Defined on first use.

    Args:
        body: the function, differentiated.
        label: the preferred name.
        selection: the returns and arguments of the differentiation.
        called: the function's name.

    Attributes:
        origins: the functions it depends on.
    """

    def __init__(self, body: DifferentiatedBody, label: str, selection: _Selection, called: str) -> None:
        self.body: DifferentiatedBody | None = body
        self.label = label
        self.selection = selection
        gradients = [gradient for gradient in body.gradients.values() if gradient is not None]
        self.kept = [tensor for tensor in body.taken_from_forward(body.needed_backward(gradients), gradients) if not is_argument(tensor)]
        self.positions = {(tensor.node.name, tensor.index): len(body.rets) + i for i, tensor in enumerate(self.kept)}
        self.nodes = {tensor.node.name: tensor.node.node_def for tensor in self.kept}
        self.call: Call | None = None
        self.called = called
        self.origins = Origins(body.graph.library, called, [node.node_def for node in body.graph.op_nodes()])

    def position(self, _: DifferentiatedBody, tensor: Tensor) -> int | None:
        """The index among the outputs of a tensor of another differentiation; None if it is not returned."""
        name = tensor.node.name
        return self.positions.get((name, tensor.index)) if self.nodes.get(name) == tensor.node.node_def else None

    def define(self, graph: Graph) -> Call:
        """A call of it; it is added to the library of `graph`."""
        if self.call is None:
            assert self.body is not None
            self.call = forward_call(graph, self.body, self.kept, self.label)
            self.origins = Origins(graph.library, self.called, [call_of(self.call.function)])
            self.body, self.kept = None, []
        return self.call


class _ForwardOfAll:
    """The augmented form of a function with side effects: it returns all values."""

    def __init__(self, graph: Graph, called: Func) -> None:
        self.values = ForwardBody(graph, called, in_loop=False)
        self.name = called.name

    def position(self, body: DifferentiatedBody, tensor: Tensor) -> int | None:
        """See `_Forward.position`."""
        return self.values.position(body.place(tensor))

    def define(self, graph: Graph) -> Call:
        """See `_Forward.define`."""
        return forward_call(graph, self.values.body, self.values.kept, f"{self.name}_forward")


class _NoForward(msgspec.Struct, frozen=True, eq=False):
    """Marks a function that has no complete gradient, with the functions that this depends on."""

    origins: Origins


class _SharedGradients:
    """The cached gradients of the functions of one library."""

    def __init__(self) -> None:
        self.gradients: dict[_Key, _Gradient] = {}
        self.forwards: dict[_Key, _Forward | _NoForward] = {}


_shared: Final[WeakKeyDictionary[FunctionLibraryDefinition, _SharedGradients]] = WeakKeyDictionary()


def _shared_gradient(
    back: Differentiation, called: Func, shapes: tuple[Shape, ...], handles: tuple[Handle, ...], selection: _Selection
) -> _Gradient:
    library = back.graph.library
    shared = _shared.setdefault(library, _SharedGradients())
    attrs = {key: value for key, value in called.attr.items() if not key.startswith("_")}
    definition = library.find(called.name)
    keeps_all = back.keeps_all or (definition is not None and definition.signature.is_stateful)
    key: _Key = (canonicalize(called.name, attrs), shapes, handles, back.simplify, keeps_all, num_replacements())
    gradient = shared.gradients.get((key, selection))
    if gradient is None or not gradient.origins.are_current(library):
        gradient = _Function(back, Func(called.name, attrs), shapes, handles, shared, key, keeps_all=keeps_all).gradient(selection)
        _cache(shared.gradients, (key, selection), gradient)
    return gradient


class _Function:
    """A function that is differentiated for given shapes of arguments."""

    def __init__(
        self,
        back: Differentiation,
        called: Func,
        shapes: Sequence[Shape],
        handles: Sequence[Handle],
        shared: _SharedGradients,
        key: _Key,
        *,
        keeps_all: bool,
    ) -> None:
        self.back = back
        self.graph = back.graph
        self.called = called
        self.shapes = shapes
        self.handles = handles
        self.known = shared
        self.key = key
        self.keeps_all = keeps_all

    def gradient(self, selection: _Selection) -> _Gradient:
        widest = None if self.keeps_all else self.widest()
        is_widest = widest is not None and widest.selection == selection
        body = widest.body if widest is not None and is_widest and widest.body is not None else self.differentiated(selection)
        gradients = {number: gradient for number in selection[1] if (gradient := body.gradients[number]) is not None}
        if not gradients:
            return _Gradient((), None, (), None, (), self.origins([]))
        nodes = body.needed_backward(gradients.values())
        taken = body.taken_from_forward(nodes, gradients.values())
        numbers = {arg: number for number, arg in enumerate(body.args)}
        arguments = sorted([numbers[tensor] for tensor in taken if is_argument(tensor)])
        values = [tensor for tensor in taken if not is_argument(tensor)]
        forward, positions = self.forward(body, selection, values, widest) if values else (None, {})
        values.sort(key=positions.__getitem__)
        inputs = [*[body.args[number] for number in arguments], *body.dys.values(), *values]
        call = self.define(body, self.label("gradient", None if is_widest else selection), nodes, inputs, gradients)
        names = [call.function] if forward is None else [call.function, forward.function]
        return _Gradient(tuple(gradients), call, tuple(arguments), forward, tuple(sorted(positions.values())), self.origins(names))

    def forward(
        self, body: DifferentiatedBody, selection: _Selection, values: Sequence[Tensor], widest: _Forward | None
    ) -> tuple[Call, dict[Tensor, int]]:
        """A call of a forward function that returns `values`, and their indices among its outputs."""
        forward = _ForwardOfAll(self.graph, self.called) if self.keeps_all else widest
        places = {} if forward is None else {tensor: forward.position(body, tensor) for tensor in values}
        positions = {tensor: position for tensor, position in places.items() if position is not None}
        if forward is None or len(positions) < len(values):
            forward = _Forward(body, self.label("forward", selection), selection, self.called.name)
            positions = {tensor: len(body.rets) + number for number, tensor in enumerate(forward.kept)}
        return forward.define(self.graph), positions

    def define(
        self, body: DifferentiatedBody, label: str, nodes: Sequence[Node], inputs: Sequence[Tensor], gradients: dict[int, Tensor]
    ) -> Call:
        """The backward function."""
        target = FunctionGraph.within(self.graph, label)
        copier = Copier(target)
        for index, tensor in enumerate(inputs):
            copier.tensors[tensor] = target.argument(short_name(tensor), tensor.dtype, tensor.shape, index)
        copier.copy(nodes)
        results = [copier.tensor(gradient) for gradient in gradients.values()]
        add_returns(target, results, [f"d{body.args[number].node.name}" for number in gradients])
        return Call.of(define_body(target, label, (), inline_attrs(body.fdef), shared=True), inputs, results)

    def widest(self) -> _Forward | None:
        """The forward function for all possible gradients of the function; None if there is none.

        With it, gradients with respect to different arguments share a single run of the function.
        """
        library = self.graph.library
        forward = self.known.forwards.get(self.key)
        if forward is not None and forward.origins.are_current(library):
            return forward if isinstance(forward, _Forward) else None
        before = library.state()
        forward = None
        try:
            body = self.body()
            selection = _flowing(body.rets), _flowing(body.args)
            body.differentiate(self.back, *selection, keeps_all=self.keeps_all)
            forward = _Forward(body, self.label("forward", None), selection, self.called.name)
        except GraphError:  # if the gradient is needed, differentiating reports the error
            library.restore(before)
        _cache(self.known.forwards, self.key, forward or _NoForward(self.origins([])))
        return forward

    def differentiated(self, selection: _Selection) -> DifferentiatedBody:
        body = self.body()
        body.differentiate(self.back, *selection, keeps_all=self.keeps_all)
        return body

    def body(self) -> DifferentiatedBody:
        return DifferentiatedBody(self.graph, self.called, self.shapes, self.handles)

    def origins(self, made: Sequence[str]) -> Origins:
        return Origins(self.graph.library, self.called.name, [call_of(name) for name in made])

    def label(self, role: str, selection: _Selection | None) -> str:
        """The preferred name of a function derived from this one; `selection` distinguishes partial ones."""
        if selection is None:
            return f"{self.called.name}_{role}"
        definition = self.graph.library.find(self.called.name)
        assert definition is not None
        signature = definition.signature
        outputs = _some([arg.name for arg in signature.output_arg], selection[0])
        return f"{self.called.name}_{role}_of_{outputs}_by_{_some([arg.name for arg in signature.input_arg], selection[1])}"


def _some(names: Sequence[str], chosen: Sequence[int]) -> str:
    """The names of some arguments; a list counts as one name, so there may be fewer names than numbers."""
    shown = [names[number] if number < len(names) else str(number) for number in chosen[:_MOST_NAMED]]
    return "_".join(shown if len(chosen) <= _MOST_NAMED else [*shown, "and", str(len(chosen) - _MOST_NAMED), "more"])


def _cache(kept: dict[_Key, Any], key: _Key, value: object) -> None:
    """Cache a value, and discard the oldest."""
    kept.pop(key, None)
    while len(kept) >= _MOST_CACHED:
        kept.pop(next(iter(kept)))
    kept[key] = value


def _flowing(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    return tuple([number for number, tensor in enumerate(tensors) if tensor.dtype.base in FLOWING])
