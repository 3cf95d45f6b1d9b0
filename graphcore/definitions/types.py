"""Definitions: immutable values that print, compare and hash. Protobuf is only their wire form.

Fields of a file that have no counterpart here are kept, serialised, in `other_fields` and written back with the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn, Protocol

import msgspec

from graphcore.attrs import AttrValue
from graphcore.dtypes import DType, resource
from graphcore.errors import FailedPreconditionError, FixedValueError, NotFoundError
from graphcore.support.safe_import import import_whole

_FILES: Final = "graphcore.definitions.wire.files"
"""The codec, which is built on these types and loads the protobuf runtime."""

PRODUCER_VERSION: Final = 2474
"""The GraphDef version that graphs made here carry (and the newest that is understood)."""


class ArgDef(msgspec.Struct, frozen=True, kw_only=True):
    """One input or output of an op.

    Exactly one of `type`, `type_attr`, `type_list_attr` is set; `number_attr` makes it a list of equal types.
    """

    name: str
    description: str = ""
    type: DType | None = None
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False
    other_fields: bytes = b""

    @property
    def is_handle(self) -> bool:
        """True for a reference to a variable and for the handle of a resource."""
        return self.is_ref or self.type is resource


class AttrDef(msgspec.Struct, frozen=True, kw_only=True):
    """One attr of an op; `type` is a kind such as `int` or `list(type)`.

    None as default or allowed values means unset.
    """

    name: str
    type: str
    default_value: AttrValue | None = None
    description: str = ""
    has_minimum: bool = False
    minimum: int = 0
    allowed_values: tuple[AttrValue, ...] | None = None


class OpDeprecation(msgspec.Struct, frozen=True):
    """An op is refused from GraphDef `version` on, for the reason given."""

    version: int
    explanation: str = ""


class OpDef(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The signature of an op: name, inputs, outputs, attrs, doc and flags."""

    name: str
    input_arg: tuple[ArgDef, ...] = ()
    output_arg: tuple[ArgDef, ...] = ()
    control_output: tuple[str, ...] = ()
    attr: tuple[AttrDef, ...] = ()
    summary: str = ""
    description: str = ""
    is_commutative: bool = False
    is_aggregate: bool = False
    is_stateful: bool = False
    allows_uninitialized_input: bool = False
    is_distributed_communication: bool = False
    deprecation: OpDeprecation | None = None
    other_fields: bytes = b""

    def find_attr(self, name: str) -> AttrDef | None:
        """The attr called `name`, None if there is none."""
        return next((attr for attr in self.attr if attr.name == name), None)


_CHANGED_NODE: Final = (
    "A NodeDef does not change: `msgspec.structs.replace(node, op='Log', attr={**node.attr, ...})` makes another one, `gc.GraphDef(node=[...])` a "
    "GraphDef of nodes; the nodes of a graph change by `graph.set_attr(node, name, value)` and `node.set_requested_device(device)`"
)
_CHANGED_GRAPH: Final = (
    "A GraphDef does not change: `gc.GraphDef(node=[*graph_def.node, *others], library=graph_def.library)` makes another one"
)


class Nodes(tuple["NodeDef", ...]):
    """The nodes of a GraphDef: a tuple, which says what to do in place of protobuf's changes."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        if name in {"add", "append", "extend", "insert", "pop", "remove", "reverse", "sort", "MergeFrom", "CopyFrom"}:
            raise FixedValueError(f"GraphDef.node.{name}: {_CHANGED_GRAPH}")
        raise AttributeError(f"the nodes of a GraphDef have no attribute {name!r}")

    def __delitem__(self, place: object) -> NoReturn:
        raise FixedValueError(f"GraphDef.node: {_CHANGED_GRAPH}")

    def __setitem__(self, place: object, value: object) -> NoReturn:
        raise FixedValueError(f"GraphDef.node: {_CHANGED_GRAPH}")


class FixedAttrs(dict[str, AttrValue]):
    """The attrs of a node of a graph, in a value: they are the graph's own, and do not change."""

    __slots__ = ()

    def __missing__(self, name: str) -> NoReturn:
        raise NotFoundError(f"There is no attr {name!r}, only {', '.join(map(repr, self)) or 'none'}. {_CHANGED_NODE}", attr=name)

    def __reduce__(self) -> tuple[object, ...]:
        return FixedAttrs, (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise FixedValueError(f"NodeDef.attr: {_CHANGED_NODE}")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


# Not `frozen`, whose error says nothing of what to do.
class NodeDef(msgspec.Struct, gc=False):
    """A node definition: op, inputs (`node`, `node:1`, `^node`), requested device, attrs.

    Control inputs come last. `attr` must not be changed after creation; `msgspec.structs.replace` makes a changed copy.
    """

    name: str
    op: str
    input: tuple[str, ...] = ()
    device: str = ""
    attr: Mapping[str, AttrValue] = {}
    original_node_names: tuple[str, ...] = ()
    original_func_names: tuple[str, ...] = ()
    other_fields: bytes = b""

    def __hash__(self) -> int:
        return hash((self.name, self.op, self.input, self.device, frozenset(self.attr.items())))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FixedValueError(f"NodeDef.{name}: {_CHANGED_NODE}")


class FunctionDef(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A function: signature, body nodes, and the body tensor of each return.

    In the body an input is `arg` or `node:out_arg:index`. `arg_attr` maps an argument's index to its attrs. Equality is that of the printed
    form: docs and debug info are ignored.
    """

    signature: OpDef
    node_def: tuple[NodeDef, ...] = ()
    ret: Mapping[str, str] = {}
    control_ret: Mapping[str, str] = {}
    attr: Mapping[str, AttrValue] = {}
    arg_attr: Mapping[int, Mapping[str, AttrValue]] = {}
    other_fields: bytes = b""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.signature.name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FunctionDef):
            return NotImplemented
        if self is other:
            return True
        maps = (self.ret, self.control_ret, self.attr, self.arg_attr) == (other.ret, other.control_ret, other.attr, other.arg_attr)
        return maps and without_docs(self.signature) == without_docs(other.signature) and _plain_nodes(self) == _plain_nodes(other)

    def __ne__(self, other: object) -> bool:
        return not self == other  # msgspec's own would be inconsistent with `__eq__`

    def __hash__(self) -> int:
        return hash((self.signature.name, tuple([(node.name, node.op, node.input) for node in self.node_def])))


def without_docs(op_def: OpDef) -> OpDef:
    """The OpDef without summary and descriptions."""
    return msgspec.structs.replace(
        op_def,
        summary="",
        description="",
        input_arg=tuple([msgspec.structs.replace(arg, description="") for arg in op_def.input_arg]),
        output_arg=tuple([msgspec.structs.replace(arg, description="") for arg in op_def.output_arg]),
        attr=tuple([msgspec.structs.replace(attr, description="") for attr in op_def.attr]),
    )


def _plain_nodes(function: FunctionDef) -> list[NodeDef]:
    return [msgspec.structs.replace(node, original_node_names=(), original_func_names=()) for node in function.node_def]


class GradientDef(msgspec.Struct, frozen=True):
    """`gradient_func` computes the gradient of `function_name`."""

    function_name: str
    gradient_func: str


class FunctionDefLibrary(msgspec.Struct, frozen=True):
    """Functions, and the gradient functions of some of them."""

    function: tuple[FunctionDef, ...] = ()
    gradient: tuple[GradientDef, ...] = ()
    other_fields: bytes = b""


class VersionDef(msgspec.Struct, frozen=True):
    """The version of a graph's producer, and the consumers that may read it."""

    producer: int = 0
    min_consumer: int = 0
    bad_consumers: tuple[int, ...] = ()


class GraphDef(msgspec.Struct, kw_only=True):
    """A whole graph as a value.

    An empty one takes the contents of a file by protobuf's method `ParseFromString`, as programs for TensorFlow 1 do it.
    """

    node: tuple[NodeDef, ...] = ()
    versions: VersionDef = VersionDef()
    library: FunctionDefLibrary = FunctionDefLibrary()
    other_fields: bytes = b""

    def __post_init__(self) -> None:
        if type(self.node) is not Nodes:
            msgspec.structs.force_setattr(self, "node", Nodes(self.node))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FixedValueError(f"GraphDef.{name}: {_CHANGED_GRAPH}")

    def __hash__(self) -> int:
        return hash((self.node, self.versions, self.library, self.other_fields))

    def ParseFromString(self, serialized: bytes) -> int:  # noqa: N802 - protobuf's name
        """Fill this empty GraphDef from its serialized form. Returns the number of bytes.

        Raises:
            InvalidArgumentError: it is no serialized GraphDef.
            FailedPreconditionError: this one is not empty.
        """
        if self != GraphDef():
            raise FailedPreconditionError(
                f"ParseFromString fills an empty GraphDef, this one has {len(self.node)} nodes: make another gc.GraphDef()"
            )
        read = import_whole(_FILES).graph_def_from_bytes(serialized)
        for name in self.__struct_fields__:
            msgspec.structs.force_setattr(self, name, getattr(read, name))
        return len(serialized)

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """The serialized form, which `gc.load` and TensorFlow read.

        Raises:
            ResourceExhaustedError: it exceeds 2 GiB.
        """
        data: bytes = import_whole(_FILES).graph_def_to_bytes(self)
        return data

    @classmethod
    def FromString(cls, serialized: bytes) -> GraphDef:  # noqa: N802 - protobuf's name
        """The GraphDef in its serialized form.

        Raises:
            InvalidArgumentError: it is no serialized GraphDef.
        """
        graph_def = cls()
        graph_def.ParseFromString(serialized)
        return graph_def


class OpDefSource(Protocol):
    """A look-up of ops by name: a registry, a function library."""

    def look_up_op_def(self, name: str, /) -> OpDef:
        """The OpDef; NotFoundError if there is none."""
        ...
