"""The schedule of a plan: operations after constant folding, merging and alias removal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

import msgspec

from graphcore.attrs import Array
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.graph.control_flow.analysis import NO_BRANCH, Guard
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.shapes.constant_values import constant_outputs
from graphcore.graph.shapes.evaluation import kernel_context
from graphcore.kernel_context import KernelContext
from graphcore.passes.infra.value_numbering import ValueNumbering
from graphcore.passes.optimize.redundant_calls import find_redundant_calls, in_replacement_order
from graphcore.plumbing import CONST, NO_OP
from graphcore.registry import Kernel
from graphcore.runtime.core.events import CONSTANT, MERGED, PASSED, UNNEEDED
from graphcore.runtime.core.failing import may_fail
from graphcore.runtime.core.prune import is_replaced
from graphcore.support.deadline import check_time, has_time_limit

MakeKernel = Callable[[Node, KernelContext], Kernel]
BEGIN: Final = "begin"
JOIN: Final = "join"


class Value(msgspec.Struct, eq=False):
    """A value read or made by operations.

    Attributes:
        tensor: the first tensor with this value.
        name: its name in the generated text.
        constant: its value if it is the same in every run.
        is_reference: True for a variable, which must be read to get an array.
        producer: the number of the operation that makes it, -1 for feeds and constants.
        last_use: the number of the last operation that reads it, -1 for none.
        is_kept: True if it is fetched.
    """

    tensor: Tensor
    name: str
    constant: Array | None = None
    is_reference: bool = False
    producer: int = -1
    last_use: int = -1
    is_kept: bool = False


class Operation:
    """A call of a kernel.

    Attributes:
        kernel: the callable; None to pass on the first input, or to name a variable.
        inputs: its inputs, by slot.
        reads: the inputs that are variables to be read.
        into: the index of the input whose buffer takes the result, None for a new buffer.
        apart: BEGIN if the kernel is submitted to another thread, with a task as output; JOIN if the task is joined, with the node's outputs;
            "" for an ordinary call.
        guard: the branches that it is on, within its loop.
        is_long: True if the kernel is called interruptibly, because it is slow.
    """

    __slots__ = ("apart", "guard", "inputs", "into", "is_long", "kernel", "node", "outputs", "reads")

    is_call = True

    def __init__(self, node: Node, kernel: Any, inputs: list[Value], reads: list[bool], outputs: list[Value]) -> None:
        self.node = node
        self.kernel = kernel
        self.inputs = inputs
        self.reads = reads
        self.outputs = outputs
        self.into: int | None = None
        self.apart = ""
        self.guard: Guard = NO_BRANCH
        self.is_long = False

    def may_fail(self) -> bool:
        """True iff it may raise an error, as far as known before the run."""
        return may_fail(self.node, [value.constant for value in self.inputs], reads_variable=any(self.reads))

    def acts(self, awaited: Collection[Node]) -> bool:
        """True iff it runs without readers, too: it has a side effect, or its node is one of `awaited`."""
        node = self.node
        if node.op == NO_OP:
            return False
        return node in awaited or not node.outputs or node.op_def.is_stateful or any(dtype.is_ref for dtype in node.input_types)


class Skipped(Operation):
    """A node whose kernel need not be called, as recorded by watched runs.

    Attributes:
        how: the reason; see `events.SKIPPED`.
        stands_for: the values of its outputs, as far as they are known.
    """

    __slots__ = ("how", "stands_for")

    def __init__(self, node: Node, how: str, stands_for: Sequence[Value | None] = ()) -> None:
        super().__init__(node, None, [], [], [])
        self.how = how
        self.stands_for = stands_for


class Schedule:
    """The operations of a plan.

    Attributes:
        operations: in the order of execution.
        feeds, results: the fed and fetched values.
        variables: the values for names of variables.
        skipped: the skipped nodes before each operation, and at the end (None).
    """

    __slots__ = ("feeds", "operations", "results", "skipped", "variables")

    def __init__(self, operations: list[Operation], feeds: list[Value], results: list[Value], variables: dict[str, Any]) -> None:
        self.operations, self.skipped = _without_skipped(operations)
        self.feeds = feeds
        self.results = results
        self.variables = variables

    def released(self) -> dict[int, list[Value]]:
        """The values to release after each operation, by its number."""
        released: dict[int, list[Value]] = {}
        for operation in self.operations:
            for value in operation.outputs:
                if not value.is_kept and value.name not in self.variables:
                    released.setdefault(value.last_use, []).append(value)
        return released


def schedule_nodes(
    needed: Iterable[Node], fetches: Sequence[Tensor], targets: Collection[Node], feeds: Sequence[Tensor], make_kernel: MakeKernel
) -> Schedule:
    """The operations that compute `fetches` and run `targets`.

    Args:
        needed: the nodes, producers first.
        feeds: the fed tensors.
        make_kernel: makes the kernel of a node.

    Raises:
        GraphError: a node has an error or cannot run.
    """
    scheduler = Scheduler(feeds, make_kernel)
    nodes = list(needed)
    replacements = find_redundant_calls(nodes)
    if replacements:
        nodes, targets = in_replacement_order(nodes, replacements), {replacements.get(target, target) for target in targets}
    is_limited = has_time_limit()
    for node in nodes:
        if is_limited:
            check_time(node.name, node.op)
        if node in replacements:
            scheduler.substitute(node, replacements[node])
        else:
            scheduler.add(node)
    results = [scheduler.values[tensor] for tensor in fetches]
    awaited = {*targets, *[other for node in nodes for other in node.control_inputs]}
    operations = without_unread(scheduler.operations, results, awaited)
    schedule = Schedule(operations, [scheduler.values[tensor] for tensor in feeds], results, scheduler.variables)
    number(schedule.operations, results)
    for operation in schedule.operations:
        if is_limited:
            check_time(operation.node.name, operation.node.op)
        bind(operation, make_kernel, scheduler.variables)
    return schedule


class Scheduler:
    """Converts nodes to operations, in order; `values` maps tensors to values."""

    def __init__(self, feeds: Sequence[Tensor], make_kernel: MakeKernel) -> None:
        self.make_kernel = make_kernel
        self.values: dict[Tensor, Value] = {tensor: Value(tensor, f"feed{i}") for i, tensor in enumerate(feeds)}
        self.operations: list[Operation] = []
        self.variables: dict[str, Any] = {}
        self.computed = ValueNumbering[Operation]()
        self.constants = 0
        self.skips = 0

    @property
    def next_number(self) -> int:
        """The number of the next operation, used in the names of its values."""
        return len(self.operations) - self.skips

    def add(self, node: Node) -> None:
        """Make the operation of a node, if it needs one.

        Raises:
            GraphError: the node has an error or cannot run.
        """
        check_runs(node)
        values = self.values
        if is_replaced(node, values):
            return
        inputs = [values[tensor] for tensor in node.inputs]
        if self._fold(node, inputs):
            self.skip(node, CONSTANT)
        elif self._alias(node, inputs):
            self.skip(node, PASSED)
        else:
            self._emit(node, inputs)

    def skip(self, node: Node, how: str) -> None:
        """Record that `node` needs no kernel, and the reason."""
        self.skips += 1
        self.append(Skipped(node, how, [self.values.get(tensor) for tensor in node.outputs]))

    def append(self, operation: Operation) -> None:
        """Add an operation after those there are."""
        self.operations.append(operation)

    def substitute(self, node: Node, replacement: Node) -> None:
        """Use the values of `replacement`, which was added, for `node`."""
        for mine, theirs in zip(node.outputs, replacement.outputs, strict=False):
            self.values.setdefault(mine, self.values[theirs])

    def _fold(self, node: Node, inputs: list[Value]) -> bool:
        """Replace a node whose outputs are the same in every run by constants."""
        if node.op != CONST and node.registration.traits.numbers_from_shapes is None:
            for value in inputs:
                if value.constant is None:
                    return False
        if not node.outputs or node.op_def.is_stateful or any(value.is_reference for value in inputs):
            return False
        constants = constant_outputs(node)
        if constants is None:
            return False
        for tensor, constant in zip(node.outputs, constants, strict=True):
            self.values.setdefault(tensor, Value(tensor, f"c{self.constants}", constant))
            self.constants += 1
        return True

    def _alias(self, node: Node, inputs: list[Value]) -> bool:
        """Replace a node that returns its input by that value. Reads of variables are operations."""
        if not inputs or inputs[0].is_reference or not (node.registration.is_alias or _is_neutral(node, inputs)):
            return False
        self.values.setdefault(node.outputs[0], inputs[0])
        return True

    def _emit(self, node: Node, inputs: list[Value]) -> None:
        types = node.input_types
        reads: list[bool] = []
        has_state = node.op_def.is_stateful
        for value in inputs:
            is_ref = types[len(reads)].is_ref
            if is_ref and not value.is_reference:
                raise no_reference(node, len(reads), value.tensor)
            reads.append(value.is_reference and not is_ref)
            has_state = has_state or value.is_reference
        operation = Operation(node, None, inputs, reads, [])
        values = self.values
        if node.output_types and not has_state:  # the same op on the same values is computed once
            first = self.computed.first(node, [id(value) for value in inputs], operation)
            if first is not operation:
                for tensor, theirs in zip(node.outputs, first.outputs, strict=True):
                    values.setdefault(tensor, theirs)
                self.skip(node, MERGED)
                return
        operation.outputs = outputs = self._outputs(node)
        for value in outputs:
            values.setdefault(value.tensor, value)
        self.append(operation)

    def _outputs(self, node: Node) -> list[Value]:
        number = self.next_number
        if len(node.output_types) == 1:
            return [Value(node.outputs[0], f"t{number}_0", None, node.output_types[0].is_ref)]
        return [Value(tensor, f"t{number}_{tensor.index}", None, tensor.dtype.is_ref) for tensor in node.outputs]


def no_reference(node: Node, slot: int, fed: Tensor) -> InvalidArgumentError:
    """The error for a node that changes a variable, when a value is fed in place of the variable."""
    return InvalidArgumentError.at(
        node,
        f"Input {slot} of {node.name} was passed {fed.dtype.base.text} from {node.inputs[slot].name}, which is fed, "
        f"incompatible with expected {node.input_types[slot].text}: what is fed is no variable",
    )


def _is_neutral(node: Node, inputs: list[Value]) -> bool:
    """True iff the node returns its first input unchanged: same shape, or reduced over no axes."""
    traits = node.registration.traits
    if not traits.neutral:
        return False
    before, after = node.inputs[0].shape, node.outputs[0].shape
    second = inputs[1].constant if len(inputs) > 1 else None
    if traits.neutral == "no axes":
        return second is not None and not second.size
    if not before.is_fully_defined or before.dims != after.dims:
        return False
    if traits.neutral == "own shape":
        return len(inputs) == 1 or second is not None or traits.can_fail is False  # a shape that does not fit is an error of the run
    return second is not None and traits.is_neutral(second)


def without_unread(operations: list[Operation], results: list[Value], awaited: Collection[Node]) -> list[Operation]:
    """Replace operations without readers by records of their nodes; of some, the shape alone was needed."""
    used = set(results)
    kept: list[Operation] = []
    for operation in reversed(operations):
        if type(operation) is Skipped:
            kept.append(operation)
        elif operation.acts(awaited) or not used.isdisjoint(operation.outputs) or operation.may_fail():
            used.update(operation.inputs)
            kept.append(operation)
        elif operation.is_call:
            kept.append(Skipped(operation.node, PASSED if operation.node.op == NO_OP else UNNEEDED))
            kept[-1].guard = operation.guard
    kept.reverse()
    return kept


def _without_skipped(operations: list[Operation]) -> tuple[list[Operation], dict[Operation | None, list[Skipped]]]:
    kept: list[Operation] = []
    skipped: dict[Operation | None, list[Skipped]] = {}
    waiting: list[Skipped] = []
    for operation in operations:
        if type(operation) is Skipped:
            waiting.append(operation)
            continue
        kept.append(operation)
        if waiting:
            skipped[operation] = waiting
            waiting = []
    if waiting:
        skipped[None] = waiting
    return kept, skipped


def number(operations: list[Operation], results: list[Value]) -> None:
    """Number values: producer and last use."""
    for value in results:
        value.is_kept = True
    for place, operation in enumerate(operations):
        for value in operation.outputs:
            value.producer = value.last_use = place
        for value in operation.inputs:
            value.last_use = place


def bind(operation: Operation, make_kernel: MakeKernel, variables: dict[str, Any]) -> None:
    """Make the kernel of an operation; variables are looked up now."""
    node = operation.node
    if node.registration.is_alias:
        return
    kernel = make_kernel(node, kernel_context(node, tuple([value.constant for value in operation.inputs])))
    if node.registration.traits.role == "variable" and operation.outputs[0].is_reference:
        variables[operation.outputs[0].name] = kernel()
    else:
        operation.kernel = kernel


def check_runs(node: Node) -> None:
    """Check that `node` can run.

    Raises:
        GraphError: it has an error, or its op has no kernel.
    """
    if node.error is not None:
        raise node.error.again_at(node)
    if node.input_errors:  # an input is missing
        raise FailedPreconditionError.at(node, "; ".join(node.input_errors.values()))
    if node.registration.kernel is None and not node.registration.is_function:
        raise InvalidArgumentError.at(node, f"Op '{node.op}' of node '{node.name}' has no kernel: it can be seen but not run")
