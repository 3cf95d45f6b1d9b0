"""Resource variables: handles, and ops that read and change the variables behind them."""

from __future__ import annotations

from operator import methodcaller
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, attr_text
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext, ShapeAndType, ShapeHandle
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, scalar_shape
from graphcore.inference.shape_fns.elementwise import shape_attr
from graphcore.kernel_context import RefVariable
from graphcore.opset.arrays.gathering import checked_indices
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op, no_registered_gradient, op
from graphcore.opset.framework.gradient_text import vector
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.opset.state.state import accepts_shape, shape_now
from graphcore.shapes import Shape, as_shape
from graphcore.support.memory_limits import check_allocation
from graphcore.traits import declares_traits

_NO_GRADIENT: Final = no_registered_gradient("it changes state; differentiate the value that is assigned instead")
_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]
_Y: Final = [[0.5, 0.5, 0.5], [1.0, 1.0, 1.0]]


def handle_shape(c: InferenceContext, index: int = 0) -> ShapeHandle:
    """The shape of the variable behind the handle in input `index`."""
    data = c.input_handle_shapes_and_types(index)
    return data[0].shape if data else c.unknown_shape()


class OtherType(RefVariable):
    """A variable seen through a handle of another type: it only reports if it is initialised."""

    __slots__ = ("shared",)

    def __init__(self, shared: RefVariable, dtype: DType) -> None:
        self.shared = shared
        super().__init__(shared.name, dtype, shared.shape, shared.source, shared.op)
        self.lock = shared.lock

    @property
    def value(self) -> Array | None:
        """The value of the variable."""
        return self.shared.value

    @value.setter
    def value(self, value: Array | None) -> None:
        if value is not None:
            self.assign(value)

    def read(self) -> Array:
        """Refuse to return a value of another type.

        Raises:
            InvalidArgumentError: the variable is initialised.
            FailedPreconditionError: it is not.
        """
        self.shared.read()
        raise InvalidArgumentError(f"Trying to read variable with wrong dtype. Expected {self.dtype.text} got {self.shared.dtype.text}")

    def assign(self, value: Array) -> None:  # noqa: ARG002 - no value can be assigned
        """Refuse an assignment.

        Raises:
            InvalidArgumentError: always.
        """
        raise InvalidArgumentError(f"Trying to assign variable with wrong dtype. Expected {self.shared.dtype.text} got {self.dtype.text}")


@op
class VarHandleOp:
    """The handle of a variable with the lifetime of the session, uninitialised at first.

    dtype: the type of its values.
    shape: their shape; unknown dimensions are allowed.
    container: a namespace for `shared_name`.
    shared_name: handles with the same shared name share a variable; the node's name by default.
    """

    signature = (
        "VarHandleOp[container:string = '', shared_name:string = '', debug_name:string = '', dtype:type, shape:shape, "
        "allowed_devices:list(string) = []]() -> (resource:resource)"
    )
    role = "variable"
    holds_parameters = True
    can_fail = False
    gradient = _NO_GRADIENT
    examples = (Example([], {"dtype": "float", "shape": Shape([2, 3])}),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.scalar())
        dtype = c.attr("dtype")
        c.set_output_handle_shapes_and_types(0, [ShapeAndType(shape_attr(c), dtype if isinstance(dtype, DType) else None)])

    def kernel(k: KernelContext) -> Kernel:
        dtype = k.attr("dtype")
        if not isinstance(dtype, DType):
            raise invalid(k, f"attr 'dtype' must be a type, got {dtype!r}")
        name = attr_text(k.attr("shared_name")) or k.node_name
        variable = k.resources.variable(attr_text(k.attr("container")), name, dtype, as_shape(k.attr("shape")), k.source, k.op, k.node_name)
        if variable.dtype is not dtype:
            variable = OtherType(variable, dtype)
        return lambda: variable


@op
class ReadVariableOp:
    """The value of a variable at this moment."""

    signature = "ReadVariableOp[dtype:type](resource:resource) -> (value:dtype)"
    memory = "held"
    reads_variable = "whole"
    gradient = """[dtype:type](resource:resource, dy:dtype) -> (dvalue:dtype) {
      dvalue = Identity[T=$dtype](dy)
    }"""
    examples = (Example([_X], {"dtype": "float"}, outputs=[_X], differentiable=False),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, handle_shape(c))

    def kernel(k: KernelContext) -> Kernel:
        return methodcaller("read")  # a variable of another type refuses to be read


@op
class VarIsInitializedOp:
    """True if the variable is initialised."""

    signature = "VarIsInitializedOp(resource:resource) -> (is_initialized:bool)"
    shape = scalar_shape
    can_fail = False
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[True]),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda variable: np.bool_(variable.value is not None)


@op
class VariableShape:
    """The shape of the value of a variable, as a vector."""

    signature = f"VariableShape[out_type:{INDEX} = int32](input:resource) -> (output:out_type)"
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[[2, 3]]),)

    def shape(c: InferenceContext) -> None:
        rank = c.rank(handle_shape(c))
        c.set_output(0, c.vector(c.unknown_dim() if rank < 0 else c.make_dim(rank)))

    def kernel(k: KernelContext) -> Kernel:
        array, dtype = k.xp.array, k.dtype("out_type")
        return lambda variable: array(variable.read().shape, dtype)


@op
class DestroyResourceOp:
    """Clears a variable, which is then uninitialised.

    ignore_lookup_error: if false, fails if there is no variable.
    """

    signature = "DestroyResourceOp[ignore_lookup_error:bool = true](resource:resource) -> ()"
    shape = no_outputs
    writes_input = True
    gradient = _NO_GRADIENT
    examples = (Example([_X]),)
    failures = (Example([[1.0]], {"ignore_lookup_error": False}),)

    def kernel(k: KernelContext) -> Kernel:
        ignore = k.attr("ignore_lookup_error")

        def destroy(variable: RefVariable) -> None:
            if not ignore:
                variable.read()
            variable.value = None

        return destroy


def _merged_with_value(c: InferenceContext) -> None:
    c.merge(handle_shape(c), c.input(1))


def _wrong_type(k: KernelContext, variable: RefVariable) -> InvalidArgumentError:
    attr_dtype = k.attr("dtype")
    name = attr_dtype.text if isinstance(attr_dtype, DType) else repr(attr_dtype)
    return invalid(k, f"Trying to assign variable with wrong dtype. Expected {variable.dtype.text} got {name}")


@op
class AssignVariableOp:
    """Assigns `value` to a variable.

    validate_shape: if true, the value must have the variable's declared shape.
    """

    signature = "AssignVariableOp[dtype:type, validate_shape:bool = false](resource:resource, value:dtype) -> ()"
    shape = _merged_with_value
    takes_value = True
    writes_input = True
    gradient = _NO_GRADIENT
    examples = (Example([_X, _Y]),)
    failures = (
        f"""
        variable = VarHandleOp[dtype=float, shape=[2]]()
        three = {vector("float", 1, 2, 3)}
        hidden = PlaceholderWithDefault[dtype=float, shape=<unknown>](three)
        assign = AssignVariableOp[dtype=float, validate_shape=true](variable, hidden)
        """,
    )

    def kernel(k: KernelContext) -> Kernel:
        validate, dtype = k.attr("validate_shape"), k.attr("dtype")

        def assign(variable: RefVariable, value: Any) -> None:
            if variable.dtype is not dtype and type(variable) is not OtherType:
                raise _wrong_type(k, variable)
            if validate and type(variable) is not OtherType and not accepts_shape(variable, value.shape):
                raise invalid(
                    k,
                    f"Trying to assign to variable with tensor with wrong shape. Expected {shape_now(variable)} got {Shape(value.shape)}",
                )
            with variable.lock:  # not between the read and the write of an update
                variable.assign(value)

        return assign


def _update(name: str, ufunc: str, doc: str) -> None:
    """Register an op that combines a variable with `value` by that function of the array module."""

    @declares_traits(writes_input=True)
    def kernel(k: KernelContext) -> Kernel:
        combine, dtype = getattr(k.xp, ufunc), k.attr("dtype")

        def update(variable: RefVariable, value: Any) -> None:
            if variable.dtype is not dtype and type(variable) is not OtherType:
                raise _wrong_type(k, variable)
            with variable.lock:
                old = variable.shared.read() if type(variable) is OtherType else variable.read()
                if old.shape != value.shape:
                    raise invalid(
                        k,
                        f"Cannot update variable with shape {list(old.shape)} using a Tensor with shape {list(value.shape)}, "
                        "shapes must be equal.",
                    )
                if type(variable) is OtherType:
                    raise invalid(k, "DType of variable handle and value does not match.")
                variable.assign(combine(old, value))

        return update

    define_op(
        name,
        doc,
        signature=f"{name}[dtype:type](resource:resource, value:dtype) -> ()",
        shape=_merged_with_value,
        kernel=kernel,
        gradient=_NO_GRADIENT,
        examples=(Example([_X, _Y]),),
    )


_update("AssignAddVariableOp", "add", "Adds `value` to a variable.")
_update("AssignSubVariableOp", "subtract", "Subtracts `value` from a variable.")


@op
class ResourceGather:
    """The slices of a variable's value at `indices` along its first dimension.

    indices: any shape
    output: indices.shape + value.shape[1:]
    batch_dims: must be 0.
    """

    signature = (
        f"ResourceGather[batch_dims:int = 0, validate_indices:bool = true, dtype:type, Tindices:{INDEX}]"
        "(resource:resource, indices:Tindices) -> (output:dtype)"
    )
    reads_variable = "rows"
    # TensorFlow's gradient is a sparse update; this one is dense, with zeros in the other rows.
    gradient = """[batch_dims:int, validate_indices:bool, dtype:type, Tindices:type](resource:resource, indices:Tindices, dy:dtype) -> (dvalue:dtype, dindices:Tindices) {
      minus_one = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: -1>]()
      rows = ExpandDims[T=$Tindices](indices, minus_one)
      sizes = VariableShape[out_type=$Tindices](resource)
      dvalue = ScatterNd[T=$dtype, Tindices=$Tindices](rows, dy, sizes)
      dindices = ZerosLike[T=$Tindices](indices)
    }"""
    examples = (Example([_X, [1, 0, 1]], {"dtype": "float"}, differentiable=False),)

    def shape(c: InferenceContext) -> None:
        variable = c.with_rank_at_least(handle_shape(c), 1)
        c.set_output(0, c.concatenate(c.input(1), c.subshape(variable, 1)))

    def kernel(k: KernelContext) -> Kernel:
        if k.attr("batch_dims"):
            raise invalid(k, f"batch_dims must be 0, got {k.attr('batch_dims')!r}")

        def gather(variable: RefVariable, indices: Any) -> Any:
            value = variable.read()
            check_allocation((*indices.shape, *value.shape[1:]), value.dtype)
            return value.take(checked_indices(k, indices, value.shape[0]), 0)

        return gather
