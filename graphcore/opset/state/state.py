"""Reference variables: their storage, and the ops that assign to it.

Values are never changed in place: an assignment replaces the array, so that values read before are unaffected.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.errors import InternalError, InvalidArgumentError
from graphcore.inference.shape_fns.common_shape_fns import merge_both_inputs
from graphcore.kernel_context import RefVariable
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, define_op, not_differentiable, op
from graphcore.opset.framework.gradient_text import vector
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import NUMBER
from graphcore.registry import ShapeFn
from graphcore.shapes import Shape, as_shape
from graphcore.traits import declares_traits

_NO_GRADIENT: Final = not_differentiable("it changes state; differentiate the value that is assigned instead")
_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]
_Y: Final = [[0.5, 0.5, 0.5], [1.0, 1.0, 1.0]]


def _variable(name: str, doc: str, shape: ShapeFn) -> None:
    """Register an op that holds a variable."""

    @declares_traits(memory="held")
    def kernel(k: KernelContext) -> Kernel:
        name, dtype = attr_text(k.attr("shared_name")) or k.node_name, k.output_types[0].base
        variable = k.resources.variable(attr_text(k.attr("container")), name, dtype, as_shape(k.attr("shape")), k.source, k.op, k.node_name)
        if variable.dtype is not dtype:
            raise InternalError(
                f"Output 0 of type {variable.dtype.text}_ref does not match declared output type {dtype.text}_ref for node "
                f"{{{{node {k.node_name}}}}}: '{name}' is the variable of '{variable.owner}'"
                f"{f', made in {variable.source}' if variable.source else ''}",
                op=k.op,
                node=k.node_name,
                source=k.source,
            )
        return lambda: variable

    define_op(
        name,
        f"""{doc}

        shape: the shape of the values; unknown dimensions are allowed.
        dtype: their type.
        container: a namespace for `shared_name`.
        shared_name: nodes with the same shared name share a variable; the node's name by default.
        """,
        signature=f"{name}[shape:shape, dtype:type, container:string = '', shared_name:string = '']() -> (ref:Ref(dtype))",
        shape=shape,
        role="variable",
        holds_parameters=True,
        stateful=True,
        kernel=kernel,
        gradient=_NO_GRADIENT,
        examples=(Example([], {"shape": Shape([2, 3]), "dtype": "float"}),),
        failures=(
            f"""
            first = {name}[dtype=float, shape=[2], shared_name="shared"]()
            second = {name}[dtype=int32, shape=[2], shared_name="shared"]() @ first
            """,
        ),
    )


def _declared_shape(c: InferenceContext) -> None:
    c.set_output(0, c.make_shape_from_shape(as_shape(c.attr("shape"))))


def _old_declared_shape(c: InferenceContext) -> None:
    shape = as_shape(c.attr("shape"))
    c.set_output(0, c.make_shape_from_shape(shape) if shape.rank else c.unknown_shape())


_variable("VariableV2", "A variable with the lifetime of the session, uninitialised at first.", _declared_shape)
_variable("Variable", "A variable of old graphs (see VariableV2); an empty shape means an unknown one.", _old_declared_shape)


def shape_now(variable: RefVariable) -> Shape:
    """The shape of a variable's value, or the declared one if it is uninitialised or partly unknown."""
    value = variable.value
    return variable.shape if value is None or not variable.shape.is_fully_defined else Shape(value.shape)


def accepts_shape(variable: RefVariable, shape: tuple[int, ...]) -> bool:
    """True if a value of `shape` may replace the variable's value, according to its declaration."""
    value = variable.value
    return (value is not None and value.shape == shape) or shape_now(variable).is_compatible_with(Shape(shape))


@op
class IsVariableInitialized:
    """True if the variable is initialised."""

    signature = "IsVariableInitialized[dtype:type](ref:Ref(dtype)) -> (is_initialized:bool)"
    allows_uninitialized_input = True
    can_fail = False
    gradient = _NO_GRADIENT
    examples = (Example([_X], outputs=[True]), Example([None], {"dtype": "float"}, outputs=[False]))

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.scalar())

    def kernel(k: KernelContext) -> Kernel:
        def is_initialized(ref: RefVariable) -> Any:
            return np.bool_(ref.value is not None)

        return is_initialized


@op
class Assign:
    """Assigns `value` to a variable.

    ref: the variable
    output_ref: the variable, after the assignment
    validate_shape: if true, the value must have the variable's shape.
    """

    signature = "Assign[T:type, validate_shape:bool = true, use_locking:bool = true](ref:Ref(T), value:T) -> (output_ref:Ref(T))"
    takes_value = True
    allows_uninitialized_input = True
    writes_input = True
    gradient = _NO_GRADIENT
    examples = (Example([_Y, _X], outputs=[_X]), Example([_X, [1.0, 2.0]], {"validate_shape": False}))
    failures = (
        f"""
        variable = VariableV2[dtype=float, shape=[2]]()
        three = {vector("float", 1, 2, 3)}
        hidden = PlaceholderWithDefault[dtype=float, shape=<unknown>](three)
        assign = Assign[T=float](variable, hidden)
        """,
    )

    def shape(c: InferenceContext) -> None:
        if c.attr("validate_shape"):
            try:
                c.set_output(0, c.merge(c.input(0), c.input(1)))
            except InvalidArgumentError as error:
                shape = c.input(0)
                raise error.advise(
                    f"Assign a value of the shape {shape}: a variable keeps its shape.",
                    required=f"a value of shape {shape}",
                    came=f"one of shape {c.input(1)}",
                ) from None
        else:
            c.set_output(0, c.input(1))

    def kernel(k: KernelContext) -> Kernel:
        validate = k.attr("validate_shape")

        def assign(ref: RefVariable, value: Any) -> RefVariable:
            if validate and not accepts_shape(ref, value.shape):
                raise invalid(
                    k, f"Assign requires shapes of both tensors to match. lhs shape= {shape_now(ref)} rhs shape= {Shape(value.shape)}"
                ).advise(
                    f"Assign a value of the shape {shape_now(ref)}; a checkpoint fits a model of the same shapes only.",
                    required=f"a value of shape {shape_now(ref)}",
                    came=f"one of shape {Shape(value.shape)}",
                )
            with ref.lock:  # not between the read and the write of an update
                ref.assign(value)
            return ref

        return assign


def _update(name: str, ufunc: str, doc: str) -> None:
    """Register an op that combines a variable with `value` by that function of the array module."""

    @declares_traits(writes_input=True, memory="held")
    def kernel(k: KernelContext) -> Kernel:
        combine = getattr(k.xp, ufunc)

        def update(ref: RefVariable, value: Any) -> RefVariable:
            with ref.lock:
                old = ref.read()
                if old.shape != value.shape:
                    raise invalid(
                        k, f"Parameters and update must be the same size: lhs shape= {list(old.shape)} rhs shape= {list(value.shape)}"
                    )
                ref.assign(combine(old, value))
            return ref

        return update

    define_op(
        name,
        f"""{doc}

        ref: the variable
        output_ref: the variable, after the update
        """,
        signature=f"{name}[T:{NUMBER}, use_locking:bool = false](ref:Ref(T), value:T) -> (output_ref:Ref(T))",
        shape=merge_both_inputs,
        kernel=kernel,
        gradient=_NO_GRADIENT,
        examples=(Example([_X, _Y]),),
    )


_update("AssignAdd", "add", "Adds `value` to a variable.")
_update("AssignSub", "subtract", "Subtracts `value` from a variable.")
