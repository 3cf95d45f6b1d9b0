"""Formulas of shapes: an op with named sizes as inputs, inferred by its own shape function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, count
from string import ascii_lowercase
from typing import Any, Final

import msgspec

from graphcore.api.op_help.example_inputs import argument, example_inputs
from graphcore.attrs import Array
from graphcore.definitions import ArgDef, OpDef, VersionDef
from graphcore.dtypes import as_dtype
from graphcore.errors import GraphError
from graphcore.graph import Graph, Node, Tensor, apply_op
from graphcore.inference.expressions import symbol
from graphcore.registry import OpRegistration, op_registry
from graphcore.tf1.framework import placeholder

MOST_USES: Final = 4
"""The most formulas of one op."""
MOST_VALUES: Final = 8
"""The most elements of a value that is written out."""
_LINE: Final = 80
_SIZES: Final = re.compile(r"^\[([^\]]+)\]")
_NAME: Final = re.compile(r"(?!broadcast\()[a-z_]\w*")
_WORD: Final = re.compile(r"^[a-z][a-z ]*$")


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A use of an op with named sizes.

    Attributes:
        node: the node, in a symbolic graph of its own.
        arrays: the values of the example, by the names of the inputs.
        attrs: the attrs of the example.
        inputs: each input as `name [sizes]`, or `name = value` where the shapes depend on the value.
        outputs: each output as `name [sizes]`.
    """

    node: Node
    arrays: dict[str, Array]
    attrs: dict[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def formula(self) -> str:
        """The shapes in one line: `a [m,k], b [k,n] -> product [m,n]`."""
        return f"{', '.join(self.inputs)} -> {', '.join(self.outputs)}"

    @property
    def formula_lines(self) -> list[str]:
        """The shapes, in several lines if one would be long."""
        if len(self.formula) <= _LINE:
            return [self.formula]
        return [*[f"{text}," for text in self.inputs[:-1]], *self.inputs[-1:], f"-> {', '.join(self.outputs)}"]


def uses(op_def: OpDef) -> list[Use]:
    """The uses of an op by its examples whose formulas differ.

    None for ops on variables, resources and lists of tensors.
    """
    registration = op_registry.look_up(op_def.name)
    uses_by_formula: dict[str, Use] = {}
    for example in registration.examples:
        use = None if len(uses_by_formula) == MOST_USES or example.functions else _use(registration, example)
        if use is not None and use.outputs:
            uses_by_formula.setdefault(re.sub(r"\d+", "", use.formula), use)
    return list(uses_by_formula.values())


def _use(registration: OpRegistration, example: Any) -> Use | None:
    arrays = example_inputs(registration.op_def, example)
    if arrays is None:
        return None
    constants: frozenset[int] = frozenset()
    try:
        node = _build(registration, example, arrays, constants)
        while not (read := _slots_read(node)) <= constants:
            constants |= read  # with these values known, the shape function may read others
            node = _build(registration, example, arrays, constants)
    except GraphError:
        return None  # this example must have known sizes, such as those of a shape that is checked
    return _described(node, registration.op_def, example, arrays)


def _slots_read(node: Node) -> frozenset[int]:
    """The inputs whose values the shape function reads."""
    shape_fn = node.registration.shape_fn
    if shape_fn is None:
        return frozenset()
    context = node.graph.refiner.get_context(node)
    shape_fn(context)
    return context.requested_input_tensors | context.requested_input_tensors_as_partial_shapes


def _build(registration: OpRegistration, example: Any, arrays: list[list[Array]], constants: frozenset[int]) -> Node:
    """A node on placeholders with named sizes; the inputs with numbers in `constants` are constants."""
    graph = Graph(infer="symbolic")
    if registration.op_def.deprecation is not None:
        graph.versions = VersionDef(producer=registration.op_def.deprecation.version - 1)
    taken: set[str] = set()
    slots = count()
    with graph.as_default():
        arguments = []
        for arg, parts in zip(registration.op_def.input_arg, arrays, strict=True):
            names = [arg.name if not arg.number_attr else f"{arg.name}_{number}" for number in range(len(parts))]
            tensors: list[Any] = [
                graph.apply_op("Const", [], {"value": part, "dtype": as_dtype(part.dtype)}, name).outputs[0]
                if next(slots) in constants
                else _named(arg, part, name, taken)
                for part, name in zip(parts, names, strict=True)
            ]
            arguments.append(argument(arg, tensors))
        return apply_op(graph, registration.op_def.name, arguments, dict(example.attrs), _node_name(registration.op_def))


def _node_name(op_def: OpDef) -> str:
    return op_def.name.strip("_") if op_def.name.strip("_") not in {arg.name for arg in op_def.input_arg} else f"{op_def.name}_op"


def _named(arg: ArgDef, array: Array, name: str, taken: set[str]) -> Tensor:
    """A placeholder whose sizes have the words of the documentation as names, or else letters."""
    tensor = placeholder(as_dtype(array.dtype), [None] * array.ndim, name=name)
    handle = tensor.node.output_handles[0]
    for dim, word in zip(handle.dims or (), _words(arg, array.ndim, taken), strict=True):
        free = next(candidate for candidate in chain([word], (f"{word}_{number}" for number in count(2))) if candidate not in taken)
        taken.add(free)
        dim.origin = symbol(free)
    return tensor


def _words(arg: ArgDef, rank: int, taken: set[str]) -> Sequence[str]:
    match = _SIZES.match(arg.description)
    words = [word.strip() for word in match[1].split(",")] if match else []
    if len(words) == rank and all(_WORD.match(word) for word in words):
        return [word.replace(" ", "_") for word in words]
    return [letter for letter in ascii_lowercase if letter not in taken][:rank]


def _described(node: Node, op_def: OpDef, example: Any, arrays: list[list[Array]]) -> Use:
    flat = [array for parts in arrays for array in parts]
    tensors = node.inputs
    inputs = [_text(tensor, array) for tensor, array in zip(tensors, flat, strict=True)]
    names = [arg.name for arg in op_def.output_arg]
    several = len(names) != len(node.outputs)
    size_names = {name for text in inputs for name in _NAME.findall(text)}
    outputs = [f"{names[0 if several else number]} {_result(tensor, size_names)}" for number, tensor in enumerate(node.outputs)]
    return Use(
        node=node,
        arrays={tensor.node.name: array for tensor, array in zip(tensors, flat, strict=True)},
        attrs=dict(example.attrs),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )


def _result(tensor: Tensor, size_names: set[str]) -> str:
    """The shape of an output; `?` for sizes that do not follow from those of the inputs."""
    if tensor.shape.dims is None:
        return "?"
    sizes = [size if size_names.issuperset(_NAME.findall(size)) else "?" for size in tensor.graph.size_texts(tensor)]
    return f"[{','.join(sizes)}]"


def _text(tensor: Tensor, array: Array) -> str:
    if tensor.node.op == "Const" and array.size <= MOST_VALUES:
        return f"{tensor.node.name} = {array.tolist()}"
    return f"{tensor.node.name} {tensor.graph.shape_text(tensor)}"
