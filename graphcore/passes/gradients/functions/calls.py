"""Gradients of calls: a function is differentiated once, and all its calls share two functions.

`F_forward` returns F's results and then the values that gradients need; `F_gradient` takes them. So nothing is computed twice, and a graph
with hundreds of calls of one function is differentiated about as quickly as one with a single call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from graphcore.attrs import Attrs, AttrValue, Func
from graphcore.definitions import FunctionDef
from graphcore.dtypes import DType
from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition, canonicalize
from graphcore.graph import FunctionGraph, Graph, Node, Tensor
from graphcore.passes.functions.defining import define_body
from graphcore.passes.functions.expand import called_function
from graphcore.passes.functions.function_origins import Origins, call_of
from graphcore.passes.functions.inline import NO_INLINE_ATTR
from graphcore.passes.gradients.functions.differentiation import (
    FORWARD_OF,
    Copier,
    DifferentiatedBody,
    Differentiation,
    add_returns,
    arrived_outputs,
    forward_of,
    is_argument,
    keep_shape,
    new_node,
)
from graphcore.passes.gradients.functions.reaching import FLOWING
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
    found = _shared_gradient(back, called, tuple([tensor.shape for tensor in node.inputs]), selection)
    if found.gradient is None:
        return {}
    inputs = [back.forward_value(node.inputs[number]) for number in found.arguments]
    handed_over: list[Tensor] = []
    if found.forward is not None:
        attrs = {**found.forward.attrs, FORWARD_OF: forward_of(node, [called])}
        name = graph.names.unique(f"{scope}forward")
        augmented = new_node(graph, node, name, found.forward.op, node.inputs, found.forward.types, attrs)
        handed_over = [augmented.outputs[number] for number in found.values]
    name = graph.names.unique(f"{scope}gradient")
    inputs += [back.output_gradient(node, number, scope) for number in selection[0]]
    inputs += [back.forward_value(tensor) for tensor in handed_over]
    made = new_node(graph, node, name, found.gradient.op, inputs, found.gradient.types, found.gradient.attrs)
    return {slot: keep_shape(graph, tensor, node.inputs[slot]) for slot, tensor in zip(found.wanted, made.outputs, strict=True)}


def is_call(node: Node) -> bool:
    """True iff a node calls a function, by its name or by attr `f`."""
    return node.registration.is_function or node.op in {"PartitionedCall", "StatefulPartitionedCall"}


class _Call(msgspec.Struct, frozen=True, eq=False):
    """The properties of a call: the function, its op, its attrs and the types of its outputs."""

    function: str
    op: str
    attrs: dict[str, AttrValue]
    types: tuple[DType, ...]

    @classmethod
    def of(cls, function: FunctionDef, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> _Call:
        types = tuple([tensor.dtype.base for tensor in outputs])
        attrs: dict[str, AttrValue] = {
            "f": Func(function.name),
            "config": b"",
            "config_proto": b"",
            "executor_type": b"",
            "Tin": tuple([tensor.dtype.base for tensor in inputs]),
            "Tout": types,
        }
        return cls(function.name, "StatefulPartitionedCall" if function.signature.is_stateful else "PartitionedCall", attrs, types)


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
    gradient: _Call | None
    arguments: tuple[int, ...]
    forward: _Call | None
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
        given = [gradient for gradient in body.gradients.values() if gradient is not None]
        self.kept = [tensor for tensor in body.taken_from_forward(body.needed_backward(given), given) if not is_argument(tensor)]
        self.positions = {(tensor.node.name, tensor.index): len(body.rets) + i for i, tensor in enumerate(self.kept)}
        self.nodes = {tensor.node.name: tensor.node.node_def for tensor in self.kept}
        self.call: _Call | None = None
        self.called = called
        self.origins = Origins(body.graph.library, called, [node.node_def for node in body.graph.op_nodes()])

    def gives(self, tensor: Tensor) -> bool:
        """True iff it also returns `tensor`, a tensor of another differentiation of the function."""
        name = tensor.node.name
        return (name, tensor.index) in self.positions and self.nodes[name] == tensor.node.node_def

    def define(self, graph: Graph) -> _Call:
        """A call of it; it is added to the library of `graph`."""
        if self.call is None:
            assert self.body is not None
            body, target = self.body, FunctionGraph.within(graph, self.label)
            copier = body.copy_forward(target)
            results = [copier.tensor(tensor) for tensor in (*body.rets, *self.kept)]
            add_returns(target, results, [*body.ret_names, *[_short(tensor) for tensor in self.kept]])
            made = define_body(
                target, self.label, [copier.nodes[node] for node in body.control_rets], _inline_attrs(body.fdef), shared=True
            )
            self.call = _Call.of(made, body.args, results)
            self.origins = Origins(graph.library, self.called, [call_of(made.name)])
            self.body, self.kept = None, []
        return self.call


class _NoForward(msgspec.Struct, frozen=True, eq=False):
    """Marks a function that has no complete gradient, with the functions that this depends on."""

    origins: Origins


class _SharedGradients:
    """The cached gradients of the functions of one library."""

    def __init__(self) -> None:
        self.gradients: dict[_Key, _Gradient] = {}
        self.forwards: dict[_Key, _Forward | _NoForward] = {}


_shared: Final[WeakKeyDictionary[FunctionLibraryDefinition, _SharedGradients]] = WeakKeyDictionary()


def _shared_gradient(back: Differentiation, called: Func, shapes: tuple[Shape, ...], selection: _Selection) -> _Gradient:
    library = back.graph.library
    known = _shared.setdefault(library, _SharedGradients())
    attrs = {key: value for key, value in called.attr.items() if not key.startswith("_")}
    key: _Key = (canonicalize(called.name, attrs), shapes, back.simplify)
    found = known.gradients.get((key, selection))
    if found is None or not found.origins.are_current(library):
        found = _Function(back, Func(called.name, attrs), shapes, known, key).gradient(selection)
        _cache(known.gradients, (key, selection), found)
    return found


class _Function:
    """A function that is differentiated for given shapes of arguments."""

    def __init__(self, back: Differentiation, called: Func, shapes: Sequence[Shape], known: _SharedGradients, key: _Key) -> None:
        self.back = back
        self.graph = back.graph
        self.called = called
        self.shapes = shapes
        self.known = known
        self.key = key

    def gradient(self, selection: _Selection) -> _Gradient:
        widest = self.widest()
        is_widest = widest is not None and widest.selection == selection
        body = widest.body if widest is not None and is_widest and widest.body is not None else self.differentiated(selection)
        given = {number: gradient for number in selection[1] if (gradient := body.gradients[number]) is not None}
        if not given:
            return _Gradient((), None, (), None, (), self.origins([]))
        nodes = body.needed_backward(given.values())
        taken = body.taken_from_forward(nodes, given.values())
        numbers = {arg: number for number, arg in enumerate(body.args)}
        arguments = sorted([numbers[tensor] for tensor in taken if is_argument(tensor)])
        values = [tensor for tensor in taken if not is_argument(tensor)]
        forward, positions = None, {}
        if values:
            if widest is None or not all(widest.gives(tensor) for tensor in values):
                widest = _Forward(body, self.label("forward", selection), selection, self.called.name)
            forward = widest.define(self.graph)
            positions = {tensor: widest.positions[tensor.node.name, tensor.index] for tensor in values}
            values.sort(key=positions.__getitem__)
        inputs = [*[body.args[number] for number in arguments], *body.dys.values(), *values]
        call = self.define(body, self.label("gradient", None if is_widest else selection), nodes, inputs, given)
        names = [call.function] if forward is None else [call.function, forward.function]
        return _Gradient(tuple(given), call, tuple(arguments), forward, tuple(sorted(positions.values())), self.origins(names))

    def define(
        self, body: DifferentiatedBody, label: str, nodes: Sequence[Node], inputs: Sequence[Tensor], given: dict[int, Tensor]
    ) -> _Call:
        """The backward function."""
        target = FunctionGraph.within(self.graph, label)
        copier = Copier(target)
        for index, tensor in enumerate(inputs):
            copier.tensors[tensor] = target.argument(_short(tensor), tensor.dtype, tensor.shape, index)
        copier.copy(nodes)
        results = [copier.tensor(gradient) for gradient in given.values()]
        add_returns(target, results, [f"d{body.args[number].node.name}" for number in given])
        return _Call.of(define_body(target, label, (), _inline_attrs(body.fdef), shared=True), inputs, results)

    def widest(self) -> _Forward | None:
        """The forward function for all possible gradients of the function; None if there is none.

        With it, gradients with respect to different arguments share a single run of the function.
        """
        library = self.graph.library
        found = self.known.forwards.get(self.key)
        if found is not None and found.origins.are_current(library):
            return found if isinstance(found, _Forward) else None
        before = library.state()
        forward = None
        try:
            body = self.body()
            selection = _flowing(body.rets), _flowing(body.args)
            body.differentiate(self.back, *selection)
            forward = _Forward(body, self.label("forward", None), selection, self.called.name)
        except GraphError:  # if the gradient is needed, differentiating reports the error
            library.restore(before)
        _cache(self.known.forwards, self.key, forward or _NoForward(self.origins([])))
        return forward

    def differentiated(self, selection: _Selection) -> DifferentiatedBody:
        body = self.body()
        body.differentiate(self.back, *selection)
        return body

    def body(self) -> DifferentiatedBody:
        return DifferentiatedBody(self.graph, self.called, self.shapes)

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
    known = [names[number] if number < len(names) else str(number) for number in chosen[:_MOST_NAMED]]
    return "_".join(known if len(chosen) <= _MOST_NAMED else [*known, "and", str(len(chosen) - _MOST_NAMED), "more"])


def _cache(kept: dict[_Key, Any], key: _Key, value: object) -> None:
    """Cache a value, and discard the oldest."""
    kept.pop(key, None)
    while len(kept) >= _MOST_CACHED:
        kept.pop(next(iter(kept)))
    kept[key] = value


def _flowing(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    return tuple([number for number, tensor in enumerate(tensors) if tensor.dtype.base in FLOWING])


def _short(tensor: Tensor) -> str:
    return tensor.node.name.rpartition("/")[2]


def _inline_attrs(function: FunctionDef) -> Attrs:
    return {name: value for name, value in function.attr.items() if name == NO_INLINE_ATTR}
