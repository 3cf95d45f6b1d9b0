"""Lowering of If and Case to Switch and Merge.

Each branch gets the inputs from its side of the switches, and a Merge forwards the results of the one taken.
"""

from __future__ import annotations

from graphcore import dtypes
from graphcore.attrs import AttrValue, Func
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Node, Tensor
from graphcore.passes.lower.lowering import Lowering
from graphcore.plumbing import CASE, IF


def lower_branches(lowering: Lowering) -> None:
    """Lower one If or Case.

    Raises:
        InvalidArgumentError: its functions are missing or do not fit.
    """
    node = lowering.node
    is_if = node.op in IF
    branches = [lowering.func("else_branch"), lowering.func("then_branch")] if is_if else _branches(node)
    labels = ["else", "then"] if is_if else [f"branch{i}" for i in range(len(branches))]
    selector = lowering.as_bool(node.inputs[0]) if is_if else node.inputs[0]
    controls = node.control_inputs
    switched = _switch(lowering, "switch_pred" if is_if else "branch_index", selector, selector, len(branches), node, controls)
    pivots = [lowering.identity(f"pivot_{'ft'[i] if is_if else i}", tensor) for i, tensor in enumerate(switched.outputs)]
    inputs = [_switch(lowering, tensor.node.name, tensor, selector, len(branches), tensor.node, ()) for tensor in node.inputs[1:]]
    calls = [
        lowering.call(label, branch, [switch.outputs[i] for switch in inputs], [pivots[i]])
        for i, (label, branch) in enumerate(zip(labels, branches, strict=True))
    ]
    merges = [_merge(lowering, "merge", [call.outputs[i] for call in calls]) for i in range(len(node.outputs))]
    done = _merge(lowering, "branch_executed", [pivot.outputs[0] for pivot in pivots], calls)
    lowering.finish([merge.outputs[0] for merge in merges], done, awaits=any(lowering.has_state(branch) for branch in branches))


def _switch(
    lowering: Lowering, label: str, tensor: Tensor, selector: Tensor, count: int, like: Node, controls: list[Node] | tuple[()]
) -> Node:
    dtype = tensor.dtype.base
    attrs: dict[str, AttrValue] = {"T": dtype}
    if lowering.node.op in CASE:
        switch = lowering.add(label, "_SwitchN", [tensor, selector], {**attrs, "num_outs": count}, [dtype] * count, controls)
    else:
        switch = lowering.add(label, "Switch", [tensor, selector], attrs, [dtype, dtype], controls)
    switch.assigned_device = like.assigned_device
    return switch


def _merge(lowering: Lowering, label: str, tensors: list[Tensor], controls: list[Node] | tuple[()] = ()) -> Node:
    dtype = tensors[0].dtype.base
    return lowering.add(label, "Merge", tensors, {"T": dtype, "N": len(tensors)}, [dtype, dtypes.int32], controls)


def _branches(node: Node) -> list[Func]:
    value = node.node_def.attr.get("branches")
    branches = [item for item in value if isinstance(item, Func)] if isinstance(value, tuple) else []
    if not branches:
        raise InvalidArgumentError.at(node, f"Node '{node.name}' ({node.op}) names no branches")
    return branches
