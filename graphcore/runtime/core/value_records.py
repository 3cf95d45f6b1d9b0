"""Recorded values: the statistics of the tensors of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from graphcore.attrs import Array, attr_text
from graphcore.errors import NotFoundError
from graphcore.graph.model.node import Node, Tensor
from graphcore.kernel_context import RefVariable
from graphcore.passes.optimize.redundant_calls import computed_by
from graphcore.plumbing import IDENTITY, STANDS_FOR
from graphcore.runtime.core.events import Around
from graphcore.runtime.core.gradient_magnitudes import Magnitude, magnitudes_of
from graphcore.runtime.core.left_out import is_left_out
from graphcore.runtime.core.tensor_stats import MAX_SMALL, Detail, Summarizer, Summary, TensorStats, detail_of, dtype_name

if TYPE_CHECKING:
    from graphcore.graph import Graph
    from graphcore.source import SourceLocation

Place = tuple[str, int, Around, str]
"""Frame, iteration, surrounding loops, and surrounding calls of a run of a node."""
Key = tuple[str, str, int]
"""Call, node and output."""
Bodies = Callable[[str], "Mapping[str, Node]"]
"""Gives the nodes of a function by its name."""
_NOWHERE: Final[Place] = ("", 0, (), "")


class BadValue(msgspec.Struct, frozen=True):
    """The first tensor of a run with NaNs or infinities.

    Attributes:
        tensor: its statistics.
        inputs: those of the inputs of its node, as far as they were recorded; () in functions of this package.
        cause: its origin in words: the line of its node and the state of the inputs, or that it came into the run; "" in functions of this package.
    """

    tensor: TensorStats
    inputs: tuple[TensorStats, ...]
    cause: str = ""

    def __str__(self) -> str:
        lines = [f"The first NaN or Inf of this run: {self.tensor}", *([self.cause] if self.cause else [])]
        if self.inputs:
            lines += ["computed from", *[f"  {stats}" for stats in self.inputs]]
        return "\n".join(lines)


class ValueRecords:
    """The statistics of the tensors of a run, in the order in which they were computed.

    `records["h:0"]`, `records["h"]` (its first output) and `records[tensor]` are the last statistics of a tensor. A node that needed no
    kernel has those of the tensor with the same value; a call or loop that the node of its gradient ran has those of that node.

    Attributes:
        stats: all statistics, one for each output of each run of a node; feeds first.
        same: for tensors of nodes that needed no kernel, the tensor with the same value.
        bodies: gives the nodes of a function by its name, None where functions are instantiated for each call.
    """

    __slots__ = ("_elsewhere", "_last", "_nodes", "bodies", "same", "stats")

    def __init__(
        self, stats: Sequence[TensorStats], same: Mapping[Key, Key], nodes: Sequence[Node] = (), bodies: Bodies | None = None
    ) -> None:
        self.stats = tuple(stats)
        self.same = same
        self.bodies = bodies
        self._last: dict[Key, TensorStats] = {(one.call, one.node, one.output): one for one in self.stats}
        self._nodes = {node.name: node for node in nodes}
        self._elsewhere = {**_late_reads(nodes), **computed_by(nodes)}

    def __len__(self) -> int:
        return len(self.stats)

    def __iter__(self) -> Iterator[TensorStats]:
        return iter(self.stats)

    def __repr__(self) -> str:
        bad = sum(1 for one in self._last.values() if not one.is_finite)
        state = "all finite" if not bad else f"{bad:,} with NaN or Inf"
        return f"<gc.ValueRecords of {len(self._last):,} tensor{'s' * (len(self._last) != 1)}, {state}>"

    def __getitem__(self, tensor: Tensor | str) -> TensorStats:
        stats = self.find(tensor)
        if stats is None:
            name = tensor if isinstance(tensor, str) else tensor.name
            raise NotFoundError(f"Required a tensor of the recorded run, got '{name}': it was not computed, or has no recorded values")
        return stats

    def find(self, tensor: Tensor | str, call: str = "") -> TensorStats | None:
        """The last statistics of a tensor; None if it was not computed.

        Args:
            tensor: the tensor, or its name.
            call: the surrounding function calls, as `Event.call`.
        """
        name, output = (tensor.node.name, tensor.index) if isinstance(tensor, Tensor) else _parsed(tensor)
        return self._resolved((call, name, output), set())

    def of_node(self, node: str, call: str = "") -> tuple[TensorStats, ...]:
        """The statistics of all outputs of all runs of a node, in order."""
        return tuple([one for one in self.stats if one.node == node and one.call == call])

    @property
    def first_bad(self) -> BadValue | None:
        """The first tensor with NaNs or infinities, with the inputs of its node; None if all are finite.

        Where there are NaNs, infinities that vanish again are passed over, such as those of a mask before a softmax: neither a NaN nor a result with
        an infinity comes from them. Where the first infinities are those of a mask, the first NaN that is made of them is taken: its cause names both.
        NaN of a constant of which nothing is taken, such as that of `jnp.var` for too few elements, is passed over.
        """
        bad = next((one for one in self.stats if not one.is_finite and not is_left_out(self.find, one, self._node_of(one))), None)
        if bad is None:
            return None
        if not bad.call and any(one.nan and not one.call for one in self.stats):
            harmful = self._harmful()
            taken = [one for one in self.stats if not one.is_finite and not one.call and one.node in harmful]
            bad = next((one for one in taken if not is_left_out(self.find, one, self._node_of(one))), bad)
        node = self._node_of(bad)
        first, mask = self._nodes.get(_outermost(bad)), ""
        made = None if first is None or bad.nan else self._made_of_mask(first)
        if first is not None and made is not None:
            mask = _masked(first)
            bad, node = made
        if node is None:
            return BadValue(bad, ())
        inputs = [stats for tensor in node.inputs if (stats := self.find(tensor, bad.call)) is not None]
        return BadValue(bad, tuple(inputs), _cause(node, inputs, self._source_of(node, bad.call), bad.call) + mask)

    def _made_of_mask(self, mask: Node) -> tuple[TensorStats, Node] | None:
        """The first NaN made of the infinities of a node, with its node; None if these are no mask's."""
        bad = next((one for one in self.stats if one.nan), None)
        node = None if bad is None else self._node_of(bad)
        if bad is None or node is None or mask.name not in self._harmful([_outermost(bad)]):
            return None
        if mask.registration.traits.role == "placeholder":
            return (bad, node) if "softmax" in node.op else None
        titles = {mask.op.rpartition(".")[2], mask.name.rpartition("/")[2].rstrip("_0123456789")}  # of jnp.where the op is jax.jit
        return (bad, node) if titles & _MASKS else None

    def _harmful(self, ends: Sequence[str] | None = None) -> set[str]:
        """The nodes from which NaNs, or results with infinities, come, or those behind `ends`."""
        seen: set[str] = set()
        is_end = {one.node for one in self.stats if not one.call and (one.nan or (one.inf and self._is_result(one.node)))}
        pending = list(is_end if ends is None else ends)
        while pending:
            name = pending.pop()
            node = self._nodes.get(name)
            if name in seen:
                continue
            seen.add(name)
            for tensor in () if node is None else node.inputs:
                one = self.find(tensor)
                if one is not None and not one.is_finite:
                    pending += [tensor.node.name, one.node]  # another node may have computed it
        return seen

    def _is_result(self, name: str) -> bool:
        """True for a node that computes something of which no node of the run computes anything."""
        node = self._nodes.get(name)
        takers = [] if node is None else [taker for taker, slot in node.consumers() if slot >= 0]
        return node is not None and not any(taker.name in self._nodes and taker.outputs for taker in takers)

    def gradient_magnitudes(self, graph: Graph) -> list[Magnitude]:
        """The magnitudes of the gradients with respect to the outputs of forward nodes, by depth.

        Args:
            graph: the graph of the run, whose gradient records say which node differentiates which.
        """
        runs: dict[Key, list[TensorStats]] = {}
        for one in self.stats:
            if one.dtype in _FLOATS:
                runs.setdefault((one.call, one.node, one.output), []).append(one)

        def recorded(tensor: Tensor) -> list[TensorStats]:
            last = self.find(tensor)
            return [] if last is None else runs.get((last.call, last.node, last.output), [])

        return magnitudes_of(graph, recorded)

    def _node_of(self, one: TensorStats) -> Node | None:
        return self._node_in(one.node, one.call.split(" > ") if one.call else [])

    def _node_in(self, name: str, calls: Sequence[str]) -> Node | None:
        """The node of a name within some calls."""
        if not calls:
            return self._nodes.get(name)
        function = calls[-1].partition(":")[2].partition("#")[0]
        return None if self.bodies is None else self.bodies(function).get(name)

    def _source_of(self, node: Node, call: str) -> SourceLocation | None:
        """The line of a node; of one of a library's function that of the call around it."""
        calls = call.split(" > ") if call else []
        around = [self._node_in(name.partition(":")[0], calls[:depth]) for depth, name in enumerate(calls)]
        return next((one.source for one in (node, *reversed(around)) if one is not None and one.source is not None), None)

    def _resolved(self, key: Key, seen: set[Key]) -> TensorStats | None:
        """The statistics of a tensor, or of the tensor with the same value."""
        while key not in seen:
            seen.add(key)
            last = self._last.get(key)
            if last is not None:
                return last
            call, name, output = key
            other = self.same.get(key)
            if other is None and not call and name in self._elsewhere:
                other = call, self._elsewhere[name], output
            if other is None:
                break
            key = other
        call, name, output = key
        node = self._nodes.get(name)
        if call or node is None or not node.registration.is_alias or output:
            return None
        inputs = [self._resolved(("", tensor.node.name, tensor.index), seen) for tensor in node.inputs]
        return next((stats for stats in inputs if stats is not None), None)


_GIVEN: Final = {"placeholder": "input", "variable": "parameter", "constant": "constant"}
"""The nodes whose values come into a run, by their roles."""


_MASKS: Final = frozenset({"masked_fill", "masked_fill_", "where", "select_n", "full", "full_like", "setitem", "__setitem__", "index_put_"})
"""Operations that put values in, infinities among them on purpose."""


def _outermost(one: TensorStats) -> str:
    """The node of the graph itself within which a value was computed."""
    return one.call.partition(" > ")[0].partition(":")[0] or one.node


def _masked(mask: Node) -> str:
    """A mask whose infinities made a NaN, in words."""
    at = "" if mask.source is None else f" ({mask.source.where})"
    return f": the infinities of '{mask.name}'{at}. A softmax of nothing but -Inf is NaN, as in a row that is masked entirely"


_REASONS: Final = {"cholesky": "the matrix is not positive definite"}
"""Reasons of operations for giving NaN of what is finite."""


def _cause(node: Node, inputs: Sequence[TensorStats], source: SourceLocation | None, call: str) -> str:
    """The origin of the first bad value of a run in words."""
    role = _GIVEN.get(node.registration.traits.role, "") if not node.inputs else ""
    if role and not call:
        return f"it came into the run with this {role}"
    text = "" if source is None else source.text
    made = f"given to '{call.rpartition(' > ')[2].partition(':')[0]}'" if role else "produced"
    place = f"{made} here" if source is None else f"{made} at {source.where}" + (f" ({text})" if text else "")
    if not inputs:
        return place
    is_finite = all(one.is_finite for one in inputs)
    reason = _REASONS.get(node.op.rpartition(".")[2], "") if is_finite else ""
    return f"{place}; its inputs were {'finite' if is_finite else 'not finite'}" + (f": {reason}" if reason else "")


def _late_reads(nodes: Sequence[Node]) -> dict[str, str]:
    """The reads of variables that a run repeated, each with the node of the late read."""
    names = [(node.attr.get(STANDS_FOR), node.name) for node in nodes if node.op == IDENTITY]
    return {attr_text(text).partition(":")[0]: name for text, name in names if isinstance(text, bytes)}


_FLOATS: Final = frozenset({"half", "float", "double", "bfloat16", "complex64", "complex128"})


def _parsed(name: str) -> tuple[str, int]:
    node, colon, output = name.rpartition(":")
    return (node, int(output)) if colon and output.isdigit() else (name, 0)


class FixedValue:
    """The value of a tensor that is the same in every run; its summary is computed once."""

    __slots__ = ("array", "summary")

    def __init__(self, array: Array) -> None:
        self.array = np.asarray(array)
        self.summary: Summary | None = None


Unrun = tuple[str, str, tuple[str, ...], tuple[tuple[str, int] | FixedValue | None, ...]]
"""A node that needed no kernel.

Its name, the reason, the loops around it, and for each output the tensor with the same value, or its constant value; None if neither is known.
"""
_Row = tuple[str, int, Any, tuple[int, ...], Summary, Place, "Array | None"]
"""The statistics of one output of a run of a node."""


RunKey = tuple[str, Place]
"""A run of a node."""
RecorderState = tuple[list["_Row | tuple[Sequence[Unrun], Place]"], "dict[Key, tuple[int, Detail]]", "dict[Key, Key]"]


class ValueRecorder:
    """Collects the statistics of a run, from any number of threads.

    Args:
        patterns: glob patterns of the names of nodes with full statistics.
    """

    __slots__ = ("_detailed", "_details", "_lock", "_order", "_patterns", "_rows", "_same", "_summarizer", "_thread", "_unchanging")

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(patterns)
        self._rows: list[_Row | tuple[Sequence[Unrun], Place]] = []
        self._details: dict[Key, tuple[int, Detail]] = {}
        self._detailed: dict[str, bool] = {}
        self._same: dict[Key, Key] = {}
        self._unchanging: dict[int, tuple[Array, Summary]] = {}
        self._summarizer = Summarizer()
        self._lock = Lock()  # threads of one run share the buffers of the summaries
        self._thread = get_ident()

    def record(self, node: str, outputs: Sequence[Any], place: Place = _NOWHERE) -> None:
        """Record the outputs of a run of a node."""
        for output, value in enumerate(outputs):
            array = _as_array(value)
            if array is not None:
                self._add(node, output, array, place)

    def record_output(self, node: str, output: int, value: Any) -> None:
        """Record a fed tensor."""
        array = _as_array(value)
        if array is not None:
            with np.errstate(all="ignore"):  # feeds come before the run
                self._add(node, output, array, _NOWHERE)

    def record_same(self, nodes: Sequence[Unrun], place: Place = _NOWHERE) -> None:
        """Record nodes that needed no kernel; their rows are made after the run."""
        self._rows.append((nodes, place))

    def end(self, nodes: Sequence[Node]) -> Callable[[], ValueRecords]:
        """End the run, and release its arrays.

        Args:
            nodes: the nodes of the run.

        Returns:
            A function that makes the records.
        """
        self._unchanging.clear()
        return lambda: self.records(nodes)

    def stats_from(self, first: int) -> tuple[list[TensorStats], int]:
        """The statistics recorded so far from a place on, and the place to go on from; 0 is the first place.

        Args:
            first: the place, a number of records; a record of nodes without kernels gives statistics of each constant among them.
        """
        details = dict(self._details)
        names: dict[Any, str] = {}
        constants: set[Key] = set()
        stats = []
        rows = self._rows[first:]
        for number, row in enumerate(rows, first):
            for node, output, dtype, shape, summary, (frame, iteration, around, call), small in self._rows_of(
                row, details, constants, number
            ):
                last, detail = details.get((call, node, output), (-1, None))
                full = detail if last == number else None
                name = names.get(dtype) or names.setdefault(dtype, dtype_name(dtype))
                stats.append(TensorStats(node, output, name, shape, *summary, frame, iteration, around, call, full, small))
        return stats, first + len(rows)

    def records(self, nodes: Sequence[Node]) -> ValueRecords:
        """The records so far.

        Args:
            nodes: the nodes of the run.
        """
        return ValueRecords(self.stats_from(0)[0], dict(self._same), nodes)

    @property
    def same(self) -> Mapping[Key, Key]:
        """For tensors of nodes that needed no kernel, the tensor with the same value.

        It grows as statistics are read.
        """
        return self._same

    @property
    def patterns(self) -> tuple[str, ...]:
        """The glob patterns of the names of nodes with full statistics."""
        return self._patterns

    def state(self, first: int = 0) -> RecorderState:
        """The statistics without the `first` ones, in a form that `merge` takes in another process."""
        details = {key: (place - first, detail) for key, (place, detail) in dict(self._details).items() if place >= first}
        return self._rows[first:], details, dict(self._same)

    def merge(self, states: Sequence[RecorderState], ends: Mapping[RunKey, int]) -> None:
        """Add what recorders of several processes have collected, in the order in which the nodes ended.

        Args:
            states: the state of each.
            ends: the time at which each run of a node ended.
        """
        order: list[tuple[int, int, int]] = []
        for number, (rows, _, same) in enumerate(states):
            time = 0
            for place, row in enumerate(rows):
                if len(row) > 2:
                    time = ends.get((row[0], row[5]), time)  # what needed no kernel comes with the row before
                order.append((time, number, place))
            self._same.update(same)
        moved: dict[tuple[int, int], int] = {}
        for _, number, place in sorted(order):
            moved[number, place] = len(self._rows)
            self._rows.append(states[number][0][place])
        for number, (_, details, _) in enumerate(states):
            self._details.update({key: (moved[number, place], detail) for key, (place, detail) in details.items()})

    def _add(self, node: str, output: int, array: Array, place: Place) -> None:
        if get_ident() != self._thread:  # NumPy's warnings are off in the thread of the run only
            with np.errstate(all="ignore"):
                self._add_row(node, output, array, place)
        else:
            self._add_row(node, output, array, place)

    def _add_row(self, node: str, output: int, array: Array, place: Place) -> None:
        row = node, output, array.dtype, array.shape, self._summary(array), place, _small(array)
        if not self._patterns or not self._wants_detail(node):
            self._rows.append(row)
            return
        detail = detail_of(array)
        with self._lock:
            self._details[place[3], node, output] = (len(self._rows), detail)
            self._rows.append(row)

    def _rows_of(
        self, row: _Row | tuple[Sequence[Unrun], Place], details: dict[Key, tuple[int, Detail]], constants: set[Key], number: int
    ) -> Iterator[_Row]:
        """Row `number` itself, or the rows of the constants among nodes without kernels."""
        if len(row) > 2:
            yield row
            return
        unrun, place = row
        call = place[3]
        for node, _, _, values in unrun:
            for output, value in enumerate(values):
                key = call, node, output
                if isinstance(value, tuple):
                    if value != (node, output):
                        self._same[key] = (call, *value)
                elif value is not None and key not in constants:
                    constants.add(key)
                    yield self._constant_row(key, value, place, details, number)

    def _constant_row(self, key: Key, value: FixedValue, place: Place, details: dict[Key, tuple[int, Detail]], number: int) -> _Row:
        array = value.array
        with self._lock, np.errstate(all="ignore"):
            if value.summary is None:
                value.summary = self._summary(array)
            if self._patterns and self._wants_detail(key[1]):
                details[key] = self._details[key] = (number, detail_of(array))
        return *key[1:], array.dtype, array.shape, value.summary, place, _small(array)

    def _summary(self, array: Array) -> Summary:
        """The summary of an array; that of an array that cannot change is computed once."""
        if array.flags.writeable or array.size < 64:
            return self._summarizer.summary(array)
        cached = self._unchanging.get(id(array))
        if cached is None or cached[0] is not array:
            cached = self._unchanging[id(array)] = (array, self._summarizer.summary(array))
        return cached[1]

    def _wants_detail(self, node: str) -> bool:
        is_detailed = self._detailed.get(node)
        if is_detailed is None:
            is_detailed = self._detailed[node] = any(fnmatchcase(node, pattern) for pattern in self._patterns)
        return is_detailed


def _small(array: Array) -> Array | None:
    """A copy of a small array; None for a large one, and for a number, which its summary contains."""
    return array.copy() if 0 < array.size <= MAX_SMALL and array.ndim else None


def _as_array(value: Any) -> Array | None:
    """The array of a value, also of a variable.

    None for values without elements, such as resources and dead values.
    """
    if type(value) is np.ndarray:
        return value
    if type(value) is RefVariable:
        return _as_array(value.value)
    if isinstance(value, np.generic | bool | int | float | complex):
        return np.asarray(value)
    return np.asarray(value.get()) if hasattr(value, "get") and hasattr(value, "nbytes") else None  # on a GPU
