"""Recorded gradient bodies, replayed for nodes with the same static knowledge.

The first time that an op is differentiated its body is resolved, folded and simplified node by node. All decisions depend on the op's
attrs and on static knowledge: shapes, values read to infer them, and equality of values. So the result is recorded under a key of all
that, and replayed for the next node with the same key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from graphcore.attrs import Array, Attrs
from graphcore.dtypes import DType
from graphcore.graph import Graph, Node, Tensor
from graphcore.passes.gradients.bodies.body import GradientBody, known_input
from graphcore.passes.gradients.bodies.template import GradientTemplate
from graphcore.passes.gradients.bodies.writer import GradientWriter
from graphcore.registry import OpRegistration

_MOST_PROGRAMS: Final = 256
Key = tuple[object, ...]


class _Instruction(msgspec.Struct, frozen=True, eq=False):
    """A node to make; without a registration, a tensor to which the shape of a forward input is assigned."""

    name: str
    registration: OpRegistration | None
    inputs: tuple[int, ...]
    attrs: Attrs
    types: tuple[tuple[DType, ...], tuple[DType, ...]]


class GradientProgram(msgspec.Struct, frozen=True, eq=False):
    """The recorded nodes of one body. Values are numbered: inputs, outputs, output gradients, new values."""

    instructions: tuple[_Instruction, ...]
    results: tuple[int, ...]

    def run(self, writer: GradientWriter, template: GradientTemplate, forward: Node, values: list[Tensor], scope: str) -> list[Tensor]:
        """Make the nodes under `scope`. Returns one gradient for each slot of the program."""
        function, name, attrs = template.function, forward.name, forward.node_def.attr
        for instruction in self.instructions:
            registration = instruction.registration
            if registration is None:
                writer.graph.set_shape_like(values[instruction.inputs[0]], values[instruction.inputs[1]])
                continue
            record = name, function, attrs, instruction.name
            made = writer.node(
                scope + instruction.name,
                registration,
                [values[i] for i in instruction.inputs],
                instruction.attrs,
                instruction.types,
                record,
            )
            values += made.outputs
        return [values[i] for i in self.results]


def knowledge_key(forward: Node, values: Sequence[Tensor]) -> Key:
    """The key of static knowledge: shapes, equalities, and values read for shape inference.

    Simplification depends on nothing else.

    Args:
        forward: the differentiated node.
        values: its inputs, its outputs, and the gradients of these.
    """
    unknown: dict[int, int] = {}
    key: list[object] = []
    for tensor in values:
        node = tensor.node
        dims = node.output_handles[tensor.index].dims
        if dims is None:
            key.append(unknown.setdefault(id(node.output_handles[tensor.index]), -len(unknown) - 2))
            continue
        sizes = tuple([dim.value for dim in dims])
        if -1 in sizes:
            sizes = tuple([dim.value if dim.value >= 0 else unknown.setdefault(id(dim), -len(unknown) - 2) for dim in dims])
        key.append(sizes)
    if forward.requested_values:
        key += [None if array is None else (array.dtype, array.shape, array.tobytes()) for array in _read(forward)]
    if len(values) > len(set(values)):
        key.append(tuple([values.index(tensor) for tensor in values]))
    return tuple(key)


def _read(forward: Node) -> list[Array | None]:
    return [known_input(forward, tensor) for tensor in forward.inputs]


def recorded(graph: Graph, body: GradientBody, values: Sequence[Tensor], results: Sequence[Tensor]) -> GradientProgram | None:
    """The program of the nodes made by `body` from `values`; None if it used any other values."""
    numbers: dict[Tensor, int] = {}
    for number, tensor in enumerate(values):
        numbers.setdefault(tensor, number)
    count = len(values)
    instructions: list[_Instruction] = []
    alike = list(body.alike)
    for done, node in enumerate((*body.made, None)):
        while alike and alike[0][0] == done:
            _, tensor, slot = alike.pop(0)
            instructions.append(_Instruction("", None, (numbers[tensor], slot), {}, ((), ())))
        if node is None:
            break
        if any(tensor not in numbers for tensor in node.inputs):
            return None
        inputs = tuple([numbers[tensor] for tensor in node.inputs])
        name = graph.gradient_records[node.name].body_node
        instructions.append(_Instruction(name, node.registration, inputs, node.node_def.attr, (node.input_types, node.output_types)))
        for tensor in node.outputs:
            numbers[tensor] = count
            count += 1
    if any(tensor not in numbers for tensor in results):
        return None
    return GradientProgram(tuple(instructions), tuple([numbers[tensor] for tensor in results]))


class ProgramCache:
    """The programs of one template.

    Attributes:
        needed: the output gradients that the body needs, for each set of wanted inputs.
        programs: the programs, by wanted inputs and static knowledge.
    """

    __slots__ = ("needed", "programs")

    def __init__(self) -> None:
        self.needed: dict[Key, tuple[int, ...]] = {}
        self.programs: dict[Key, GradientProgram] = {}

    def keep(self, wanted: Key, needed: tuple[int, ...], static: Key, program: GradientProgram) -> None:
        """Cache a program, and discard the oldest."""
        if self.needed.setdefault(wanted, needed) != needed:
            return
        while len(self.programs) >= _MOST_PROGRAMS:
            self.programs.pop(next(iter(self.programs)))
        self.programs[wanted, static] = program
