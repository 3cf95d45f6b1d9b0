"""Checks of a node's inputs: their number and their dtypes."""

from __future__ import annotations

from graphcore.definitions import NodeDef
from graphcore.dtypes import INVALID, DType
from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.node import Tensor
from graphcore.source import SourceLocation


def check_inputs(node_def: NodeDef, input_types: tuple[DType, ...], inputs: list[Tensor], source: SourceLocation | None) -> None:
    """Check the number and dtypes of inputs.

    Raises:
        InvalidArgumentError: one is wrong; the text names it.
    """
    if len(inputs) != len(input_types):
        wanted = ", ".join(dtype.text for dtype in input_types)
        raise InvalidArgumentError(
            f"NodeDef expected inputs '{wanted}' do not match {len(inputs)} inputs specified; NodeDef: {{{{node {node_def.name}}}}}",
            op=node_def.op,
            node=node_def.name,
            source=source,
        )
    for slot, tensor in enumerate(inputs):
        expected = input_types[slot]
        if tensor.node.output_types[tensor.index] is expected:
            continue
        problem = type_misfit(node_def.name, slot, tensor, expected)
        if problem:
            raise InvalidArgumentError(problem, op=node_def.op, node=node_def.name, input=tensor.name, source=source)


def type_misfit(name: str, slot: int, tensor: Tensor, expected: DType) -> str:
    """The error in the dtype of an input, "" if there is none.

    A reference is accepted for its base type, and inputs and outputs of opaque nodes (INVALID) always fit.
    """
    actual = tensor.node.output_types[tensor.index]
    if actual is expected or actual.base is expected or actual is INVALID or expected is INVALID:
        return ""
    return f"Input {slot} of node {name} was passed {actual.text} from {tensor.name} incompatible with expected {expected.text}."
