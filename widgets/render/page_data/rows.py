"""Rows: what the data of a page says of each node, as values."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from graphcore.graph.shapes.symbolic_refiner import SymbolicRefiner
from graphcore.inference.expressions import expression_of
from graphcore.plumbing import ARG
from graphcore.runtime.core.sizes import tensor_bytes
from widgets.scene.calls import calls_functions
from widgets.scene.devices import assigned_device, is_elsewhere
from widgets.scene.lenses import cell_label
from widgets.scene.origins import origins_of
from widgets.scene.shapes.clashes import source_row
from widgets.scene.shapes.unknowns import MAX_NODES, size_texts
from widgets.scene.words import called_functions, is_short, user_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from graphcore.graph import GradientRecord, Graph, Node, Tensor
    from graphcore.inference import DimensionHandle
    from widgets.inspection import SourceRow
    from widgets.render.page_data.explained import SlotNames
    from widgets.render.page_data.texts import AttrTexts
    from widgets.render.page_data.types import GradientText

SHORT: Final = 1
GRADIENT: Final = 2
PARTIAL: Final = 4
DIFFERENTIATED: Final = 8
ELSEWHERE: Final = 16
_REFERENCES: Final = ("resource",)

InfoRow = tuple[str, tuple[str, ...] | None, bool, int | None]
"""Type, sizes, True for a reference, and bytes of a tensor."""
Names = tuple[tuple[str, ...], tuple[str, ...]]


class InputRow(msgspec.Struct, frozen=True, gc=False):
    """An input: the name and output of its producer.

    For one that is not in the graph there are the type and the dimensions, too.
    """

    name: str
    slot: int
    info: InfoRow | None = None
    dims: tuple[int, ...] | None = None


class OfGradient(NamedTuple):
    """The origin of a gradient node.

    It is the differentiated node, the name and text of the function, and the node in its body.
    """

    forward: str
    function: str | None
    text: GradientText | None
    body_node: str


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node. The fields are as those of `SpaceColumns`, with values in place of numbers.

    `dims` are keys of dimensions: equal keys are one dimension. `origin` is the name of the node that it differentiates.
    """

    id: int
    path: str
    name: str
    op: str
    kind: str
    detail: str
    cell: str
    device: str
    request: str
    functions: str
    definition: str
    slot_names: Names
    registered: GradientText | None
    source: SourceRow | None
    flags: int
    inputs: tuple[InputRow, ...]
    waits: tuple[str, ...]
    outputs: tuple[InfoRow, ...]
    dims: tuple[int, ...]
    gradient: OfGradient | None
    origin: str
    user_name: str

    @property
    def full_name(self) -> str:
        """The name within the graph or body."""
        return f"{self.path}/{self.name}" if self.path else self.name


class Marks:
    """The facts about a whole graph that the rows of its nodes have.

    Attributes:
        records: the records of gradient nodes.
        gradients: the names of the nodes of the backward pass.
        differentiated: the names of the nodes that are differentiated.
        origins: for each gradient node the node that it differentiates.
        sizes: the types, shapes and dimensions of each node's outputs; empty where each node has its own.
        merges: equal dimensions that merges have found are one.
    """

    def __init__(self) -> None:
        self.records: dict[str, GradientRecord] = {}
        self.gradients: AbstractSet[str] = frozenset()
        self.differentiated: set[str] = set()
        self.origins: dict[str, str] = {}
        self.sizes: dict[str, tuple[tuple[InfoRow, ...], tuple[int, ...]]] = {}
        self.merges = False

    @classmethod
    def of(cls, graph: Graph, backward: AbstractSet[str] | None) -> Marks:
        """The marks of a graph, or of a body with these nodes of the backward pass; without `sizes`."""
        marks = cls()
        marks.merges = len(graph) <= MAX_NODES
        if backward is not None:
            marks.gradients = backward
        elif graph.gradient_records:
            marks.records = dict(graph.gradient_records)
            marks.gradients = _backward(graph, marks.records)
            marks.differentiated = {record.forward for record in marks.records.values()}
            marks.origins = origins_of(graph)
        return marks


def _backward(graph: Graph, records: Mapping[str, GradientRecord]) -> set[str]:
    """The recorded gradient nodes, and those in scopes that mostly consist of such nodes."""
    nodes = graph.nodes
    backward = {node.name for node in nodes if node.name in records}
    if not backward:
        return backward
    names = sorted([node.name for node in nodes])
    recorded = [0, *accumulate([name in backward for name in names])]
    helpers: dict[str, list[str]] = {}
    for name in names:
        path = name.rpartition("/")[0]
        if path and name not in backward:
            helpers.setdefault(path, []).append(name)
    for path, inside in helpers.items():
        first, end = bisect_left(names, f"{path}/"), bisect_left(names, f"{path}0")  # "0" comes after "/"
        if 2 * (recorded[end] - recorded[first]) > end - first:
            backward.update(inside)
    return backward


class RowMaker:
    """Makes the rows of the nodes of one graph or body.

    Args:
        prefix: what the names of its nodes begin with: "" for the graph, `call:then/` for a body.
        backward: the names of gradient nodes of a body, None for the graph.
        attrs, slots: texts of nodes, shared by the bodies of a graph.

    Attributes:
        marks: what rows have of the whole graph, as of the last `look`.
        missing: by the names of nodes that were not in the graph, the nodes that take their outputs or wait for them.
    """

    def __init__(
        self, graph: Graph, *, attrs: AttrTexts, slots: SlotNames, prefix: str = "", backward: AbstractSet[str] | None = None
    ) -> None:
        self._graph = graph
        self._attrs = attrs
        self._slots = slots
        self._prefix = prefix
        self._backward = backward
        self._symbolic = isinstance(graph.refiner, SymbolicRefiner)
        self._infos: dict[object, tuple[InfoRow, ...]] = {}
        self._sources: dict[object, SourceRow | None] = {}
        self.marks = Marks()
        self.missing: dict[str, set[str]] = {}

    def look(self) -> None:
        """Look at the whole graph, before rows are made of its nodes."""
        self.marks = Marks.of(self._graph, self._backward)
        self._measure_all()

    def _measure_all(self) -> None:
        if not self.marks.merges and not self._symbolic:
            return
        graph, sizes = self._graph, self.marks.sizes
        if not self.marks.merges:
            sizes.update({node.name: (self._outputs(node), _dims(node)) for node in graph.nodes})
            return
        classes = graph.dimension_classes()
        first: dict[int, int] = {}
        for node in sorted(graph.nodes, key=lambda node: node.id):
            dims: list[int] = []
            for index, handle in enumerate(node.output_handles):
                if handle.dims is not None:
                    keys = classes.get(f"{node.name}:{index}")
                    own = [id(dim) for dim in handle.dims]
                    dims.extend(own if keys is None else map(first.setdefault, keys, own))
            sizes[node.name] = self._outputs(node), tuple(dims)

    def row(self, node: Node) -> NodeRow:
        """The row of a node."""
        marks = self.marks
        path, _, name = node.name[len(self._prefix) :].rpartition("/")
        kind, detail, definition, registered = self._attrs.of(node)
        outputs, dims = marks.sizes.get(node.name) or (self._outputs(node), _dims(node))
        return NodeRow(
            id=node.id,
            path=path,
            name=name,
            op=node.op,
            kind=kind,
            detail=detail,
            cell=cell_label(node),
            device=assigned_device(node),
            request=node.device,
            functions=", ".join(called_functions(node)) if calls_functions(node) else "",
            definition=definition,
            slot_names=self._slots.of(node),
            registered=registered,
            source=self._source(node),
            flags=self._flags(node),
            inputs=tuple([self._input(tensor, node) for tensor in node.inputs]),
            waits=tuple([self._below(other.name) for other in node.control_inputs if self._is_there(other, node)]),
            outputs=outputs,
            dims=dims,
            gradient=self._gradient(node),
            origin=marks.origins.get(node.name, ""),
            user_name=user_name(node.attr) if node.op in ARG else "",
        )

    def _below(self, name: str) -> str:
        """The name within the graph or body."""
        return name[len(self._prefix) :]

    def _is_there(self, awaited: Node, node: Node) -> bool:
        is_there = self._graph.find(awaited.name) is not None
        if not is_there:
            self.missing.setdefault(awaited.name, set()).add(node.name)
        return is_there

    def _source(self, node: Node) -> SourceRow | None:
        origin = node.source
        if origin not in self._sources:
            self._sources[origin] = source_row(origin)
        return self._sources[origin]

    def _flags(self, node: Node) -> int:
        marks, cells = self.marks, self._graph.cells
        flags = SHORT if node.registration.traits.role == "constant" and is_short(node) else 0
        if node.name in marks.gradients:
            flags |= GRADIENT
        if cells.failed and cells.is_partial(node):
            flags |= PARTIAL
        if node.name in marks.differentiated:
            flags |= DIFFERENTIATED
        return flags | ELSEWHERE if is_elsewhere(node) else flags

    def _input(self, tensor: Tensor, node: Node) -> InputRow:
        source = tensor.node
        if self._graph.find(source.name) is source and source is not node:
            return InputRow(self._below(source.name), tensor.index)
        self.missing.setdefault(source.name, set()).add(node.name)
        handles = source.output_handles
        handle = handles[tensor.index] if tensor.index < len(handles) else None
        dims = None if handle is None or handle.dims is None else tuple([id(dim) for dim in handle.dims])
        return InputRow(source.name.removeprefix(self._prefix), tensor.index, _info(tensor), dims)

    def _outputs(self, node: Node) -> tuple[InfoRow, ...]:
        """Types and shapes; those of equal nodes are made once."""
        if self._symbolic:
            sizes: tuple[tuple[object, ...] | None, ...] = tuple(
                [None if h.dims is None else tuple([_named_size(dim) for dim in h.dims]) for h in node.output_handles]
            )
            is_numbered = any(None in shape for shape in sizes if shape is not None)
        else:
            sizes = tuple([None if h.dims is None else tuple([dim.value for dim in h.dims]) for h in node.output_handles])
            is_numbered = self._backward is None and any(-1 in shape for shape in sizes if shape is not None)
        if is_numbered or len(sizes) != len(node.output_types):
            return tuple([_info(tensor) for tensor in node.outputs])
        key = node.output_types, sizes
        infos = self._infos.get(key)
        if infos is None:
            infos = self._infos[key] = tuple([_info(tensor) for tensor in node.outputs])
        return infos

    def _gradient(self, node: Node) -> OfGradient | None:
        record = self.marks.records.get(node.name)
        if record is None:
            return None
        text = self._attrs.gradients.of_record(self._graph, record)
        return OfGradient(record.forward, None if record.function is None else record.function.name, text, record.body_node)


def _named_size(dim: DimensionHandle) -> object:
    """A size, or the expression that names it; None for one without a name."""
    return dim.value if dim.value >= 0 else expression_of(dim)


def _dims(node: Node) -> tuple[int, ...]:
    return tuple([id(dim) for handle in node.output_handles for dim in handle.dims or ()])


def _info(tensor: Tensor) -> InfoRow:
    dims = tensor.shape.dims
    dtype = tensor.node.output_types[tensor.index]
    sizes = None if dims is None else tuple(size_texts(tensor))
    return dtype.text, sizes, dtype.is_ref or dtype.text in _REFERENCES, tensor_bytes(tensor)
