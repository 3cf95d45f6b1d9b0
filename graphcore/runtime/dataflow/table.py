"""The static table of the dataflow engine: items with consumers, pending counts and frames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from graphcore.attrs import Array
from graphcore.graph.control_flow.frames import NodeFrame, frame_name
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.shapes.constant_values import constant_outputs
from graphcore.graph.shapes.evaluation import kernel_context
from graphcore.kernel_context import KernelContext
from graphcore.opset.control_flow.sending import edge_key
from graphcore.passes.optimize.redundant_calls import find_redundant_calls
from graphcore.plumbing import ANY_SWITCH, CONST, CONTROL_TRIGGER, ENTER, EXIT, MERGE, NEXT_ITERATION, RECV, SEND
from graphcore.registry import Kernel
from graphcore.runtime.core.interruptible_call import call_interruptibly
from graphcore.runtime.core.prune import checked_frames, is_replaced, needed_nodes
from graphcore.runtime.core.waiting import ThreadedCall, calls_waiting_function
from graphcore.runtime.plan.parallel import has_large, interruptible_if_long, is_long
from graphcore.runtime.plan.schedule import MakeKernel, check_runs, no_reference
from graphcore.runtime.plan.size_guards import guarded, refuse_fetched, refuse_known
from graphcore.support.deadline import check_time

# Kinds of items. Up to TRIGGER they call a kernel, and so do those from ENTERING on, which pass its result into another frame or iteration.
PLAIN: Final = 0
SWITCH: Final = 1
TRIGGER: Final = 2
ENTERING: Final = 3
ENTERING_CONSTANT: Final = 4
EXITING: Final = 5
NEXT: Final = 6
MERGING: Final = 7
SENDING: Final = 8
RECEIVING: Final = 9
FETCH: Final = 10
AWAITING: Final = 11

_KINDS: Final = {
    **dict.fromkeys(ANY_SWITCH, SWITCH),
    **dict.fromkeys(MERGE, MERGING),
    **dict.fromkeys(SEND, SENDING),
    **dict.fromkeys(RECV, RECEIVING),
    **dict.fromkeys(ENTER, ENTERING),
    **dict.fromkeys(EXIT, EXITING),
    **dict.fromkeys(NEXT_ITERATION, NEXT),
    CONTROL_TRIGGER: TRIGGER,
}


class FrameTable:
    """The static data of a frame.

    Attributes:
        name: the frame's name, "" for the root frame.
        pending: the pending count of each item, by index: 1 for each input and control input; for a Merge 1 + 2 for each control input.
        slots: the number of input values of all its items.
        enters: the number of Enter nodes into it.
        parallel: the number of iterations that may overlap.
    """

    __slots__ = ("enters", "name", "parallel", "pending", "slots")

    def __init__(self, name: str) -> None:
        self.name = name
        self.pending: list[int] = []
        self.slots = 0
        self.enters = 0
        self.parallel = 1


class Item:
    """The engine's data on one node.

    Attributes:
        kind: one of the constants above.
        index: its index among the items of its frame.
        frame: its frame; `child` is the frame of an Enter.
        base, count: the start and the number of its input values. A Merge has two: a value and its input's index.
        variables: the inputs that are variables to be read.
        data_edges: (output, consumer, the consumer's slot, its index) for each plain consumer.
        merge_edges: (output, Merge, the number of its input) for each Merge that takes an output.
        control_edges, merge_controls: the items with control inputs from it.
        dtypes: the required dtypes of its outputs, `dtype` that of the first: NumPy's for an array, graphcore's for a variable, None for other values.
        key: of a send or receive: the rendezvous key up to frame and iteration.
        number: the index of a fetch.
        passes: True if it returns its input unchanged.
    """

    __slots__ = (
        "base",
        "child",
        "context",
        "control_edges",
        "count",
        "data_edges",
        "dtype",
        "dtypes",
        "frame",
        "index",
        "kernel",
        "key",
        "kind",
        "merge_controls",
        "merge_edges",
        "name",
        "node",
        "number",
        "passes",
        "variables",
    )

    def __init__(self, node: Node, name: str, kind: int, frame: FrameTable) -> None:
        self.node = node
        self.name = name
        self.kind = kind
        self.frame = frame
        self.child = frame
        self.index = len(frame.pending)
        self.base = frame.slots
        self.count = 0
        self.variables: tuple[int, ...] = ()
        self.data_edges: list[tuple[int, Item, int, int]] = []
        self.merge_edges: list[tuple[int, Item, int]] = []
        self.control_edges: list[Item] = []
        self.merge_controls: list[Item] = []
        self.dtypes: tuple[Any, ...] = ()
        self.dtype: Any = None
        self.kernel: Kernel = nothing
        self.context: KernelContext | None = None
        self.key = ""
        self.number = 0
        self.passes = False
        frame.pending.append(0)

    def __repr__(self) -> str:
        return f"<Item {self.name} in frame '{self.frame.name}'>"


def nothing(*_inputs: Any) -> None:
    """The kernel of items that do not run."""


class Table:
    """All items of a program.

    Attributes:
        feeds: one item for each feed, which returns the fed value; `fed` are the tensors.
        roots: the items without inputs.
        fed_fetches: fetches that are fed, as (index of the fetch, index of the feed).
        items: all items except feeds, producers first.
    """

    __slots__ = ("fed", "fed_fetches", "feeds", "fetches", "items", "nodes", "outermost", "roots")

    def __init__(self) -> None:
        self.outermost = FrameTable("")
        self.nodes: list[Node] = []
        self.feeds: list[Item] = []
        self.fed: list[Tensor] = []
        self.roots: list[Item] = []
        self.fetches: list[Tensor] = []
        self.fed_fetches: list[tuple[int, int]] = []
        self.items: list[Item] = []


def build_table(fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], make_kernel: MakeKernel) -> Table:
    """Make the items for `fetches` and `targets`, given `feeds`.

    Raises:
        GraphError: a needed node has an error or cannot run, or a loop is malformed.
        InvalidArgumentError: a tensor within a loop is fetched or fed.
    """
    return _Builder(feeds, make_kernel).build(fetches, targets)


class _Builder:
    def __init__(self, feeds: Sequence[Tensor], make_kernel: MakeKernel) -> None:
        self.feeds = {tensor: number for number, tensor in enumerate(feeds)}
        self.make_kernel = make_kernel
        self.table = Table()
        self.items: dict[Node, Item] = {}
        self.frames: dict[str, FrameTable] = {"": self.table.outermost}
        self.constants: dict[Tensor, Array] = {}
        self.has_large = False

    def build(self, fetches: Sequence[Tensor], targets: Sequence[Node]) -> Table:
        nodes = needed_nodes(fetches, targets, self.feeds)
        info = checked_frames(nodes, fetches, self.feeds)
        replacements = find_redundant_calls(nodes)
        nodes = [node for node in nodes if node not in replacements]
        self.table.nodes = [node for node in nodes if not self._is_fed(node)]
        self.table.fetches = list(fetches)
        self.table.fed = list(self.feeds)
        self.has_large = has_large(nodes, self.feeds)
        self.table.feeds = [Item(tensor.node, tensor.name, PLAIN, self.table.outermost) for tensor in self.feeds]
        for node in nodes:
            check_time(node.name, node.op)
            self.items[node] = self._item(node, info[node])
        self.items.update([(node, self.items[replacement]) for node, replacement in replacements.items()])
        for node in nodes:
            self._connect(node, self.items[node])
        for number, tensor in enumerate(fetches):
            self._fetch(number, tensor)
        fed = set(self.table.feeds)
        self.table.items = [*dict.fromkeys(self.items.values()), *self.table.items]
        self.table.roots = [item for item in self.table.items if item not in fed and not item.frame.pending[item.index]]
        return self.table

    def _is_fed(self, node: Node) -> bool:
        return is_replaced(node, self.feeds)

    def _frame(self, name: str) -> FrameTable:
        frame = self.frames.get(name)
        if frame is None:
            frame = self.frames[name] = FrameTable(name)
        return frame

    def _item(self, node: Node, inside: NodeFrame) -> Item:
        check_runs(node)
        in_own_thread = calls_waiting_function(node)
        kind = AWAITING if in_own_thread or node.registration.waits else _KINDS.get(node.op, PLAIN)
        frame = self._frame(inside.frame_name)
        if self._is_fed(node):
            return Item(node, node.name, PLAIN, frame)
        if kind != ENTERING:
            item = Item(node, node.name, kind, frame)
        else:
            # An Enter runs in the frame of its input.
            around = "" if inside.parent_frame is None else frame_name(inside.parent_frame)
            item = Item(node, node.name, kind, self._frame(around))
            item.child = frame
            _open(item)
        item.dtypes = tuple([dtype.base if dtype.is_ref else dtype.as_numpy for dtype in node.output_types])
        item.dtype = item.dtypes[0] if item.dtypes else None
        item.context = self._context(node)
        if item.kind in (SENDING, RECEIVING):
            item.key = edge_key(item.context).removesuffix("0:0")
        if self.has_large:
            refuse_known(node)
        kernel = self.make_kernel(node, item.context)
        if kind == AWAITING:
            item.kernel = partial(ThreadedCall, kernel) if in_own_thread else kernel
            return item
        kernel = guarded(node, kernel, item.context.constants)
        item.kernel = partial(call_interruptibly, kernel) if self.has_large and is_long(node) else interruptible_if_long(node, kernel)
        return item

    def _context(self, node: Node) -> KernelContext:
        self._record_constant(node)
        return kernel_context(node, tuple([self.constants.get(tensor) for tensor in node.inputs]))

    def _record_constant(self, node: Node) -> None:
        """Record the output of `node` if it is the same in every run; kernels then bind axes and shapes."""
        if node.op_def.is_stateful or node.op in _KINDS or len(node.outputs) != 1 or node.outputs[0] in self.feeds:
            return
        if node.op != CONST and not (node.inputs and all(tensor in self.constants for tensor in node.inputs)):
            return
        constants = constant_outputs(node)
        if constants is not None:
            self.constants[node.outputs[0]] = constants[0]

    def _connect(self, node: Node, item: Item) -> None:
        if self._is_fed(node):
            return
        pending = item.frame.pending
        if item.kind == MERGING:
            item.count = 2
            pending[item.index] = 1
        else:
            item.count = len(node.inputs)
        item.base = item.frame.slots
        item.frame.slots += item.count
        item.variables = tuple(
            slot
            for slot, tensor in enumerate(node.inputs)
            if tensor.dtype.is_ref and not node.input_types[slot].is_ref and tensor not in self.feeds
        )
        item.passes = node.registration.is_alias and not item.variables
        for slot, tensor in enumerate(node.inputs):
            self._data_edge(tensor, item, slot)
        for control in node.control_inputs:
            self._control_edge(self.items[control], item)

    def _data_edge(self, tensor: Tensor, item: Item, slot: int) -> None:
        feed = self.feeds.get(tensor)
        if feed is not None and item.kind != FETCH and item.node.input_types[slot].is_ref:
            raise no_reference(item.node, slot, tensor)
        source, port = (self.items[tensor.node], tensor.index) if feed is None else (self.table.feeds[feed], 0)
        if item.kind == MERGING:
            source.merge_edges.append((port, item, slot))
            return
        source.data_edges.append((port, item, item.base + slot, item.index))
        item.frame.pending[item.index] += 1

    def _control_edge(self, source: Item, item: Item) -> None:
        if item.kind == MERGING:
            source.merge_controls.append(item)
            item.frame.pending[item.index] += 2
            return
        source.control_edges.append(item)
        item.frame.pending[item.index] += 1

    def _fetch(self, number: int, tensor: Tensor) -> None:
        feed = self.feeds.get(tensor)
        if feed is not None:
            self.table.fed_fetches.append((number, feed))
            return
        if self.has_large:
            refuse_fetched(tensor)
        item = Item(tensor.node, f"fetch {tensor.name}", FETCH, self.table.outermost)
        item.count = 1
        item.number = number
        item.frame.slots += 1
        self.table.items.append(item)
        self._data_edge(tensor, item, 0)


def _open(item: Item) -> None:
    attrs = item.node.node_def.attr
    child, parallel = item.child, attrs.get("parallel_iterations")
    # The Enters of a loop built by hand may differ: the smallest number holds.
    least = max(parallel, 1) if isinstance(parallel, int) else 10
    child.parallel = min(child.parallel, least) if child.enters else least
    child.enters += 1
    if attrs.get("is_constant"):
        item.kind = ENTERING_CONSTANT
