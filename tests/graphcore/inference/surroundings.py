"""Every op in a runnable setting: inputs, variable or list, surrounding loop, partner ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphcore as gc
from graphcore.graph import Node
from graphcore.opset.numerics.python_functions import PythonFunction
from tests.graphcore.inference.knowledge import Knowledge
from tests.graphcore.inference.probes import probe
from tests.graphcore.opset.op_cases import Array, Case, is_of_datasets, make_old_enough

OF_NUMBERS = {"output_types": [gc.int64], "output_shapes": [gc.Shape([])]}
"""The elements of datasets."""
DOUBLE = PythonFunction(lambda x: x * 2)


@dataclass
class Built:
    """One op, ready to run.

    Attributes:
        node: the node to run: the op, or the end of the loop around it.
        start: nodes to run first.
        feeds: values to feed.
        loop: the value passed to the next iteration, and its probe at the loop's head.
        fails: the expected error.
    """

    node: Node
    start: list[Node] = field(default_factory=list)
    feeds: dict[gc.Tensor, Array] = field(default_factory=dict)
    loop: tuple[gc.Tensor, gc.Tensor] | None = None
    fails: type[gc.errors.GraphError] | None = None


@dataclass(frozen=True)
class Held:
    """An input that is the handle of a variable with this value."""

    value: Array


def add(op: str, *inputs: Any, **attrs: Any) -> Node:
    return gc.get_default_graph().apply_op(op, list(inputs), attrs)


def build(case: Case, know: Knowledge) -> Built:
    """Build the op of a case in the default graph, with the knowledge of its inputs that `know` leaves."""
    make_old_enough(case.op_def)
    for text in case.functions:
        gc.get_default_graph().library.add_function_def(gc.define_function(text))
    made = SPECIAL.get(case.op_def.name, _plain)(case, know)
    made.feeds.update(know.feeds)
    return made


class Maker:
    """Makes the inputs of one op."""

    def __init__(self, case: Case, know: Knowledge) -> None:
        self.case = case
        self.know = know
        self.start: list[Node] = []
        self.flow: Any = None
        self.after: list[Node] = []

    def arguments(self) -> list[Any]:
        return [self.argument(arg, value) for arg, value in zip(self.case.op_def.input_arg, self.case.inputs, strict=True)]

    def argument(self, arg: Any, value: Any) -> Any:
        if isinstance(value, Held):
            return probe(self.variable(value.value))
        if isinstance(value, list):
            return [self.argument(arg, part) for part in value]
        if arg.is_ref:
            return self.reference(value)
        if arg.type is gc.resource:
            return self.resource(value)
        if arg.type is gc.variant:
            return self.of_variant(value)
        if arg.name == "flow_in":
            return self.flow
        return self.know.tensor(value)

    def queue(self, rows: Array) -> Any:
        """A queue with these rows and space for more; dequeues wait for them."""
        version = "V2" if self.case.op_def.name.endswith("V2") else ""
        attrs = {"component_types": [gc.as_dtype(rows.dtype)], "shapes": [gc.Shape(rows.shape[1:])]}
        handle = add(f"FIFOQueue{version}", **attrs).outputs[0]
        self.start.append(add(f"QueueEnqueueMany{version}", handle, [gc.constant(rows)]))
        return handle

    def reader_or_files(self, value: Array) -> Any:
        """A queue of the names of files if they are given, otherwise a reader."""
        version = "V2" if self.case.op_def.name.endswith("V2") else ""
        if value.dtype.kind == "O":
            return self.queue(value)
        make_old_enough(gc.op_registry.look_up(f"IdentityReader{version}").op_def)
        return add(f"IdentityReader{version}").outputs[0]

    def reference(self, value: Array | None) -> Any:
        """A variable, uninitialised for None; or a queue, table or accumulator."""
        name = self.case.op_def.name
        if name.startswith(("LookupTable", "InitializeTable")):
            return self.table(value)
        if "Accumulator" in name:
            return self.accumulator(value)
        if name.startswith("Reader") and value is not None:
            return self.reader_or_files(value)
        if value is not None and self.case.op_def.name.startswith("Queue"):
            return self.queue(value)
        full = gc.Shape([] if value is None else value.shape)
        dtype = self.case.attrs["dtype"] if value is None else value.dtype
        ref = add("VariableV2", shape=self.know.shape(full), dtype=gc.as_dtype(dtype)).outputs[0]
        if value is not None:
            self.start.append(add("Assign", ref, gc.constant(value)))
        return ref

    def resource(self, value: Array) -> Any:
        """A handle; its kind follows from the op's name."""
        name = self.case.op_def.name
        kinds = {
            "TensorArray": self.array,
            "Stack": self.stack,
            "Queue": self.queue,
            "Reader": self.reader_or_files,
            "ResourceAccumulator": self.accumulator,
            **dict.fromkeys(("LookupTable", "InitializeTable"), self.table),
            **dict.fromkeys(("Iterator", "MakeIterator"), self.iterator),
        }
        return probe(next((make for kind, make in kinds.items() if name.startswith(kind)), self.variable)(value))

    def variable(self, value: Array) -> Any:
        handle = add("VarHandleOp", shape=self.know.shape(gc.Shape(value.shape)), dtype=gc.as_dtype(value.dtype)).outputs[0]
        self.start.append(add("AssignVariableOp", handle, gc.constant(value)))
        return handle

    def array(self, rows: Array) -> Any:
        """The handle of an array with these rows in its first elements, and space for more."""
        sizes = [None, *rows.shape[1:]] if self.case.op_def.name == "TensorArraySplitV3" else rows.shape[1:]
        attrs = {"element_shape": self.know.shape(gc.Shape(sizes)), "dtype": gc.as_dtype(rows.dtype)}
        made = add("TensorArrayV3", gc.constant(len(rows)), dynamic_size=True, clear_after_read=False, **attrs)
        self.flow = made.outputs[1]
        for place, row in enumerate(rows):
            self.flow = add("TensorArrayWriteV3", made.outputs[0], gc.constant(place), self.know.tensor(row), self.flow).outputs[0]
        self.after.append(self.flow.node)
        return made.outputs[0]

    def stack(self, value: Array) -> Any:
        """The handle of a stack with this value."""
        handle = add("StackV2", gc.constant(-1), elem_type=gc.as_dtype(value.dtype)).outputs[0]
        self.after.append(add("StackPushV2", handle, self.know.tensor(value)))
        return handle

    def table(self, _: Any) -> Any:
        """The handle of a table of numbers by strings, which is empty or not initialised."""
        name = self.case.op_def.name
        op = ("HashTable" if name.startswith("Initialize") else "MutableHashTable") + ("V2" if name.endswith("V2") else "")
        return add(op, key_dtype=gc.string, value_dtype=gc.int64).outputs[0]

    def accumulator(self, _: Any) -> Any:
        """The handle of an accumulator, with a gradient if the op takes one."""
        name = self.case.op_def.name
        kind = name[: name.index("Accumulator")]
        handle = add(f"{kind}ConditionalAccumulator", dtype=gc.float32, shape=self.know.shape(gc.Shape([2]))).outputs[0]
        if "Take" in name:
            step, ones = gc.constant(0, gc.int64), gc.constant([1.0, 2.0])
            sparse = [gc.constant([0, 1], gc.int64), ones, gc.constant([2], gc.int64)]
            attrs = {"has_known_shape": True} if kind == "Sparse" else {}
            self.start.append(add(f"{kind}AccumulatorApplyGradient", handle, step, *(sparse if kind == "Sparse" else [ones]), **attrs))
        return handle

    def iterator(self, rows: Array) -> Any:
        """The handle of an iterator, started with these rows unless the op starts it."""
        handle = new_iterator()
        if self.case.op_def.name != "MakeIterator":
            self.start.append(add("MakeIterator", sliced(gc.constant(rows.astype(np.int64))), handle))
        return handle

    def of_variant(self, rows: Array) -> Any:
        """The handle of a dataset, of an optional value of two numbers, or of a list."""
        name = self.case.op_def.name
        if is_of_datasets(name):
            return probe(sliced(self.know.tensor(rows.astype(np.int64))))
        if name.startswith("Optional"):
            return probe(add("OptionalFromValue", [self.know.tensor(np.resize(rows, 2))]).outputs[0])
        return self.tensor_list(rows)

    def tensor_list(self, rows: Array) -> Any:
        """The handle of a list of these rows; for an op on an array of lists, an array of it."""
        shape = self.know.tensor(np.array(rows.shape[1:], np.int32))
        handle = probe(add("TensorListFromTensor", self.know.tensor(rows), shape).outputs[0])
        return add("Pack", [handle]).outputs[0] if self.case.op_def.name == "TensorListPushBackBatch" else handle


def new_iterator() -> Any:
    """The handle of an iterator over numbers."""
    attrs = {"shared_name": "", "container": "", **OF_NUMBERS}
    return gc.get_default_graph().apply_op("IteratorV2", [], attrs, "iterator").outputs[0]


def sliced(rows: Any) -> Any:
    """A dataset of the elements of a vector."""
    return add("TensorSliceDataset", [rows], output_shapes=[gc.Shape([])]).outputs[0]


def _plain(case: Case, know: Knowledge) -> Built:
    maker = Maker(case, know)
    arguments = maker.arguments()
    with gc.control_dependencies(maker.after):
        return Built(add(case.op_def.name, *arguments, **know.attrs(case.op_def, case.attrs)), maker.start)


def _without_files(case: Case, know: Knowledge) -> Built:
    """The examples name files that are not there."""
    built = _plain(case, know)
    built.fails = gc.GraphError
    return built


def _from_string(case: Case, know: Knowledge) -> Built:
    """An iterator found by its handle as a string."""
    made = add("IteratorToStringHandle", new_iterator())
    built = _plain(case, know)
    built.start.append(made)
    return built


def _python(case: Case, know: Knowledge) -> Built:
    """A call of a Python function of this process."""
    return Built(add(case.op_def.name, [know.tensor(value) for value in case.inputs[0]], token=DOUBLE.token, Tout=case.attrs["Tout"]))


def _given(case: Case, know: Knowledge) -> Built:
    """The feeds."""
    value = np.zeros([2 if size is None else size for size in gc.Shape(case.attrs["shape"]).as_list()], np.float32)
    node = add(case.op_def.name, dtype=case.attrs["dtype"], shape=know.shape(gc.Shape(value.shape)))
    return Built(node, feeds={node.outputs[0]: value})


def _argument(case: Case, know: Knowledge) -> Built:
    """A function argument; the known part of its shape is an attr of the node."""
    value = np.ones((2, 3), np.float32)
    node = add(case.op_def.name, **case.attrs, _output_shapes=[know.shape(gc.Shape(value.shape))])
    return Built(node, feeds={node.outputs[0]: value})


def _holder(case: Case, know: Knowledge) -> Built:
    """A variable itself, initialised first."""
    value = np.ones([size or 0 for size in gc.Shape(case.attrs["shape"]).as_list()], np.float32)
    node = add(case.op_def.name, **know.attrs(case.op_def, case.attrs))
    assign = "Assign" if node.output_types[0].is_ref else "AssignVariableOp"
    return Built(node, [add(assign, node.outputs[0], gc.constant(value))])


def _queue(case: Case, know: Knowledge) -> Built:
    """A queue with or without shapes."""
    return Built(add(case.op_def.name, **case.attrs))


def _received(case: Case, know: Knowledge) -> Built:
    """The value from the partner."""
    partner = case.op_def.name.replace("Recv", "Send")
    ends = {name: value for name, value in case.attrs.items() if name != "tensor_type"}
    with gc.control_dependencies([add(partner, know.tensor(np.ones((2, 3), np.float32)), **ends)]):
        return Built(add(case.op_def.name, **case.attrs))


def _abort(case: Case, know: Knowledge) -> Built:
    return Built(add("Abort", **case.attrs), fails=gc.errors.AbortedError)


def _loop(case: Case, know: Knowledge) -> Built:
    """A loop of two iterations around the op. Each doubles the value, except for fixed shapes and variables."""
    maker = Maker(case, know)
    (value, *_) = maker.arguments()
    is_ref = value.dtype.is_ref
    prefix = "Ref" if is_ref else ""
    frame = {"frame_name": "loop"}
    limit, one, axis = (add("Enter", gc.constant(number), **frame, is_constant=True).outputs[0] for number in (2, 1, 0))
    entered = [add(op, what, **frame).outputs[0] for op, what in (("Enter", gc.constant(0)), (f"{prefix}Enter", value))]
    entered = [probe(tensor) for tensor in entered]
    merges = [add(op, [what, what]) for op, what in zip(("Merge", f"{prefix}Merge"), entered, strict=True)]
    counter, merged = (probe(merge.outputs[0]) for merge in merges)
    pivot = probe(add("LoopCond", add("Less", counter, limit).outputs[0]).outputs[0])
    turned = [add("Switch", counter, pivot), add(f"{prefix}Switch", merged, pivot)]
    out, inside = (probe(side) for side in turned[1].outputs)
    if not is_ref and case.number % 2:
        inside = add("ConcatV2", [inside, inside], axis).outputs[0]
    again = [add("Add", turned[0].outputs[1], one).outputs[0], probe(inside)]
    back = [add(op, tensor) for op, tensor in zip(("NextIteration", f"{prefix}NextIteration"), again, strict=True)]
    for node, merge in zip(back, merges, strict=True):
        gc.get_default_graph().update_edge(node, 0, merge, 1)
    return Built(add(f"{prefix}Exit", out), maker.start, loop=(back[1].outputs[0], merged))


LOOP_OPS = tuple([prefix + op for op in ("Enter", "Exit", "NextIteration") for prefix in ("", "Ref")])
SPECIAL: dict[str, Callable[[Case, Knowledge], Built]] = {
    "Abort": _abort,
    **dict.fromkeys(("MergeV2Checkpoints", "RestoreV2", "SaveV2", "ReadFile"), _without_files),
    **dict.fromkeys(("InitializeTableFromTextFile", "InitializeTableFromTextFileV2"), _without_files),
    **dict.fromkeys(("IteratorFromStringHandle", "IteratorFromStringHandleV2"), _from_string),
    **dict.fromkeys(("PyFunc", "PyFuncStateless"), _python),
    **dict.fromkeys(("Placeholder", "PlaceholderV2"), _given),
    **dict.fromkeys(("_Arg", "_DeviceArg"), _argument),
    **dict.fromkeys(("VarHandleOp", "Variable", "VariableV2"), _holder),
    **{f"{kind}Queue{version}": _queue for kind in ("FIFO", "PaddingFIFO", "RandomShuffle") for version in ("", "V2")},
    "PriorityQueueV2": _queue,
    **dict.fromkeys(("_Recv", "_HostRecv"), _received),
    **dict.fromkeys(LOOP_OPS, _loop),
}
