"""Augmented forms of If and Case: their branches return further values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphcore.attrs import AttrValue, Func
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Node, Tensor
from graphcore.passes.functions.defining import define_body, function_label
from graphcore.passes.gradients.functions.differentiation import FORWARD_OF, DifferentiatedBody, add_returns, forward_of, new_node
from graphcore.plumbing import IF


def augment_branches(
    node: Node, bodies: Sequence[DifferentiatedBody], values: Sequence[Sequence[Tensor]], scope: str, *, shared: bool = False
) -> Node:
    """Add the augmented form of an If or Case to its graph.

    Args:
        node: the If or Case.
        bodies: its branches.
        values: the values of each of the bodies that it returns, too.
        scope: the prefix of the new nodes' names.
        shared: True if all augmented forms of `node` are equal, and share their functions.

    Returns:
        The augmented node: after the outputs of `node` it returns the values of the first branch, then those of the second, and so on.
    """
    graph, functions = node.graph, branch_functions(node)
    name = graph.names.unique(f"{scope}forward")
    more = [tensor for kept in values for tensor in kept]
    branches = []
    for i, role in enumerate(branch_roles(node)):
        body = bodies[i]
        target = FunctionGraph.within(graph, f"{functions[i].name}_forward_{role}" if shared else function_label(graph, name, role))
        copier = body.copy_forward(target)
        own = set(values[i])
        extra = [copier.tensor(tensor) if tensor in own else _absent(target, tensor) for tensor in more]
        add_returns(target, [*[copier.tensor(ret) for ret in body.rets], *extra])
        branches.append(define_body(target, target.label, [copier.nodes[control] for control in body.control_rets], shared=shared))
    types = [*[dtype.base for dtype in node.output_types], *[tensor.dtype.base for tensor in more]]
    attrs: dict[str, AttrValue] = {FORWARD_OF: forward_of(node, functions)}
    return new_choice(node, name, [Func(made.name) for made in branches], node.inputs, types, attrs)


def new_choice(
    node: Node, name: str, branches: Sequence[Func], inputs: Sequence[Tensor], types: Sequence[DType], attrs: Mapping[str, AttrValue]
) -> Node:
    """An If or Case of the kind of `node`, beside it."""
    graph = node.graph
    stateful = any(graph.library.look_up_op_def(branch.name).is_stateful for branch in branches)
    kind = node.op.removeprefix("Stateless")
    op = kind if stateful else f"Stateless{kind}"
    own: dict[str, AttrValue] = {"branches": tuple(branches)}
    if kind == "If":
        own = {"then_branch": branches[0], "else_branch": branches[1], "Tcond": node.input_types[0].base}
    own |= {"output_shapes": (), "_lower_using_switch_merge": True}
    attrs = {**own, "Tin": tuple([tensor.dtype.base for tensor in inputs[1:]]), "Tout": tuple(types), **attrs}
    return new_node(graph, node, name, op, inputs, types, attrs)


def branch_functions(node: Node) -> list[Func]:
    """The branches of an If or Case.

    Raises:
        InvalidArgumentError: it names none.
    """
    attrs = node.node_def.attr
    attr = [attrs.get("then_branch"), attrs.get("else_branch")] if node.op in IF else attrs.get("branches")
    branches = [item for item in attr if isinstance(item, Func)] if isinstance(attr, list | tuple) else []
    if not branches or len(branches) < (2 if node.op in IF else 1):
        raise InvalidArgumentError.at(node, f"'{node.name}' (op {node.op}) names no branches")
    return branches


def branch_roles(node: Node) -> list[str]:
    """The names of the branches of an If or Case within the names of their functions."""
    return ["true", "false"] if node.op in IF else [f"branch{i}" for i in range(len(branch_functions(node)))]


def _absent(graph: FunctionGraph, tensor: Tensor) -> Tensor:
    """A placeholder for a value of another branch."""
    return graph.apply_op("FakeParam", [], {"dtype": tensor.dtype.base, "shape": tensor.shape}, "absent").outputs[0]
