"""The inference context: the interface between a shape function and its node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from graphcore.attrs import Array, Attrs, AttrValue, attr_text
from graphcore.brief import brief
from graphcore.definitions.types import PRODUCER_VERSION, OpDef
from graphcore.dtypes import as_dtype
from graphcore.errors import GraphError, InternalError, InvalidArgumentError
from graphcore.inference.handle_data import HandleShapes
from graphcore.inference.handles import UNKNOWN, DimensionHandle, HandleData, ShapeHandle
from graphcore.inference.summaries import summarize_value
from graphcore.source import SourceLocation

InputTensor = Callable[[int], Array | None]
"""The constant value of input i, None if it has none."""
InputPartialShape = Callable[[int], ShapeHandle | None]
"""The value of input i understood as a shape, None if nothing is known of it."""
ShapeFunction = Callable[["InferenceContext"], None]

_NOT_REQUESTED: Any = object()
_MOST_SHAPES: Final = 32
"""The inputs of a node as an error lists them."""


def direct(shape_of: Callable[..., ShapeHandle]) -> Callable[[ShapeFunction], ShapeFunction]:
    """Mark a shape function that sets its single output from the shapes of the inputs alone.

    A graph calls `shape_of` directly if no input is a handle. Most nodes are of this kind, and a context costs as much as the rest of
    adding a node.
    """

    def mark(shape_function: ShapeFunction) -> ShapeFunction:
        shape_function.direct = shape_of  # type: ignore[attr-defined]  # read where ops are registered
        return shape_function

    return mark


class InferenceContext(HandleShapes):
    """One node's shapes while its shape function runs.

    Args:
        node_name, op_def, attrs: the node.
        input_shapes: one handle an input slot.
        graph_def_version: the producer of the graph; some rules changed over time.
        input_tensor: returns the constant value of an input; called at most once an input, and only if needed.
        input_partial_shape: returns the value of an input as a partial shape; called likewise.
        num_outputs: the number of output slots; counted from `op_def` if not given.
    """

    __slots__ = (
        "_input_partial_shape",
        "_input_tensor",
        "_requested_as_shape",
        "_requested_tensors",
        "attrs",
        "graph_def_version",
        "inputs",
        "node_name",
        "op_def",
        "outputs",
    )

    is_symbolic = False
    """True where unknown sizes have names and are at least 1."""
    outputs: list[ShapeHandle | None]

    def __init__(
        self,
        node_name: str,
        op_def: OpDef,
        attrs: Attrs,
        input_shapes: list[ShapeHandle],
        *,
        graph_def_version: int = PRODUCER_VERSION,
        input_tensor: InputTensor | None = None,
        input_partial_shape: InputPartialShape | None = None,
        num_outputs: int | None = None,
    ) -> None:
        self.node_name = node_name
        self.op_def = op_def
        self.attrs = attrs
        self.inputs = input_shapes
        self.graph_def_version = graph_def_version
        self._input_tensor = input_tensor
        self._input_partial_shape = input_partial_shape
        self.outputs = [None] * (count_outputs(op_def, attrs) if num_outputs is None else num_outputs)
        self._requested_tensors: dict[int, Array | None] | None = None
        self._requested_as_shape: dict[int, ShapeHandle | None] | None = None
        self._merged_dims = None
        self._merged_shapes = None
        self._input_handles = None
        self._output_handles = None

    @property
    def op(self) -> str:
        """The name of the op."""
        return self.op_def.name

    @property
    def num_inputs(self) -> int:
        """The number of input slots."""
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        """The number of output slots."""
        return len(self.outputs)

    def input(self, index: int) -> ShapeHandle:
        """The shape of input `index`."""
        return self.inputs[index]

    def output(self, index: int) -> ShapeHandle:
        """The shape of output `index`.

        Raises:
            InvalidArgumentError: it has not been set.
        """
        shape = self.outputs[index]
        if shape is None:
            raise InvalidArgumentError(
                f"The shape of output {index} of '{self.node_name}' has not been set", op=self.op, node=self.node_name
            )
        return shape

    def set_output(self, index: int, shape: ShapeHandle) -> None:
        """Set the shape of output `index`.

        Raises:
            InvalidArgumentError: the node has no such output.
            TypeError: `shape` is none of this context, such as `make_shape([1, 2])` gives; within a shape function it is an InternalError.
        """
        if not isinstance(shape, ShapeHandle):
            raise TypeError(
                f"set_output({index}, ...) requires a shape such as c.make_shape([2, 3]) or c.unknown_shape(), "
                f"got {brief(shape)} ({type(shape).__name__})"
            )
        try:
            self.outputs[index] = shape
        except IndexError:
            raise InvalidArgumentError(
                f"Output {index} of '{self.node_name}' does not exist: it has {len(self.outputs)}", op=self.op, node=self.node_name
            ) from None

    def attr(self, name: str) -> AttrValue:
        """The value of attr `name`, or its default.

        Raises:
            InvalidArgumentError: the node has no such attr.
        """
        value = self.attrs.get(name)
        if value is not None:
            return value
        declared = self.op_def.find_attr(name)
        if declared is None or declared.default_value is None:
            raise InvalidArgumentError(f"No attr named '{name}' in NodeDef:", op=self.op, node=self.node_name, attr=name)
        return declared.default_value

    def int_attr(self, name: str) -> int:
        """The value of int or bool attr `name`.

        Raises:
            InvalidArgumentError: the node has no such attr, or it is of another kind.
        """
        value = self.attr(name)
        if not isinstance(value, int):
            raise InvalidArgumentError(f"Attr '{name}' must be an int, got {brief(value)}", op=self.op, node=self.node_name, attr=name)
        return value

    def ints_attr(self, name: str) -> tuple[int, ...]:
        """The value of list(int) attr `name`.

        Raises:
            InvalidArgumentError: the node has no such attr, or it is of another kind.
        """
        value = self.attr(name)
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            raise InvalidArgumentError(
                f"Attr '{name}' must be a list of ints, got {brief(value)}", op=self.op, node=self.node_name, attr=name
            )
        return value

    def text_attr(self, name: str, default: str | None = None) -> str:
        """The value of string attr `name` as text; `default`, if given, where the op has no such attr.

        Raises:
            InvalidArgumentError: the node has no such attr, or it is of another kind.
        """
        if default is not None and name not in self.attrs and self.op_def.find_attr(name) is None:
            return default
        value = self.attr(name)
        if not isinstance(value, bytes):
            raise InvalidArgumentError(f"Attr '{name}' must be a string, got {brief(value)}", op=self.op, node=self.node_name, attr=name)
        return attr_text(value)

    def set_input(self, index: int, shape: ShapeHandle) -> None:
        """Set the shape of input `index`."""
        self.inputs[index] = shape

    def merge_input(self, index: int, shape: ShapeHandle) -> bool:
        """Merge `shape` into the shape of input `index`. True iff that changed it.

        A contradictory shape changes nothing.
        """
        merged = self._merge_or_keep(self.inputs[index], shape)
        changed = merged is not self.inputs[index]
        self.inputs[index] = merged
        return changed

    def relax_input(self, index: int, shape: ShapeHandle) -> bool:
        """Relax the shape of input `index` to agree with `shape`. True iff that changed it."""
        relaxed = self.relax(self.inputs[index], shape)
        changed = relaxed is not self.inputs[index]
        self.inputs[index] = relaxed
        return changed

    def input_tensor(self, index: int) -> Array | None:
        """The constant value of input `index`, None if it has none."""
        if self._requested_tensors is None:
            self._requested_tensors = {}
        value = self._requested_tensors.get(index, _NOT_REQUESTED)
        if value is _NOT_REQUESTED:
            value = self.evaluate_input(index)
            self._requested_tensors[index] = value
        return value  # type: ignore[no-any-return]  # the sentinel is gone here

    def input_tensor_as_partial_shape(self, index: int) -> ShapeHandle | None:
        """The value of input `index` as a partial shape, None if nothing is known of it."""
        if self._requested_as_shape is None:
            self._requested_as_shape = {}
        shape = self._requested_as_shape.get(index, _NOT_REQUESTED)
        if shape is _NOT_REQUESTED:
            shape = self.evaluate_input_as_partial_shape(index)
            self._requested_as_shape[index] = shape
        return shape  # type: ignore[no-any-return]  # the sentinel is gone here

    def evaluate_input(self, index: int) -> Array | None:
        """Compute the constant value of input `index`; overridden by a graph's context."""
        return None if self._input_tensor is None else self._input_tensor(index)

    def evaluate_input_as_partial_shape(self, index: int) -> ShapeHandle | None:
        """Compute the value of input `index` as a partial shape; overridden by a graph's context."""
        return None if self._input_partial_shape is None else self._input_partial_shape(index)

    @property
    def requested_input_tensors(self) -> frozenset[int]:
        """The inputs whose constant values were requested."""
        return frozenset(self._requested_tensors or ())

    @property
    def requested_input_tensors_as_partial_shapes(self) -> frozenset[int]:
        """The inputs whose values as shapes were requested."""
        return frozenset(self._requested_as_shape or ())

    def forget_values(self) -> None:
        """Forget the values of inputs after the inputs changed."""
        self._requested_tensors = None
        self._requested_as_shape = None

    def function_outputs(  # overridden by a graph's context
        self,
        name: str,  # noqa: ARG002 - what overrides this takes it
        attrs: Mapping[str, AttrValue],  # noqa: ARG002 - what overrides this takes it
        shapes: Sequence[ShapeHandle],  # noqa: ARG002 - what overrides this takes it
        slots: Sequence[int | None],  # noqa: ARG002 - what overrides this takes it
    ) -> list[tuple[ShapeHandle, HandleData | None]] | None:
        """Infer the outputs of a call of function `name`: shape and handle data of each; None if unknown.

        Args:
            name, attrs: the function.
            shapes: the shapes of its arguments.
            slots: for each argument the input slot of this node that it comes from, None if it comes from none.

        Raises:
            InvalidArgumentError: the arguments do not fit the function's body.
        """
        return None

    def set_outputs_by_function(self, name: str, attrs: Mapping[str, AttrValue]) -> None:
        """Set all outputs to those of a call of function `name` with all inputs.

        Unknown outputs get unknown shapes.
        """
        results = self.function_outputs(name, attrs, self.inputs, range(len(self.inputs)))
        if results is None or len(results) != len(self.outputs):
            self.outputs = [ShapeHandle() for _ in self.outputs]
            return
        for index, (shape, data) in enumerate(results):
            self.outputs[index] = shape
            if data is not None:
                self.set_output_handle_shapes_and_types(index, data)

    def make_shape_from_shape_tensor(self, index: int) -> ShapeHandle:
        """The shape given by the value of input `index`, as far as known.

        Raises:
            InvalidArgumentError: the input is no int vector, or holds a size below -1.
        """
        shape_of_value = self.with_rank(self.inputs[index], 1)
        return self._shape_from_input(index, shape_of_value)

    def make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(self, index: int) -> ShapeHandle:
        """The shape given by input `index`, which may be the scalar -1 for an unknown rank.

        Otherwise like `make_shape_from_shape_tensor`.

        Raises:
            InvalidArgumentError: the input is neither, or holds a size below -1.
        """
        shape_of_value = self.with_rank_at_most(self.inputs[index], 1)
        if shape_of_value.dims is None or shape_of_value.dims:
            return self._shape_from_input(index, shape_of_value)
        value = self.input_tensor(index)
        if value is not None and int(value) != UNKNOWN:
            raise InvalidArgumentError(
                "Input tensor must be rank 1, or if its rank 0 it must have value -1 (representing an unknown shape).  "
                f"Saw value: {int(value)}"
            )
        return ShapeHandle()

    def _shape_from_input(self, index: int, shape_of_value: ShapeHandle) -> ShapeHandle:
        partial = self.input_tensor_as_partial_shape(index)
        if partial is not None and partial.dims is not None:
            return partial
        return self.make_shape_from_tensor(self.input_tensor(index), shape_of_value)

    def scalar_from_tensor(self, value: Array) -> int:
        """The number in a scalar int tensor.

        Raises:
            InvalidArgumentError: it is no scalar, or no int32 or int64.
        """
        if value.ndim != 0:
            raise InvalidArgumentError(f"Input must be scalar but has rank {value.ndim}")
        if as_dtype(value.dtype).text not in {"int32", "int64"}:
            raise InvalidArgumentError("Scalar input must be int32 or int64.")
        return int(value)

    def make_dim_for_scalar_input(self, index: int) -> DimensionHandle:
        """A new dimension with the size in scalar input `index`; unknown if the value is.

        Raises:
            InvalidArgumentError: it is no int scalar, or negative.
        """
        value = self.input_tensor(index)
        if value is None:
            return DimensionHandle()
        size = self.scalar_from_tensor(value)
        if size < 0:
            raise InvalidArgumentError(f"Dimension size, given by scalar input {index}, must be non-negative but is {size}")
        return DimensionHandle(size)

    def make_dim_for_scalar_input_with_negative_indexing(self, index: int, rank: int) -> DimensionHandle:
        """A new dimension with the position in [0, rank) given by scalar input `index`.

        Negative positions count from the end.

        Raises:
            InvalidArgumentError: it is no int scalar, or outside [-rank, rank).
        """
        value = self.input_tensor(index)
        if value is None:
            return DimensionHandle()
        position = self.scalar_from_tensor(value)
        if rank < 0:
            return DimensionHandle(max(position, UNKNOWN))
        if not -rank <= position < rank:
            raise InvalidArgumentError(f"Dimension size, given by scalar input {position} must be in range [-{rank}, {rank})")
        return DimensionHandle(position + rank if position < 0 else position)

    def run(self, shape_function: ShapeFunction) -> None:
        """Run a shape function; the node and the input shapes are added to its errors.

        Every error is a GraphError, since the op may come from a file. An error of Python is a fault of the shape function. It becomes
        the cause of an InternalError that names the line of the shape function.

        Raises:
            GraphError: an error of the shape function.
            InternalError: the shape function raised an error of Python.
        """
        self.forget_merges()
        try:
            shape_function(self)
        except GraphError as error:
            self.forget_merges()
            raise self.with_context(error) from error.__cause__
        except Exception as error:
            self.forget_merges()
            raise self.with_context(self._fault(error)) from error

    def _fault(self, error: Exception) -> InternalError:
        """The error for a shape function that raised `error`."""
        fault = InternalError(f"The shape function of op {self.op} raised {type(error).__name__}: {error}")
        trace = error.__traceback__ and error.__traceback__.tb_next  # the first frame is that of `run`
        where = "" if trace is None else f", {SourceLocation(trace.tb_frame.f_code.co_filename, trace.tb_lineno).where}"
        return fault.advise(f"Correct the shape function of {self.op}{where}.")

    def with_context(self, error: GraphError) -> GraphError:
        """The same error with the text of error_suffix, the op and the node."""
        error.message += self.error_suffix()
        error.args = (error.message,)
        return error.with_node(self.node_name, op=self.op)

    def error_suffix(self) -> str:
        """The suffix made by `run_error_suffix` for this node and the input values used."""
        values: dict[int, Array] = {}
        partial: dict[int, ShapeHandle] = {}
        for index in range(len(self.inputs)):
            as_shape = (self._requested_as_shape or {}).get(index)
            value = (self._requested_tensors or {}).get(index)
            if as_shape is not None and as_shape.dims is not None:
                partial[index] = as_shape
            elif value is not None:
                values[index] = value
        return run_error_suffix(self.node_name, self.op, self.inputs, values, partial)


def run_error_suffix(
    node_name: str,
    op: str,
    input_shapes: Sequence[ShapeHandle],
    values: Mapping[int, Array] | None = None,
    partial_shapes: Mapping[int, ShapeHandle] | None = None,
) -> str:
    """The suffix of shape errors: ` for '<node>' (op: '<op>') with input shapes: [..], [..].`.

    Args:
        node_name, op, input_shapes: the node.
        values: the constant inputs that were used, by slot.
        partial_shapes: the inputs that were used as shapes, by slot.
    """
    shown = [str(shape) for shape in input_shapes[:_MOST_SHAPES]]
    if len(input_shapes) > _MOST_SHAPES:
        shown.append(f"... ({len(input_shapes)} in all)")
    text = f" for '{node_name}' (op: '{op}') with input shapes: {', '.join(shown)}"
    if values:
        listed = [f"input[{index}] = <{summarize_value(value)}>" for index, value in values.items()]
        text += " and with computed input tensors: " + ", ".join(listed)
    if partial_shapes:
        listed = [f"input[{index}] = {shape}" for index, shape in partial_shapes.items()]
        text += " and with input tensors computed as partial shapes: " + ",".join(listed)
    return text + "."


def count_outputs(op_def: OpDef, attrs: Attrs) -> int:
    """The number of output slots of a node.

    Raises:
        InvalidArgumentError: the attr that gives the number is missing or not a number.
    """
    count = 0
    for arg in op_def.output_arg:
        name = arg.number_attr or arg.type_list_attr
        if not name:
            count += 1
            continue
        value = attrs.get(name)
        if isinstance(value, tuple):
            count += len(value)
        elif isinstance(value, int):
            count += value
        else:
            raise InvalidArgumentError(f"Attr '{name}' of op {op_def.name} must say the number of outputs, got {brief(value)}", attr=name)
    return count
