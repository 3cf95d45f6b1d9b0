"""Checks of shapes, ops, gradients and devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from graphcore.api.explain_shape import explain_shape
from graphcore.api.gradients.explain_gradient import explain_gradient
from graphcore.device_spec import DeviceSpec
from graphcore.placement import DeviceSet, explain_placement
from graphcore.shapes import Shape
from graphcore.testing.answering import answered
from graphcore.testing.failure import CheckFailed
from graphcore.testing.parts import definitions, element, node_of, part, tensor, where

_MOST_LISTED: Final = 12


def shape_is(value: Any, shape: Any) -> None:
    """Check the inferred shape of a tensor.

    Args:
        value: a tensor, a variable, or the name of a tensor in the default graph.
        shape: the required shape: a `Shape`, or a list of sizes with None for an unknown size; None for an unknown rank.

    Raises:
        CheckFailed: the shape is another one; the text has the origin of each size.
        InvalidArgumentError: `value` is no tensor.
    """
    answered(value, shape)
    actual, required = tensor(value), Shape(shape)
    if str(actual.shape) != str(required):
        raise CheckFailed(f"Required '{actual.name}' of shape {required}, got {actual.shape}\n{explain_shape(actual)}")


def uses_ops(value: Any, ops: Iterable[str] | Mapping[str, int], *, without: Iterable[str] = ()) -> None:
    """Check the ops of a graph, or of the part of it that some tensors need. Nodes of functions that are called count.

    Args:
        value: a graph, or a tensor, node, variable or name, or a list of these.
        ops: the required ops; with a mapping, the exact number of nodes of each.
        without: ops that are not allowed.

    Raises:
        CheckFailed: an op is missing, occurs another number of times, or is not allowed.
        InvalidArgumentError: `value` is none of these.
    """
    answered(value)
    chosen = part(value)
    nodes_by_op: dict[str, list[str]] = {}
    places = {node.name: where(node) for node in chosen.nodes}
    for node_def, function in definitions(chosen.nodes, chosen.graph):
        place = f" (in function {function})" if function else places[node_def.name]
        nodes_by_op.setdefault(node_def.op, []).append(f"'{node_def.name}'{place}")
    counts = ops if isinstance(ops, Mapping) else dict.fromkeys(ops)
    wrong = []
    for op, number in counts.items():
        nodes = nodes_by_op.get(op, [])
        if number is None and not nodes:
            wrong.append(f"Required a node of op {op}, got none")
        elif number is not None and len(nodes) != number:
            wrong.append(f"Required {number} {'node' if number == 1 else 'nodes'} of op {op}, got {len(nodes) or 'none'}{_listed(nodes)}")
    wrong += [f"Required no node of op {op}, got {len(nodes_by_op[op])}{_listed(nodes_by_op[op])}" for op in without if op in nodes_by_op]
    if wrong:
        numbers = [f"{len(nodes)} {op}" for op, nodes in sorted(nodes_by_op.items())]
        raise CheckFailed("\n".join([*wrong, f"The ops are: {', '.join(numbers) or 'none'}"]))


def has_gradient_path(y: Any, x: Any) -> None:
    """Check that the gradient of `y` with respect to `x` is not None.

    Args:
        y: a tensor, or the name of one.
        x: a tensor or a variable, or the name of a tensor.

    Raises:
        CheckFailed: it is None, or cannot be built; the text names the nodes that cut it, with their cells and lines.
        InvalidArgumentError: these are no tensors of one graph.
    """
    answered(y, x)
    explanation = explain_gradient(tensor(y), tensor(x) if isinstance(x, str) else x)
    if explanation.gradient is None:
        raise CheckFailed(f"Required a gradient of '{explanation.y}' with respect to '{explanation.x}', got none\n{explanation!r}")


def has_no_gradient_path(y: Any, x: Any) -> None:
    """Check that the gradient of `y` with respect to `x` is None.

    Args:
        y: a tensor, or the name of one.
        x: a tensor or a variable, or the name of a tensor.

    Raises:
        CheckFailed: there is one; the text names the nodes of its path, with their cells and lines.
        InvalidArgumentError: these are no tensors of one graph.
    """
    answered(y, x)
    explanation = explain_gradient(tensor(y), tensor(x) if isinstance(x, str) else x)
    if explanation.gradient is not None:
        raise CheckFailed(f"Required no gradient of '{explanation.y}' with respect to '{explanation.x}', got one\n{explanation!r}")


def placed_on(value: Any, device: str, devices: DeviceSet | None = None) -> None:
    """Check the device on which a node is placed.

    Args:
        value: a tensor, a node, a variable, or the name of a tensor or node in the default graph.
        device: a device name; what it leaves out, such as the task in `/gpu:0`, may be any.
        devices: the devices to place the graph on; by default those of its last placement, or else the CPU of this process.

    Raises:
        CheckFailed: the node is on another device, or cannot be placed; the text has the reasons.
        InvalidArgumentError: `value` or `device` is invalid.
    """
    answered(value, device)
    node = node_of(element(value))
    explanation = explain_placement(node, devices)
    required = DeviceSpec.parse(device)
    assigned = explanation.assigned.partition(" ")[0]  # without the mark of simulated devices
    if not assigned or not required.is_specification_of(DeviceSpec.parse(assigned)):
        got = f"it is on {explanation.assigned}" if explanation.assigned else "it has no device"
        raise CheckFailed(f"Required '{node.name}'{where(node)} on {device}, but {got}\n{explanation}")


def _listed(nodes: list[str]) -> str:
    if not nodes:
        return ""
    more = f" and {len(nodes) - _MOST_LISTED} more" if len(nodes) > _MOST_LISTED else ""
    return f": {', '.join(nodes[:_MOST_LISTED])}{more}"
