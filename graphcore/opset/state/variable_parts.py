"""Updating rows and other parts of variables: each rule makes the ops on references and on resources."""

from __future__ import annotations

from typing import Any, Final

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, tensor_scatter_shape
from graphcore.kernel_context import RefVariable
from graphcore.opset.arrays.gathering import checked_indices
from graphcore.opset.arrays.scattering import PART_EXAMPLES, scattered
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op, no_registered_gradient, not_differentiable
from graphcore.opset.framework.kernels import combining_at, invalid
from graphcore.opset.framework.type_sets import INDEX, NUMBER
from graphcore.opset.state.resource_variables import handle_shape
from graphcore.registry import KernelFactory
from graphcore.traits import declares_traits

_CHANGES_STATE: Final = "it changes state; differentiate the value that is scattered instead"
_STOPS: Final = {"Add", "Sub", "Mul", "Div"}
"""The rules that TensorFlow registers as not differentiable; it has nothing registered for the others."""
_NO_RESOURCE_GRADIENT: Final = no_registered_gradient("it changes state; differentiate the value that is assigned instead")
_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]
_REF_ARGS: Final = "(ref:Ref(T), indices:Tindices, updates:T) -> (output_ref:Ref(T))"
_FEW: Final = "{half, bfloat16, float, double, int32, int64}"


def _rows_kernel(combine: str | None) -> KernelFactory:
    """Replace rows, or combine them with updates by a ufunc.

    A repeated row is combined repeatedly; a scalar update applies to all rows.
    """

    @declares_traits(writes_input=True)
    def kernel(k: KernelContext) -> Kernel:
        at, returns_variable = None if combine is None else combining_at(k.xp, combine), bool(k.output_types)

        def scatter(variable: RefVariable, indices: Any, updates: Any) -> RefVariable | None:
            with variable.lock:
                changed = variable.read().copy()
                checked_indices(k, indices, changed.shape[0])
                wanted = indices.shape + changed.shape[1:]
                if updates.ndim and updates.shape != wanted:
                    raise invalid(k, f"updates must have shape {list(wanted)} or [], got {list(updates.shape)}")
                if at is None:
                    changed[indices] = updates
                else:
                    at(changed, indices, updates)
                variable.assign(changed)
            return variable if returns_variable else None

        return scatter

    return kernel


def _rows_shape(c: InferenceContext) -> None:
    variable, indices, updates = c.input(0), c.input(1), c.input(2)
    rest = c.subshape(c.with_rank_at_least(variable, 1), 1)
    if c.rank(updates) != 0:
        c.merge(updates, c.concatenate(indices, rest))
    c.set_output(0, variable)


def _resource_rows_shape(c: InferenceContext) -> None:
    variable = c.with_rank_at_least(handle_shape(c), 1)
    c.merge(c.input(2), c.concatenate(c.input(1), c.subshape(variable, 1)))


def _rows(
    rule: str,
    combine: str | None,
    summary: str,
    types: str = NUMBER,
    resource_types: str = NUMBER,
    *,
    use_locking: str = "false",
    repeats: bool = True,
    stateful: bool = False,
) -> None:
    """Register the two ops that update rows by a rule.

    Args:
        rule: the name of the ops after `Scatter`.
        combine: the ufunc for rows and updates, None to replace the rows.
        summary: the first sentence of the docs, with `{}` for the variable.
        types: the types of the op on references.
        resource_types: the types of the op on resources, empty if there is none.
        use_locking: the default of this attr of the op on references.
        repeats: False if a repeated row would make the result of the example depend on the order.
        stateful: True if the op on resources is declared stateful.
    """
    name = f"Scatter{rule}"
    define_op(
        name,
        f"""{summary.format("a variable")}

        ref: the variable
        indices: the rows, any shape
        updates: indices.shape + the variable's shape[1:], or a scalar
        output_ref: the variable, after the change
        """,
        signature=f"{name}[T:{types}, Tindices:{INDEX}, use_locking:bool = {use_locking}]{_REF_ARGS}",
        shape=_rows_shape,
        kernel=_rows_kernel(combine),
        gradient=(not_differentiable if rule in _STOPS else no_registered_gradient)(_CHANGES_STATE),
        examples=(Example([[*_X, [4.0, 5.0, 6.0]], [0, 2], [[10.0, 20.0, 30.0], [0.5, 0.25, 0.125]]]),),
    )
    if resource_types:
        define_op(
            f"Resource{name}",
            f"""{summary.format("a variable's value")}

            indices: the rows
            updates: indices.shape + value.shape[1:]
            """,
            signature=f"Resource{name}[dtype:{resource_types}, Tindices:{INDEX}](resource:resource, indices:Tindices, updates:dtype) -> ()",
            stateful=stateful,
            shape=_resource_rows_shape,
            kernel=_rows_kernel(combine),
            gradient=_NO_RESOURCE_GRADIENT,
            examples=(Example([_X, [1, 1], [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]]) if repeats else Example([_X, [1], [[1.0, 2.0, 3.0]]]),),
        )


_rows("Update", None, "Replaces rows of {}.", "type", "type", use_locking="true", repeats=False)
_rows("Add", "add", "Adds to rows of {}.")
_rows("Sub", "subtract", "Subtracts from rows of {}.")
_rows("Mul", "multiply", "Multiplies rows of {}.", stateful=True)
_rows("Div", "divide", "Divides rows of {}.", resource_types="")
_rows("Min", "minimum", "Takes the minimum of rows of {} and the updates.", _FEW, stateful=True)
_rows("Max", "maximum", "Takes the maximum of rows of {} and the updates.", _FEW, stateful=True)


def _parts(rule: str, combine: str | None, summary: str, types: str = NUMBER, *, use_locking: str = "false") -> None:
    """Register the op that updates parts of a reference variable, at positions in some of its dimensions."""

    @declares_traits(writes_input=True)
    def kernel(k: KernelContext) -> Kernel:
        def scatter(ref: RefVariable, indices: Any, updates: Any) -> RefVariable:
            with ref.lock:
                ref.assign(scattered(k, ref.read(), indices, updates, combine))
            return ref

        return scatter

    name = f"ScatterNd{rule}"
    define_op(
        name,
        f"""{summary}

        ref: the variable
        indices: [..., k], each row a position in the first k dimensions
        updates: indices.shape[:-1] + the variable's shape[k:]
        output_ref: the variable, after the change
        """,
        signature=f"{name}[T:{types}, Tindices:{INDEX}, use_locking:bool = {use_locking}, bad_indices_policy:string = '']{_REF_ARGS}",
        shape=tensor_scatter_shape,
        kernel=kernel,
        gradient=not_differentiable(_CHANGES_STATE),
        examples=PART_EXAMPLES,
    )

    @declares_traits(writes_input=True)
    def resource_kernel(k: KernelContext) -> Kernel:
        scatter = kernel(k)

        def scatter_parts(variable: RefVariable, indices: Any, updates: Any) -> None:
            scatter(variable, indices, updates)

        return scatter_parts

    define_op(
        f"Resource{name}",
        f"""{summary}

        indices: [..., k], each row a position in the first k dimensions
        updates: indices.shape[:-1] + the variable's shape[k:]
        """,
        signature=f"Resource{name}[T:type, Tindices:{INDEX}, use_locking:bool = true, bad_indices_policy:string = '']"
        "(ref:resource, indices:Tindices, updates:T) -> ()",
        stateful=True,
        shape=no_outputs,
        kernel=resource_kernel,
        gradient=_NO_RESOURCE_GRADIENT,
        examples=(*PART_EXAMPLES, Example([[True, True, False, False], [[0], [1], [2], [3], [1]], [True, False, True, False, True]])),
    )


_parts("Update", None, "Replaces parts of a variable.", "type", use_locking="true")
_parts("Add", "add", "Adds to parts of a variable.")
_parts("Sub", "subtract", "Subtracts from parts of a variable.")
