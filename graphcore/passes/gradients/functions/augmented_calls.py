"""Augmented forms of calls: their functions return further values."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from graphcore.attrs import Attrs, AttrValue, Func
from graphcore.definitions import FunctionDef
from graphcore.dtypes import DType
from graphcore.graph import FunctionGraph, Graph, Node, Tensor
from graphcore.passes.functions.defining import define_body
from graphcore.passes.functions.expand import called_function
from graphcore.passes.functions.inline import NO_INLINE_ATTR
from graphcore.passes.gradients.functions.differentiation import FORWARD_OF, DifferentiatedBody, add_returns, forward_of, new_node


class Call(msgspec.Struct, frozen=True, eq=False):
    """The properties of a call: the function, its op, its attrs and the types of its outputs."""

    function: str
    op: str
    attrs: dict[str, AttrValue]
    types: tuple[DType, ...]

    @classmethod
    def of(cls, function: FunctionDef, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Call:
        """A call of a function with arguments and results like `inputs` and `outputs`."""
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


def forward_call(graph: Graph, body: DifferentiatedBody, kept: Sequence[Tensor], label: str) -> Call:
    """A call of the function that returns what `body` returns, and then the values `kept`.

    Args:
        graph: a graph whose library gets the function.
        label: the preferred name of the function.
    """
    target = FunctionGraph.within(graph, label)
    copier = body.copy_forward(target)
    results = [copier.tensor(tensor) for tensor in (*body.rets, *kept)]
    add_returns(target, results, [*body.ret_names, *[short_name(tensor) for tensor in kept]])
    made = define_body(target, label, [copier.nodes[node] for node in body.control_rets], inline_attrs(body.fdef), shared=True)
    return Call.of(made, body.args, results)


def augment_call(node: Node, body: DifferentiatedBody, kept: Sequence[Tensor], scope: str) -> Node:
    """Add the augmented form of a call, which returns the values `kept` of its function, too."""
    called = called_function(node.node_def)
    call = forward_call(node.graph, body, kept, f"{called.name}_forward")
    return new_augmented_call(node, call, scope)


def new_augmented_call(node: Node, call: Call, scope: str) -> Node:
    """A call beside `node` that returns its outputs as the first ones."""
    attrs = {**call.attrs, FORWARD_OF: forward_of(node, [called_function(node.node_def)])}
    return new_node(node.graph, node, node.graph.names.unique(f"{scope}forward"), call.op, node.inputs, call.types, attrs)


def short_name(tensor: Tensor) -> str:
    """The name of a tensor's node without its scope."""
    return tensor.node.name.rpartition("/")[2]


def inline_attrs(function: FunctionDef) -> Attrs:
    """The attrs of a function that those derived from it have, too."""
    return {name: value for name, value in function.attr.items() if name == NO_INLINE_ATTR}
