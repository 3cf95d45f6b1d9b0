"""Gradients with respect to variables from which rows are gathered: slices with their indices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from graphcore.dtypes import int32, int64
from graphcore.errors import FailedPreconditionError
from graphcore.functions import define_function
from graphcore.graph import Graph, Node, Tensor
from graphcore.graph.shapes.constant_values import constant_value
from graphcore.inference import handle_to_shape
from graphcore.passes.gradients.bodies.body import GradientBody
from graphcore.passes.gradients.bodies.template import GradientTemplate
from graphcore.passes.gradients.bodies.variable_reads import OneGradient
from graphcore.passes.gradients.bodies.writer import GradientWriter
from graphcore.passes.gradients.gradients import build_gradients
from graphcore.passes.gradients.trace import GradientTrace
from graphcore.plumbing import IDENTITY

_BODY: Final = """({params}, indices:{index}{axis}, dy:{dtype}) -> (values:{dtype}, rows:{index}, sizes:int32) {{
  all = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: -1>]()
  first = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 0>]()
  second = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 1>]()
  zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
  rows = Reshape[T={index}](indices, all)
  sizes = {sizes}
  count = Shape[T={index}](rows)
  rest = StridedSlice[T=int32, Index=int32, end_mask=1](sizes, second, first, second)
  shape = ConcatV2[N=2, T=int32](count, rest, zero)
  values = Reshape[T={dtype}](dy, shape)
}}"""


class Slices(NamedTuple):
    """The gradient of a variable, of which only some rows are given; rows with the same index add up.

    Attributes:
        values: the rows: [n, ...].
        indices: the index of each: [n].
        dense_shape: the shape of the variable: [rank], int32.
    """

    values: Tensor
    indices: Tensor
    dense_shape: Tensor


Part = Tensor | Slices | None


def gradients_of_reads(
    graph: Graph,
    ys: Sequence[Tensor],
    reads: Sequence[Tensor],
    grad_ys: Sequence[Tensor | None],
    *,
    of_variables: Collection[int],
    name: str,
    stop_gradients: Sequence[Tensor],
    simplify: bool,
    trace: GradientTrace | None = None,
) -> list[Part]:
    """Like `build_gradients`, with slices for the reads of variables from which rows are gathered.

    Args:
        graph, ys, given, name, stop_gradients, simplify, trace: as there.
        reads: the tensors to differentiate with respect to: values, references or gathered rows of variables, and others.
        of_variables: the indices of those that belong to variables.

    Raises:
        FailedPreconditionError: one of the reads is gone.
    """
    gone = next((read for read in reads if read.node not in graph), None)
    if gone is not None:
        raise FailedPreconditionError(f"'{gone.node.name}' is no longer in the graph")
    others = {read for i, read in enumerate(reads) if i not in of_variables}
    gathers: Mapping[int, list[Tensor]] = {
        i: gathered_from(reads[i], {*stop_gradients, *others, *reads} - {reads[i]}) for i in of_variables if reads[i] not in others
    }
    rows = list(dict.fromkeys(tensor for gradients in gathers.values() for tensor in gradients))
    gradients = build_gradients(
        graph, ys, [*reads, *rows], grad_ys, name=name, stop_gradients=[*stop_gradients, *rows], simplify=simplify, trace=trace
    )
    by_rows = dict(zip(rows, gradients[len(reads) :], strict=True))
    results: list[Part] = []
    for i, read in enumerate(reads):
        parts: list[Part] = [gradients[i]]
        if i in of_variables and read.node.registration.traits.reads_variable == "rows":
            parts = [_of_rows(read, gradients[i], name, simplify)]
        parts += [_of_rows(tensor, by_rows[tensor], name, simplify) for tensor in gathers.get(i, ())]
        results.append(combined(graph, parts, name))
    return results


def gathered_from(value: Tensor, closed: Collection[Tensor]) -> list[Tensor]:
    """The tensors of rows that are gathered from `value` or copies of it along its first dimension.

    Args:
        value: the value of a variable.
        closed: tensors that are left out, with what is gathered from them.
    """
    gathers: list[Tensor] = []
    pending = [value]
    while pending:
        tensor = pending.pop()
        for node, slot in tensor.graph.tensor_consumers(tensor):
            if slot != 0 or not node.outputs or node.outputs[0] in closed:
                continue
            if node.op == IDENTITY:
                pending.append(node.outputs[0])
            elif _gathers_rows(node):
                gathers.append(node.outputs[0])
    return gathers


def _gathers_rows(node: Node) -> bool:
    """True iff the output is rows of the first input, at indices of int32 or int64."""
    if not node.registration.traits.gathers_rows or node.inputs[1].dtype.base not in {int32, int64} or node.node_def.attr.get("batch_dims"):
        return False
    axis = constant_value(node.inputs[2]) if len(node.inputs) > 2 else 0
    return axis is not None and int(axis) == 0


def _of_rows(rows: Tensor, gradient: Tensor | None, name: str, simplify: bool) -> Slices | None:
    """The gradient of a variable from that of gathered rows."""
    if gradient is None:
        return None
    node = rows.node
    graph = node.graph
    dtype, index = rows.dtype.base.text, node.inputs[1].dtype.base.text
    is_handle = node.registration.traits.reads_variable == "rows"
    text = _BODY.format(
        params="params:resource" if is_handle else f"params:{dtype}",
        dtype=dtype,
        index=index,
        axis=f", axis:{node.inputs[2].dtype.base.text}" if len(node.inputs) > 2 else "",
        sizes=_shape_of_handle(node.inputs[0]) if is_handle else f"Shape[T={dtype}](params)",
    )
    template = GradientTemplate(define_function(text), {})
    with graph.name_scope(GradientWriter(graph).new_scope(f"{name.removesuffix('/')}/{node.name}_grad")):
        body = GradientBody(graph, template, node, OneGradient(node, gradient), simplify=simplify)
        return Slices(*[body.result(i) for i in range(3)])


def _shape_of_handle(handle: Tensor) -> str:
    """The text of the node that gives the shape of a variable: a constant if it is known."""
    data = (handle.node.handle_data or {}).get(handle.index)
    shape = handle_to_shape(data[0].shape) if data else None
    if shape is None or not shape.is_fully_defined:
        return "VariableShape[out_type=int32](params)"
    sizes = shape.as_list()
    values = " ".join(map(str, sizes))
    return f"Const[dtype=int32, value=Tensor<type: int32 shape: [{len(sizes)}] values: {values}>]()"


def combined(graph: Graph, parts: Sequence[Part], name: str) -> Part:
    """The sum of several gradients of one variable: slices if all are, None if there is none."""
    present = [part for part in parts if part is not None]
    if len(present) < 2:
        return present[0] if present else None
    slices = [part for part in present if isinstance(part, Slices)]
    with graph.name_scope(name):
        if len(slices) < len(present):
            return _one(graph, "AddN", [[_whole(graph, part) if isinstance(part, Slices) else part for part in present]])
        wide = int64 if any(part.indices.dtype.base is int64 for part in slices) else int32
        indices = [
            part.indices if part.indices.dtype.base is wide else _one(graph, "Cast", [part.indices], {"DstT": wide}) for part in slices
        ]
        return Slices(
            _one(graph, "ConcatV2", [[part.values for part in slices], 0]), _one(graph, "ConcatV2", [indices, 0]), slices[0].dense_shape
        )


def _whole(graph: Graph, slices: Slices) -> Tensor:
    """The whole gradient of which slices are given."""
    count = _one(graph, "StridedSlice", [slices.dense_shape, [0], [1], [1]], {"shrink_axis_mask": 1})
    return _one(graph, "UnsortedSegmentSum", [slices.values, slices.indices, count])


def _one(graph: Graph, op: str, inputs: list[Any], attrs: dict[str, Any] | None = None) -> Tensor:
    return graph.apply_op(op, inputs, attrs, None).outputs[0]
