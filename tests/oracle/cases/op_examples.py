"""The registry's examples, run by this project and given in plain values for TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import graphcore as gc
from graphcore.attrs import as_attr_value, attr_kind
from graphcore.definitions import ArgDef, name_ranges_for_node
from graphcore.registry import OpRegistration
from tests.graphcore.opset.op_cases import OF_HANDLES, is_of_datasets, make_old_enough

Array = npt.NDArray[Any]
Sent = tuple[str, Any]

# Alone, these leave the frame they are in, and Abort ends TensorFlow's process: tests/oracle/test_control_flow.py runs them in loops.
_NOT_ALONE = {"Abort", "Enter", "Exit", "FakeParam", "NextIteration", "RefEnter", "RefExit", "RefNextIteration"}
# These call Python functions: tests/oracle/test_data.py has them in a dataset.
_OF_PYTHON = {"PyFunc", "PyFuncStateless"}
# These need files: tests/oracle/test_checkpoints.py has them.
_OF_FILES = {"ReadFile", "MergeV2Checkpoints", "RestoreV2", "SaveV2"}


@dataclass(frozen=True)
class OpExample:
    """One example of one op."""

    entry: OpRegistration
    number: int
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    differentiable: bool

    @property
    def name(self) -> str:
        """The op's name."""
        return self.entry.op_def.name

    @property
    def deterministic(self) -> bool:
        """True iff two programs must give the same values: False for random numbers without a seed."""
        seeded = any(self.attrs.get(name) for name in ("seed", "seed2"))
        return seeded or self.entry.op_def.find_attr("seed") is None

    def sent_inputs(self) -> list[Sent]:
        """The inputs in the form for TensorFlow's side."""
        return [self._sent(arg, value) for arg, value in zip(self.entry.op_def.input_arg, self.inputs, strict=True)]

    def sent_attrs(self) -> dict[str, Sent]:
        """The attrs in the form for TensorFlow's side, without inferred ones."""
        args = self.entry.op_def.input_arg
        inferred = {name for arg in args for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
        kinds = {attr.name: attr.type for attr in self.entry.op_def.attr}
        values = {key: as_attr_value(value, kinds[key]) for key, value in self.attrs.items()}
        return {key: plain_attr(value) for key, value in values.items() if key not in inferred}

    def run(self) -> list[Array]:
        """The outputs here, and the final values of the variables among the inputs."""
        graph = gc.Graph()
        with graph.as_default():
            make_old_enough(self.entry.op_def)
            tensors, start, _ = self._tensors()
            node = graph.apply_op(self.name, tensors, self.attrs)
            with gc.Session(graph=graph) as session:
                session.run(start)
                if not node.outputs:
                    session.run(node)
                outputs = [np.asarray(value) for value in session.run(list(map(elements, node.outputs)))]
                return outputs + [variable_state(session, tensor, dtype) for tensor, dtype in self._variables(tensors)]

    def _variables(self, tensors: list[Any]) -> list[tuple[Any, gc.DType]]:
        """Tensors that read the variables among the inputs, references first, with their types."""
        sent = self.sent_inputs()
        return [
            (tensor, gc.as_dtype(value[0]))
            for wanted in ("ref", "handle")
            for tensor, (kind, value) in zip(tensors, sent, strict=True)
            if kind == wanted
        ]

    def differentiated(self) -> tuple[list[int], list[Array | None]]:
        """The differentiated floating outputs, and their gradients by each input here."""
        graph = gc.Graph()
        with graph.as_default():
            make_old_enough(self.entry.op_def)
            tensors, _, flat = self._tensors()
            node = graph.apply_op(self.name, tensors, self.attrs)
            outputs = list(map(elements, node.outputs))
            # Gradients that reach such an output are dropped.
            dropped = [
                start
                for name, (start, _) in name_ranges_for_node(node.node_def, node.op_def)[1].items()
                if name in self.entry.no_gradient_through
            ]
            numbers = [i for i, output in enumerate(outputs) if (output.dtype.is_floating or output.dtype.is_complex) and i not in dropped]
            if not numbers:
                return [], []
            ys = [outputs[i] for i in numbers]
            found = gc.gradients(ys, flat, [gc.apply_op("OnesLike", [y]) for y in ys])
            with gc.Session(graph=graph) as session:
                values = iter(session.run([gradient for gradient in found if gradient is not None]))
            return numbers, [None if gradient is None else np.asarray(next(values)) for gradient in found]

    def _tensors(self) -> tuple[list[Any], list[Any], list[Any]]:
        """The inputs as tensors of the default graph, initialisers of variables, and xs of gradients."""
        tensors: list[Any] = []
        start: list[Any] = []
        sources: list[Any] = []
        for kind, value in self.sent_inputs():
            if kind == "list":
                tensors.append([gc.constant(part) for part in value])
                sources += tensors[-1]
                continue
            if kind == "elements":
                sources.append(gc.constant(value))
                handle = gc.apply_op("TensorListFromTensor", [sources[-1], np.array(value.shape[1:], np.int32)])
                tensors.append(gc.apply_op("Pack", [[handle]]) if self.name == "TensorListPushBackBatch" else handle)
                continue
            if kind == "value":
                tensors.append(gc.constant(value))
            else:
                name, shape, array = value
                made, assign = ("VariableV2", "Assign") if kind == "ref" else ("VarHandleOp", "AssignVariableOp")
                tensors.append(gc.apply_op(made, attrs={"shape": gc.Shape(shape), "dtype": gc.as_dtype(name)}))
                start += [] if array is None else [gc.apply_op(assign, [tensors[-1], gc.constant(array)])]
            sources.append(tensors[-1])
        return tensors, start, sources

    def _sent(self, arg: ArgDef, value: Any) -> Sent:
        declared = arg.type or self.attrs.get(arg.type_attr)
        dtype = None if declared is None else gc.as_dtype(declared).base
        if arg.number_attr or arg.type_list_attr:
            return "list", [natural_array(part, dtype) for part in value]
        if dtype is gc.variant:
            return "elements", natural_array(value, None)
        if dtype is gc.resource:
            array = natural_array(value, None)
            return "handle", (gc.as_dtype(array.dtype).text, array.shape, array)
        if not arg.is_ref:
            return "value", natural_array(value, dtype)
        array = natural_array(self._alike(arg) if value is None else value, dtype)
        return "ref", (gc.as_dtype(array.dtype).text, array.shape, None if value is None else array)

    def _alike(self, arg: ArgDef) -> Any:
        """The value of another input of the same type, or any number, for an uninitialised variable."""
        pairs = zip(self.entry.op_def.input_arg, self.inputs, strict=True)
        return next((value for other, value in pairs if other.type_attr == arg.type_attr and value is not None), 0)


def variable_state(session: gc.Session, tensor: Any, dtype: gc.DType) -> Array:
    """The value of a variable, given by reference or handle; empty if it is uninitialised."""
    with tensor.graph.as_default():
        value = gc.apply_op("ReadVariableOp", [tensor], {"dtype": dtype}) if tensor.dtype is gc.resource else tensor
    try:
        return np.asarray(session.run(value))
    except gc.errors.FailedPreconditionError:
        return np.zeros(0)


def elements(output: Any) -> Any:
    """The elements of a list as a tensor; any other tensor itself."""
    if output.dtype is not gc.variant:
        return output
    attrs = {"element_dtype": output.node.node_def.attr.get("element_dtype", gc.float32)}
    if output.node.op == "TensorListSplit":
        return output.graph.apply_op("TensorListConcat", [output], attrs).outputs[0]
    if output.node.op == "TensorListPushBackBatch":
        output = output.graph.apply_op("Reshape", [output, np.zeros(0, np.int32)]).outputs[0]
    return output.graph.apply_op("TensorListStack", [output, gc.constant(-1)], attrs).outputs[0]


def natural_array(value: Any, dtype: gc.DType | None) -> Array:
    """An example's value as an array: of `dtype`, otherwise Python floats as float32 and ints as int32."""
    if isinstance(value, gc.TensorValue):
        return value.array
    array: Array = np.asarray(value)
    if dtype is not None:
        return array.astype(dtype.as_numpy)
    if isinstance(value, np.ndarray | np.generic):
        return array
    return array.astype({"float64": np.float32, "int64": np.int32}.get(array.dtype.name, array.dtype))


def plain_attr(value: Any) -> Sent:
    """An attr value as its kind and a plain value."""
    kind = attr_kind(value)
    if isinstance(value, tuple):
        return ("list(int)" if kind == "list" else kind), [plain_attr(part)[1] for part in value]
    if isinstance(value, gc.DType):
        return kind, value.number
    if isinstance(value, gc.Shape):
        return kind, None if value.rank is None else value.as_list()
    if isinstance(value, gc.TensorValue):
        return kind, (value.array, value.dtype.number)
    return kind, value


def all_examples() -> Iterator[OpExample]:
    """Every example of every public op."""
    for entry in gc.op_registry:
        op_def = entry.op_def
        gives_variable = any(arg.type is gc.resource for arg in op_def.output_arg)
        takes_function = any(attr.type in {"func", "list(func)"} for attr in op_def.attr)
        takes_variables = any(arg.is_ref and arg.number_attr for arg in op_def.input_arg)
        if (
            op_def.name.startswith(("_", *OF_HANDLES))
            or is_of_datasets(op_def.name)
            or op_def.name in _NOT_ALONE | _OF_FILES | _OF_PYTHON
            or gives_variable
            or takes_function
            or takes_variables
        ):
            continue
        for number, example in enumerate(entry.examples):
            yield OpExample(entry, number, tuple(example.inputs), example.attrs, example.differentiable)
