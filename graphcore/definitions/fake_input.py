"""Fake inputs for node builders, in tests where only types matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphcore.attrs import AttrValue
from graphcore.definitions.op_tables import attr_of
from graphcore.definitions.types import ArgDef, NodeDef, OpDef
from graphcore.dtypes import DType, as_dtype, float32
from graphcore.errors import GraphError, InvalidArgumentError


class NodeOut:
    """Output `index` of node `node`, of type `dtype`."""

    __slots__ = ("dtype", "index", "node")

    def __init__(self, node: str, index: int, dtype: DType | str) -> None:
        self.node = node
        self.index = index
        self.dtype = as_dtype(dtype)

    def __repr__(self) -> str:
        return f"NodeOut({self.node!r}, {self.index}, {self.dtype!r})"


class FakeInput:
    """An input with a generated name: the k-th input is called `a`, `b`, ...

    A list input takes the outputs of one such node. `FakeInput()` takes length and types from attrs that are set already,
    `FakeInput(dtype)` is one tensor, `FakeInput(n)` and `FakeInput(n, dtype)` are lists of equal types, `FakeInput([dtype, ...])` is a list
    of these types.
    """

    __slots__ = ("dtype", "dtypes", "length")

    def __init__(self, first: int | DType | str | Iterable[DType | str] | None = None, dtype: DType | str | None = None) -> None:
        self.length: int | None = None
        self.dtypes: list[DType] | None = None
        if isinstance(first, int):
            self.length = first
        elif isinstance(first, DType | str):
            dtype = first
        elif first is not None:
            self.dtypes = [as_dtype(item) for item in first]
        self.dtype = None if dtype is None else as_dtype(dtype)

    def resolve(self, op_def: OpDef, position: int, attrs: Mapping[str, AttrValue], node_name: str) -> NodeOut | list[NodeOut]:
        """The tensors of input `position` of a node of `op_def` with these attrs.

        Raises:
            InvalidArgumentError: a length or type is neither given nor set.
        """
        arg = op_def.input_arg[position]
        node = NodeDef(node_name, op_def.name, (), "", attrs)
        name = chr(ord("a") + position % 26)
        if self.dtypes is not None:
            return [NodeOut(name, i, dtype) for i, dtype in enumerate(self.dtypes)]
        if self.length is not None or arg.number_attr:
            length = self._length(arg, node)
            dtype = self._type(arg, node, op_def) if length > 0 else float32
            return [NodeOut(name, i, dtype) for i in range(length)]
        if self.dtype is None and arg.type_list_attr:
            return [NodeOut(name, i, dtype) for i, dtype in enumerate(_type_list(arg, node))]
        return NodeOut(name, 0, self._type(arg, node, op_def))

    def _length(self, arg: ArgDef, node: NodeDef) -> int:
        if self.length is not None:
            return self.length
        try:
            value = attr_of(node, arg.number_attr)
        except GraphError as error:
            raise InvalidArgumentError(f"Could not infer length of input '{arg.name}': {error.message}") from None
        if type(value) is not int:
            raise InvalidArgumentError(f"Could not infer length of input '{arg.name}': attr '{arg.number_attr}' is no int")
        return value

    def _type(self, arg: ArgDef, node: NodeDef, op_def: OpDef) -> DType:
        if self.dtype is not None:
            return self.dtype
        dtype = arg.type if not arg.type_attr else _type_of_attr(arg, node, op_def)
        if dtype is None:
            raise InvalidArgumentError(f"No type or type_attr field in arg '{arg.name}'")
        return dtype.ref if arg.is_ref else dtype


def _type_of_attr(arg: ArgDef, node: NodeDef, op_def: OpDef) -> DType:
    attr = op_def.find_attr(arg.type_attr)
    default = attr.default_value if attr is not None else None
    if arg.type_attr not in node.attr and isinstance(default, DType):
        return default
    try:
        value = attr_of(node, arg.type_attr)
    except GraphError as error:
        raise InvalidArgumentError(f"Could not infer type for input '{arg.name}': {error.message}") from None
    if not isinstance(value, DType):
        raise InvalidArgumentError(f"Could not infer type for input '{arg.name}': attr '{arg.type_attr}' is no type")
    return value


def _type_list(arg: ArgDef, node: NodeDef) -> list[DType]:
    try:
        value = attr_of(node, arg.type_list_attr)
    except GraphError as error:
        raise InvalidArgumentError(f"Could not infer list of types for input '{arg.name}': {error.message}") from None
    if not isinstance(value, tuple) or not all(isinstance(item, DType) for item in value):
        raise InvalidArgumentError(f"Could not infer list of types for input '{arg.name}': attr '{arg.type_list_attr}' is no list of types")
    return list(value)
