"""The form of exported programs in JSON, as far as it is read. Unknown fields are left out, so that newer versions open."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from graphcore.errors import InvalidArgumentError

_T = TypeVar("_T")
Argument = dict[str, Any]
"""An argument: its kind (`as_tensor`, `as_ints`) to its value."""


class Device(msgspec.Struct):
    """A device."""

    type: str = ""
    index: int | None = None

    @property
    def text(self) -> str:
        """As PyTorch writes it: `cuda:1`."""
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Expression(msgspec.Struct):
    """A symbolic number."""

    expr_str: str = ""
    hint: Any = None


class Symbolic(msgspec.Struct):
    """A number or an expression."""

    as_expr: Expression | None = None
    as_int: int | None = None
    as_float: Any = None
    as_bool: bool | None = None


class TensorMeta(msgspec.Struct):
    """The type of a tensor."""

    dtype: int = 0
    sizes: list[Symbolic] = []
    requires_grad: bool = False
    device: Device | None = None
    strides: list[Symbolic] = []
    storage_offset: Symbolic | int | None = None
    layout: int = 7


class NamedArgument(msgspec.Struct):
    """An argument of a node under the name that the op gives it."""

    name: str = ""
    arg: Argument = {}


class Node(msgspec.Struct):
    """A node."""

    target: str
    inputs: list[NamedArgument] = []
    outputs: list[Argument] = []
    metadata: dict[str, Any] = {}
    name: str | None = None


class Graph(msgspec.Struct):
    """A graph."""

    inputs: list[Argument] = []
    outputs: list[Argument] = []
    nodes: list[Node] = []
    tensor_values: dict[str, TensorMeta] = {}
    sym_int_values: dict[str, Symbolic] = {}
    sym_bool_values: dict[str, Symbolic] = {}
    sym_float_values: dict[str, Symbolic] = {}


class Signature(msgspec.Struct):
    """The meaning of the inputs and outputs of a program. The oldest files have tables from names instead of lists."""

    input_specs: list[dict[str, Any]] = []
    output_specs: list[dict[str, Any]] = []
    inputs_to_parameters: dict[str, str] = {}
    inputs_to_buffers: dict[str, str] = {}
    buffers_to_mutate: dict[str, str] = {}


class CallSignature(msgspec.Struct):
    """The arguments and results of a module."""

    in_spec: str = ""
    out_spec: str = ""
    forward_arg_names: list[str] | None = None


class ModuleEntry(msgspec.Struct):
    """A module that is called."""

    fqn: str = ""
    signature: CallSignature | None = None


class GraphModule(msgspec.Struct):
    """A graph with its signature."""

    graph: Graph
    signature: Signature = msgspec.field(default_factory=Signature)
    module_call_graph: list[ModuleEntry] = []


class Range(msgspec.Struct):
    """The least and the largest value of a symbol."""

    min_val: Any = None
    max_val: Any = None


class Program(msgspec.Struct):
    """An exported program."""

    graph_module: GraphModule
    opset_version: dict[str, int] = {}
    range_constraints: dict[str, Range] = {}
    schema_version: Any = None
    torch_version: str = ""


class Payload(msgspec.Struct):
    """A tensor of an archive."""

    path_name: str = ""
    use_pickle: bool = False
    tensor_meta: TensorMeta | None = None


class Payloads(msgspec.Struct):
    """The tensors of an archive by their names."""

    config: dict[str, Payload] = {}


def decoded(data: bytes, kind: type[_T], what: str) -> _T:
    """JSON of a known form.

    Raises:
        InvalidArgumentError: it is no JSON, or has another form. The message says where.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _unfit(what, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return converted(_plain(data, what), kind, what)  # older versions write `Infinity`, which is no JSON


def converted(value: object, kind: type[_T], what: str) -> _T:
    """Plain data of a known form.

    Raises:
        InvalidArgumentError: it has another form.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _unfit(what, error) from None


def _plain(data: bytes, what: str) -> object:
    try:
        return json.loads(data)
    except ValueError as error:
        raise InvalidArgumentError(f"{what} is damaged JSON: {str(error)[:200]}") from None


def _unfit(what: str, error: Exception) -> InvalidArgumentError:
    return InvalidArgumentError(f"{what} has another form than that of PyTorch's exported programs: {str(error)[:300]}")
