"""Builds functions from nodes given as values: FunctionDefHelper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from graphcore.attrs import AttrValue, Func, TensorValue
from graphcore.definitions.op_def_builder import OpDefBuilder
from graphcore.definitions.types import FunctionDef, NodeDef, OpDef
from graphcore.dtypes import DType, float32, int32
from graphcore.errors import InvalidArgumentError
from graphcore.functions.define import define_body
from graphcore.functions.placeholders import given_attr
from graphcore.registry import op_registry
from graphcore.text.printer import reads_as_stateful
from graphcore.text.statements import LookUp, ParsedBody, Statement

Pairs: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]]


class FunctionNode(msgspec.Struct, frozen=True):
    """One node of a function's body.

    Args:
        ret: the names of its results; the first one is the node's name.
        op: the op, or a function.
        arg: its inputs: `node:out_arg:index` for create, result names for define.
        attr: attrs; a string `$T` stands for the function's attr T.
        dep: names of nodes that must run before it.
        device: the requested device.
    """

    ret: Sequence[str]
    op: str
    arg: Sequence[str] = ()
    attr: Pairs = ()
    dep: Sequence[str] = ()
    device: str = ""
    original_node_names: Sequence[str] = ()
    original_func_names: Sequence[str] = ()

    def to_node_def(self) -> NodeDef:
        """The NodeDef: inputs in order, then the control inputs.

        Raises:
            InvalidArgumentError: there is no name, or an attr is no attr value.
        """
        if not self.ret:
            raise InvalidArgumentError(f"A node of op {self.op} needs at least one result name", op=self.op)
        inputs = (*self.arg, *[f"^{name}" for name in self.dep])
        names = (tuple(self.original_node_names), tuple(self.original_func_names))
        return NodeDef(self.ret[0], self.op, inputs, self.device, _attrs(self.attr), *names)


AnyNode: TypeAlias = FunctionNode | Sequence[Any]


class FunctionDefHelper:
    """Makes FunctionDefs, their nodes and attrs."""

    Node = FunctionNode

    @staticmethod
    def function_ref(name: str, attrs: Pairs = ()) -> Func:
        """A function as an attr value: `function_ref("Square", {"T": "$T"})`."""
        return Func(name, _attrs(attrs))

    @staticmethod
    def const(name: str, value: object, dtype: DType | None = None) -> FunctionNode:
        """A Const node. A Python int becomes int32, a float float32; NumPy values keep their type."""
        tensor = value if isinstance(value, TensorValue) else TensorValue(np.asarray(value), dtype or _python_dtype(value))
        return FunctionNode((name,), "Const", (), {"dtype": tensor.dtype, "value": tensor})

    @staticmethod
    def create(
        name: str,
        in_def: Sequence[str],
        out_def: Sequence[str],
        attr_def: Sequence[str],
        nodes: Iterable[AnyNode],
        ret: Pairs,
        control_ret: Pairs = (),
    ) -> FunctionDef:
        """A function with body inputs written as `arg` or `node:out_arg:index`, with explicit returns.

        It is marked stateful if an op of the body is stateful or unknown to the global registry (and so probably a function).

        Raises:
            InvalidArgumentError: the signature has errors.
        """
        control = dict(control_ret)
        signature = _signature(name, in_def, out_def, attr_def, control)
        body = tuple([_as_node(node).to_node_def() for node in nodes])
        if reads_as_stateful(body):
            signature = msgspec.structs.replace(signature, is_stateful=True)
        return FunctionDef(signature=signature, node_def=body, ret=dict(ret), control_ret=control)

    @staticmethod
    def define(*args: Any, look_up: LookUp | None = None) -> FunctionDef:
        """A function with body inputs written as result names: `define(name, args, rets, attrs, nodes)`.

        The default name is `_`. A node lists a name for every output of its op; each return is a result of its name. The function is marked
        stateful if an op of the body is.

        Args:
            args: the name (may be left out), specs of arguments, returns and attrs, and the nodes.
            look_up: returns the OpDef of an op by name; the global registry by default.

        Raises:
            InvalidArgumentError: the signature has errors, an input is not defined before, an output has no name.
            NotFoundError: an op is not registered.
        """
        if len(args) not in {4, 5}:
            raise InvalidArgumentError(f"define takes ([name,] arg_def, ret_def, attr_def, nodes), got {len(args)} arguments")
        name, arg_def, ret_def, attr_def, nodes = args if len(args) == 5 else ("_", *args)
        statements = [Statement(list(node.ret), node.to_node_def(), 0) for node in map(_as_node, nodes)]
        signature = _signature(name, arg_def, ret_def, attr_def, {})
        return define_body(signature, {}, ParsedBody(statements=statements), look_up or op_registry.look_up_op_def)


def _signature(name: str, inputs: Sequence[str], outputs: Sequence[str], attrs: Sequence[str], control: Mapping[str, str]) -> OpDef:
    builder = OpDefBuilder(name)
    for spec in inputs:
        builder.input(spec)
    for spec in outputs:
        builder.output(spec)
    for spec in attrs:
        builder.attr(spec)
    for output in control:
        builder.control_output(output)
    return builder.finalize()


def _as_node(node: AnyNode) -> FunctionNode:
    return node if isinstance(node, FunctionNode) else FunctionNode(*node)


def _attrs(attrs: Pairs) -> dict[str, AttrValue]:
    return {name: given_attr(value) for name, value in dict(attrs).items()}


def _python_dtype(value: object) -> DType | None:
    if isinstance(value, np.ndarray | np.generic | bool):
        return None
    if isinstance(value, list | tuple):
        return _python_dtype(value[0]) if value else float32
    return int32 if isinstance(value, int) else float32 if isinstance(value, float) else None
