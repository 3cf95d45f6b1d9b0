"""Registry examples as test cases: input arrays, the node built from them, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import graphcore as gc
from graphcore.definitions import ArgDef, OpDef, VersionDef
from graphcore.graph import Node
from graphcore.registry import OpRegistration

Array = npt.NDArray[Any]

REFUSED_GRADIENTS = {"Qr-2": "with full_matrices; see math/test_gradients_of_decompositions.py"}
NOT_RUN = {
    # These must be fed.
    "Placeholder",
    "PlaceholderV2",
    "_Arg",
    "_DeviceArg",
    # Their results are dead values, need a loop, or end the run: see test_control_flow.
    "Abort",
    "Enter",
    "Exit",
    "NextIteration",
    "RefEnter",
    "RefExit",
    "RefNextIteration",
    "RefSwitch",
    "Switch",
    "_SwitchN",
    # These need a sending partition.
    "_HostRecv",
    "_Recv",
    # These call Python functions of a process: see test_data.
    "PyFunc",
    "PyFuncStateless",
    # These need files: see test_data and test_checkpoint_files.
    "ReadFile",
    "MergeV2Checkpoints",
    "RestoreV2",
    "SaveV2",
    # These return a variable itself.
    "VarHandleOp",
    "Variable",
    "VariableV2",
}
OF_HANDLES = (
    "AccumulatorApply",
    "AccumulatorNum",
    "AccumulatorSet",
    "AccumulatorTake",
    "ConditionalAccumulator",
    "FIFOQueue",
    "FixedLengthRecordReader",
    "HashTable",
    "IdentityReader",
    "InitializeTable",
    "LookupTable",
    "MutableDenseHashTable",
    "MutableHashTable",
    "Optional",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "Queue",
    "Reader",
    "ResourceAccumulator",
    "ResourceConditionalAccumulator",
    "SparseAccumulator",
    "SparseConditionalAccumulator",
    "RandomShuffleQueue",
    "Stack",
    "TFRecordReader",
    "TensorArray",
    "TextLineReader",
    "WholeFileReader",
)
"""Ops on handles: graphs of them are in array_programs, and in the scenarios of queues."""


OF_DATASETS = ("Dataset", "Iterator", "IteratorGetNext", "IteratorGetNextSync", "StringHandle")
"""The ends of the names of ops on datasets and iterators: graphs of them are in the tests of `data`."""


@dataclass(frozen=True)
class Case:
    """One example of one op.

    Attributes:
        inputs: one entry for each argument; a list for a list argument.
        functions: definitions of the functions named in attrs.
    """

    entry: OpRegistration
    number: int
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    outputs: Sequence[Any] | None
    differentiable: bool
    functions: Sequence[str] = ()

    @property
    def op_def(self) -> OpDef:
        return self.entry.op_def

    @property
    def id(self) -> str:
        return f"{self.op_def.name}-{self.number}"

    @property
    def takes_variable(self) -> bool:
        return bool(self.entry.colocated_inputs)

    @property
    def takes_handle(self) -> bool:
        return any(arg.type is gc.resource for arg in self.op_def.input_arg)

    @property
    def gives_list(self) -> bool:
        return any(arg.type is gc.variant for arg in self.op_def.output_arg)

    @property
    def is_of_lists(self) -> bool:
        return self.gives_list or any(arg.type is gc.variant for arg in self.op_def.input_arg)

    @property
    def runs(self) -> bool:
        return self.op_def.name not in NOT_RUN and not self.op_def.name.startswith(OF_HANDLES) and not is_of_datasets(self.op_def.name)

    @property
    def deterministic(self) -> bool:
        return not self.op_def.is_stateful or self.takes_variable

    @property
    def arrays(self) -> list[Array]:
        """The inputs without the lists."""
        return [array for value in self.inputs for array in (value if isinstance(value, list) else [value])]

    def build(self, tensors: Sequence[Any]) -> Node:
        """The node in the default graph; handles of lists are converted to their elements."""
        node = self.build_plain(tensors)
        return gc.get_default_graph().apply_op("IdentityN", [list(map(elements, node.outputs))]) if self.gives_list else node

    def build_plain(self, tensors: Sequence[Any]) -> Node:
        """The node in the default graph; `tensors` replaces the flat inputs. Handles of lists are made of them."""
        left = iter(tensors)
        arguments = [
            [next(left) for _ in value]
            if isinstance(value, list)
            else made_handle(next(left), self.op_def)
            if arg.type is gc.variant
            else next(left)
            for arg, value in zip(self.op_def.input_arg, self.inputs, strict=True)
        ]
        make_old_enough(self.op_def)
        for text in self.functions:
            gc.get_default_graph().library.add_function_def(gc.define_function(text))
        return gc.get_default_graph().apply_op(self.op_def.name, arguments, self.attrs)


def is_of_datasets(name: str) -> bool:
    """True iff the op is one of datasets or iterators."""
    return name.removesuffix("V2").endswith(OF_DATASETS)


def make_old_enough(op_def: OpDef) -> None:
    """Give the default graph a version in which the op was not removed yet."""
    if op_def.deprecation is not None:
        gc.get_default_graph().versions = VersionDef(producer=op_def.deprecation.version - 1)


def made_handle(tensor: Any, op_def: OpDef) -> Any:
    """The rows of a tensor as a list; for an op on an array of lists, as an array with it."""
    shape = gc.apply_op("Slice", [gc.apply_op("Shape", [tensor]), gc.constant([1]), gc.constant([-1])])
    handle = gc.apply_op("TensorListFromTensor", [tensor, shape])
    return gc.apply_op("Pack", [[handle]]) if op_def.name == "TensorListPushBackBatch" else handle


def elements(output: Any) -> Any:
    """The elements of a list, or the tensor itself if it is not a list."""
    if output.dtype is not gc.variant:
        return output
    dtype = output.node.node_def.attr.get("element_dtype", gc.float32)
    if output.node.op == "TensorListSplit":
        return output.graph.apply_op("TensorListConcat", [output], {"element_dtype": dtype}).outputs[0]
    if output.node.op == "TensorListPushBackBatch":
        output = output.graph.apply_op("Reshape", [output, np.zeros(0, np.int32)]).outputs[0]
    return output.graph.apply_op("TensorListStack", [output, gc.constant(-1)], {"element_dtype": dtype}).outputs[0]


def all_cases() -> list[Case]:
    """Every example of every op."""
    return [as_case(entry, number, example) for entry in gc.op_registry for number, example in enumerate(entry.examples)]


def as_case(entry: OpRegistration, number: int, example: Any) -> Case:
    """An example of an op as a case."""
    inputs = _inputs(entry.op_def, example)
    return Case(entry, number, inputs, example.attrs, example.outputs, example.differentiable, example.functions)


def constants(arrays: Sequence[Array]) -> list[Any]:
    return [gc.constant(array) for array in arrays]


def hidden(arrays: Sequence[Array], sizes: str) -> list[Any]:
    """Tensors with these values, of known or unknown rank for the graph."""
    shapes = [gc.Shape([None] * array.ndim) if sizes == "unknown" else gc.Shape(None) for array in arrays]
    return [
        gc.apply_op("PlaceholderWithDefault", [gc.constant(array)], {"shape": shape}) for array, shape in zip(arrays, shapes, strict=True)
    ]


def run(node: Node) -> list[Array]:
    with gc.Session(graph=node.graph) as session:
        if not node.outputs:
            session.run(node)
        return [np.asarray(value) for value in session.run(list(node.outputs))]


def with_variables(case: Case) -> tuple[Node, list[Any]]:
    """A node with variables as reference inputs, and their initialisers."""
    tensors: list[Any] = []
    start: list[Any] = []
    for arg, value in zip(case.op_def.input_arg, case.inputs, strict=True):
        if arg.type is gc.resource:
            attrs = {"shape": gc.Shape(value.shape), "dtype": gc.as_dtype(value.dtype)}
            tensors.append(gc.apply_op("VarHandleOp", attrs=attrs))
            start.append(gc.apply_op("AssignVariableOp", [tensors[-1], gc.constant(value)]))
            continue
        if not arg.is_ref:
            tensors.append(gc.constant(value))
            continue
        for part in value if isinstance(value, list) else [value]:
            shape = gc.Shape([] if part is None else part.shape)
            dtype = gc.as_dtype(case.attrs["dtype"]) if part is None else gc.as_dtype(part.dtype)
            tensors.append(gc.apply_op("VariableV2", attrs={"shape": shape, "dtype": dtype}))
            start += [] if part is None else [gc.apply_op("Assign", [tensors[-1], gc.constant(part)])]
    return case.build(tensors), start


def _inputs(op_def: OpDef, example: Any) -> tuple[Any, ...]:
    types: dict[str, gc.DType] = {
        name: gc.as_dtype(value) for name, value in example.attrs.items() if isinstance(value, str | gc.DType) and _is_type(op_def, name)
    }
    return tuple([_argument(arg, value, types) for arg, value in zip(op_def.input_arg, example.inputs, strict=True)])


def _is_type(op_def: OpDef, name: str) -> bool:
    attr = op_def.find_attr(name)
    return attr is not None and attr.type == "type"


def _argument(arg: ArgDef, value: Any, types: dict[str, gc.DType]) -> Any:
    of_handle = arg.type is gc.resource or arg.type is gc.variant or (arg.is_ref and arg.type is gc.string)
    dtype = None if of_handle else arg.type or types.get(arg.type_attr)
    if arg.number_attr or arg.type_list_attr:
        return [_array(part, dtype) for part in value]
    if value is None:
        return None
    array = _array(value, dtype)
    if arg.type_attr:
        types.setdefault(arg.type_attr, gc.as_dtype(array.dtype))
    return array


def _array(value: Any, dtype: gc.DType | None) -> Array:
    array = np.asarray(value)
    if dtype is not None:
        return array.astype(dtype.as_numpy)
    if array.dtype.kind == "S":
        return array.astype(np.object_)
    if isinstance(value, np.ndarray | np.generic):
        return array
    return array.astype({"float64": np.float32, "int64": np.int32}.get(array.dtype.name, array.dtype))
