"""Nodes, their tensors with Python's operators, and the edges between them, in the public form.

A node belongs to a graph, and a user asks it for all that a graph does: so `Node.graph` is a `Graph`, the one class of the rooms above
that this room names, in an annotation only. The rooms between work on a `PlainGraph`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import msgspec

from graphcore.attrs import Array, AttrValue
from graphcore.definitions.types import NodeDef, OpDef
from graphcore.dtypes import INVALID, DType
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.inference import HandleData, ShapeHandle, handle_to_shape
from graphcore.registry import OpRegistration
from graphcore.shapes import Shape
from graphcore.source import SourceLocation

if TYPE_CHECKING:
    from graphcore.device_spec import DeviceSpec
    from graphcore.graph.graph import Graph

CONTROL_SLOT: Final = -1
CONTROL_KEY: Final = (CONTROL_SLOT, CONTROL_SLOT)

# The garbage collector visits every container of a large graph: so empty containers are shared (they are replaced, never changed), a single
# output is held without a list, and a definition is written on first access.
NO_CONTROLS: Final[list[Node]] = []
_ABSENT: Final = OpRegistration(OpDef(name=""), is_opaque=True)
_NO_ERRORS: Final[dict[int, str]] = {}
_NOTHING_ALIKE: Final[dict[int, Tensor | ShapeHandle]] = {}


class Node:
    """One operation of a graph, made by the graph only.

    Attributes:
        name, op: the node's name and its op type.
        node_def, op_def: its definitions.
        inputs: the tensor of each input slot.
        control_inputs: nodes that run before this one.
        outputs: its tensors.
        input_types, output_types: dtypes by slot, from OpDef and attrs.
        assigned_device: its device, "" before placement.
        source: the line of user code that made it.
        error: its current error (a misfit after a change upstream), None if there is none.
        input_errors: the errors of single inputs, by slot.
        rank: its position in a topological order; see `graphcore.graph.model.topological_order`.
        like: outputs with a shape from elsewhere: that of another tensor (a gradient has its tensor's), or one that the user gave.
        handle_data: the handle data of resource and variant outputs, by output; None if nothing is known.
    """

    __slots__ = (
        "__weakref__",
        "_definition",
        "_outputs",
        "assigned_device",
        "constants",
        "control_inputs",
        "error",
        "graph",
        "handle_data",
        "id",
        "input_errors",
        "input_types",
        "inputs",
        "like",
        "name",
        "op",
        "op_def",
        "output_handles",
        "output_types",
        "rank",
        "registration",
        "requested_values",
        "source",
    )

    def __init__(
        self,
        graph: Graph,
        node_id: int,
        name: str,
        definition: NodeDef | Mapping[str, AttrValue],
        registration: OpRegistration,
        inputs: list[Tensor],
        controls: list[Node],
        input_types: tuple[DType, ...],
        output_types: tuple[DType, ...],
        source: SourceLocation | None,
    ) -> None:
        op_def = registration.op_def
        self.graph = graph
        self.id = self.rank = node_id
        self.name = name
        self.op = op_def.name
        self._definition = definition
        self.registration = registration
        self.op_def: OpDef = op_def
        self.inputs = inputs
        self.control_inputs = controls
        self.input_types = input_types
        self.output_types = output_types
        self._outputs = Tensor(self, 0) if len(output_types) == 1 else [Tensor(self, i) for i in range(len(output_types))]
        self.output_handles: tuple[ShapeHandle, ...] = ()
        self.handle_data: dict[int, HandleData] | None = None
        self.constants: dict[int, Array | None] | None = None
        self.requested_values = 0  # a bit for each input whose value its shape function has requested
        self.like: dict[int, Tensor | ShapeHandle] = _NOTHING_ALIKE
        self.assigned_device = ""
        self.source = source
        self.error: GraphError | None = None
        self.input_errors: dict[int, str] = _NO_ERRORS

    @property
    def node_def(self) -> NodeDef:
        """The definition, written on first access; changes replace it."""
        definition = self._definition
        if isinstance(definition, NodeDef):
            return definition
        written = NodeDef(self.name, self.op, tuple([input_text(tensor) for tensor in self.inputs]), "", definition)
        self._definition = written
        return written

    @node_def.setter
    def node_def(self, node_def: NodeDef) -> None:
        self._definition = node_def

    @property
    def attr(self) -> Mapping[str, AttrValue]:
        """The attrs; must not be changed."""
        definition = self._definition
        return definition.attr if isinstance(definition, NodeDef) else definition

    @property
    def outputs(self) -> list[Tensor]:
        """The output tensors."""
        outputs = self._outputs
        return outputs if isinstance(outputs, list) else [outputs]

    @outputs.setter
    def outputs(self, outputs: list[Tensor]) -> None:
        self._outputs = outputs[0] if len(outputs) == 1 else outputs

    @property
    def device(self) -> str:
        """The requested device, "" if none."""
        definition = self._definition
        return definition.device if isinstance(definition, NodeDef) else ""

    @property
    def type(self) -> str:
        """The op (TF1's name)."""
        return self.op

    def values(self) -> list[Tensor]:
        """The output tensors (TF1's name)."""
        return self.outputs

    @property
    def is_op(self) -> bool:
        """False for the graph's own source and sink."""
        return self.id > 1

    @property
    def is_source(self) -> bool:
        """True for the graph's own source."""
        return self.id == 0

    @property
    def is_sink(self) -> bool:
        """True for the graph's own sink."""
        return self.id == 1

    @property
    def is_opaque(self) -> bool:
        """True iff its op is not registered: an imported node that can be shown and exported, but not run."""
        return self.registration.is_opaque

    @property
    def attrs(self) -> dict[str, AttrValue]:
        """A copy of the attrs."""
        return dict(self.attr)

    def get_attr(self, name: str) -> AttrValue:
        """The value of attr `name`.

        Raises:
            InvalidArgumentError: the node has no such attr.
        """
        try:
            return self.attr[name]
        except KeyError:
            raise InvalidArgumentError.at(self, f"No attr named '{name}' in node '{self.name}' (op {self.op})", attr=name) from None

    def add_attr(self, name: str, value: object) -> None:
        """Set an attr; see `Graph.set_attr`."""
        self.graph.set_attr(self, name, value)

    def clear_attr(self, name: str) -> None:
        """Remove an attr; see `Graph.set_attr`."""
        self.graph.set_attr(self, name, None)

    def set_requested_device(self, spec: str | DeviceSpec) -> None:
        """Request a device; see `Graph.set_requested_device`."""
        self.graph.set_requested_device(self, spec)

    def consumers(self) -> list[tuple[Node, int]]:
        """The consumers of outputs of this node, each with the input slot; -1 for a control edge."""
        return self.graph.consumers(self)

    def input_node(self, index: int) -> Node:
        """The producer of input `index`; fails as `input_edge` does."""
        return self.input_edge(index).src

    def input_edge(self, index: int) -> Edge:
        """The edge to input `index`.

        Raises:
            InvalidArgumentError: the node has no such input.
            NotFoundError: it is not connected at present.
        """
        return self.graph.edge_store.input_edge(self, index)

    def input_edges(self) -> list[Edge]:
        """The edges to the inputs, in the order of their slots.

        Raises:
            InvalidArgumentError: one is not connected.
        """
        return self.graph.edge_store.input_edges(self)

    def in_edges(self) -> list[Edge]:
        """All edges to it, including control edges and that from the source, by id."""
        return self.graph.edge_store.all_in_edges(self)

    def out_edges(self) -> list[Edge]:
        """All edges from it, including control edges and that to the sink, by id."""
        return self.graph.edge_store.all_out_edges(self)

    @property
    def traceback(self) -> list[str]:
        """The line of user code that made it, if that is known (TF1's name)."""
        return [] if self.source is None else [str(self.source)]

    def colocation_groups(self) -> list[bytes]:
        """The groups of nodes that share a device: attr `_class`, or the node's own (TF1's name)."""
        groups = self.attr.get("_class")
        return list(groups) if isinstance(groups, tuple) and groups else [f"loc:@{self.name}".encode()]

    def run(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> None:
        """Run it, with its ancestors, in `session` (the default session if None)."""
        self.graph.evaluate(self, feed_dict, session)

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: copies of layers and cells refer to the same nodes."""
        return self

    def __repr__(self) -> str:
        return f"<gc.Node '{self.name}' op={self.op}>"


def only_output(node: Node) -> Tensor:
    """The output of a node whose op always has exactly one."""
    outputs = node._outputs
    return outputs[0] if isinstance(outputs, list) else outputs


def producers_of(node: Node) -> list[Node]:
    """The nodes that `node` has inputs or control inputs from."""
    return [tensor.node for tensor in node.inputs] + node.control_inputs


def absent_tensor(graph: Graph, name: str, index: int, dtype: DType = INVALID) -> Tensor:
    """Output `index` of a missing node; its shape is unknown."""
    node = Node(graph, -1, name, NodeDef(name, ""), _ABSENT, [], NO_CONTROLS, (), (dtype,) * (index + 1), None)
    node.output_handles = tuple([ShapeHandle() for _ in node.outputs])
    return node.outputs[index]


def input_text(tensor: Tensor) -> str:
    """The text of an input in a NodeDef: output 0 has no number."""
    return tensor.node.name if tensor.index == 0 else f"{tensor.node.name}:{tensor.index}"


def no_value(tensor: Tensor, so: str) -> InvalidArgumentError:
    """The error of a request for a tensor's value during construction; `so` states the consequence."""
    text = f"The tensor '{tensor.name}' has no value until a Session runs it, so {so}: `session.run(...)` or `eval()` gives its value"
    return InvalidArgumentError.at(tensor.node, text).advise(
        _INSTEAD.get(so, "Use `session.run(\u00ab{0}\u00bb)`, which gives the value, in place of the tensor.").format(tensor.name),
        required="a value",
        came=f"the tensor '{tensor.name}', which stands for values of later runs",
    )


_CONDITION: Final = "`if` and `and` cannot use it"
_ROWS: Final = "it cannot be iterated over"
_INSTEAD: Final = {
    _CONDITION: "For a choice in the graph use `gc.cond(\u00ab{0}\u00bb, lambda: ..., lambda: ...)`; in Python, `if session.run(\u00ab{0}\u00bb):`.",
    _ROWS: "Work on all rows at once, without a loop: most functions of `gc` do. `gc.unstack(\u00ab{0}\u00bb)` gives the rows as a list if their number is known.",
}
"""Suggestions by the consequence."""


class Operators:
    """Python's operators, each of which adds a node and gives its tensor.

    `==` stays identity: tensors are keys of feed dictionaries.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def as_tensor(self) -> Tensor:
            """The tensor that stands for it in nodes."""

    def __add__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.add(own, other, "add")

    def __radd__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.add(other, own, "add")

    def __sub__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("Sub", own, other, "sub")

    def __rsub__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("Sub", other, own, "sub")

    def __mul__(self, other: object) -> Tensor:
        if hasattr(other, "with_values"):  # a sparse tensor, which multiplies itself
            return NotImplemented
        return (own := self.as_tensor()).graph.building().builder.binary("Mul", own, other, "mul")

    def __rmul__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("Mul", other, own, "mul")

    def __truediv__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.truediv(own, other)

    def __rtruediv__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.truediv(other, own)

    def __floordiv__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("FloorDiv", own, other, "floordiv")

    def __rfloordiv__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("FloorDiv", other, own, "floordiv")

    def __mod__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("FloorMod", own, other, "mod")

    def __rmod__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("FloorMod", other, own, "mod")

    def __pow__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("Pow", own, other, "pow")

    def __rpow__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("Pow", other, own, "pow")

    def __matmul__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.matmul(own, other)

    def __rmatmul__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.matmul(other, own)

    def __lt__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("Less", own, other, "Less")

    def __le__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("LessEqual", own, other, "LessEqual")

    def __gt__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("Greater", own, other, "Greater")

    def __ge__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("GreaterEqual", own, other, "GreaterEqual")

    def __and__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("LogicalAnd", own, other, "and")

    def __or__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("LogicalOr", own, other, "or")

    def __xor__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.logical_xor(own, other)

    def __rand__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("LogicalAnd", other, own, "and")

    def __ror__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.binary("LogicalOr", other, own, "or")

    def __rxor__(self, other: object) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.logical_xor(other, own)

    def __neg__(self) -> Tensor:
        return (own := self.as_tensor()).graph.building().apply_op("Neg", [own]).outputs[0]

    def __abs__(self) -> Tensor:
        return (own := self.as_tensor()).graph.building().builder.absolute(own)

    def __invert__(self) -> Tensor:
        return (own := self.as_tensor()).graph.building().apply_op("LogicalNot", [own]).outputs[0]


class Tensor(Operators, msgspec.Struct, eq=False):
    """Output `index` of `node`: a value that exists at run time."""

    node: Node
    index: int

    __array_ufunc__ = None  # makes NumPy leave `array + tensor` to the methods below

    @property
    def name(self) -> str:
        """`node:index`."""
        return f"{self.node.name}:{self.index}"

    @property
    def graph(self) -> Graph:
        """The graph it belongs to."""
        return self.node.graph

    @property
    def op(self) -> Node:
        """The node of the tensor (TF1's name)."""
        return self.node

    @property
    def value_index(self) -> int:
        """The index among the outputs of its node (TF1's name)."""
        return self.index

    @property
    def dtype(self) -> DType:
        """The data type."""
        return self.node.output_types[self.index]

    @property
    def shape(self) -> Shape:
        """The known shape."""
        handles = self.node.output_handles
        return handle_to_shape(handles[self.index]) if self.index < len(handles) else Shape(None)

    def get_shape(self) -> Shape:
        """The known shape (TF1's name)."""
        return self.shape

    def set_shape(self, shape: object) -> None:
        """Merge a shape into the known one; see `Graph.set_shape`."""
        self.node.graph.set_shape(self, shape)

    @property
    def device(self) -> str:
        """The requested device of its node."""
        return self.node.device

    def consumers(self) -> list[Node]:
        """The nodes with this tensor as an input, once for each such input.

        `Graph.tensor_consumers` gives the input slots too.
        """
        return [node for node, _ in self.node.graph.tensor_consumers(self)]

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> Any:
        """Compute its value in `session` (the default session if None)."""
        return self.node.graph.evaluate(self, feed_dict, session)

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: copies of layers and cells refer to the same tensors."""
        return self

    def __repr__(self) -> str:
        return f"<gc.Tensor '{self.name}' {self.dtype.text} {self.node.graph.shape_text(self)}>"

    def numpy(self) -> NoReturn:
        """Raise an error: only a Session computes values.

        Raises:
            InvalidArgumentError: always.
        """
        raise no_value(self, "it is no NumPy array")

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise no_value(self, "it is no NumPy array")

    def __float__(self) -> NoReturn:
        raise no_value(self, "it is no Python number")

    __int__ = __complex__ = __float__

    def __bool__(self) -> NoReturn:
        raise no_value(self, _CONDITION)

    def __iter__(self) -> NoReturn:
        raise no_value(self, _ROWS)

    def as_tensor(self) -> Tensor:
        """Itself."""
        return self

    def __getitem__(self, key: Any) -> Tensor:
        return self.node.graph.building().builder.sliced(self, key)


class Edge(msgspec.Struct, frozen=True, gc=False):
    """An edge from output `src_output` of `src` to input `dst_input` of `dst`; both are -1 for control."""

    id: int
    src: Node
    src_output: int
    dst: Node
    dst_input: int

    @property
    def is_control_edge(self) -> bool:
        """True iff it is a control edge."""
        return self.src_output == CONTROL_SLOT

    def __str__(self) -> str:
        return f"[id={self.id} {_end_name(self.src)}:{self.src_output} -> {_end_name(self.dst)}:{self.dst_input}]"


def _end_name(node: Node | None) -> str:
    """The name of an end; missing if it was removed."""
    return "<NULL>" if node is None or node.graph.find_node_id(node.id) is not node else node.name
