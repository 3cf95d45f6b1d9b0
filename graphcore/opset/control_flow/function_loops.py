"""Ops that run a function repeatedly: While, with state and without."""

from __future__ import annotations

from typing import Any, Final

from graphcore.attrs import Attrs, Func
from graphcore.errors import InvalidArgumentError
from graphcore.inference import ShapeHandle
from graphcore.inference.alternatives import relaxed_shape
from graphcore.opset.control_flow.function_calls import (
    INVERSE,
    NO_INVERSE,
    declared_shapes,
    fitting,
    func_attr,
    truth_of,
    types_attr,
    with_stateless_variant,
)
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.gradient_text import scalar

_BELOW_TEN: Final = f"BelowTen(x:float) -> (y:bool) {{\n  ten = {scalar('float', '10')}\n  y = Less[T=float](x, ten)\n}}"
_DOUBLED: Final = "Doubled(x:float) -> (y:float) {\n  y = Add[T=float](x, x)\n}"


def _loop_shapes(c: InferenceContext) -> None:
    shapes = declared_shapes(c)
    loop_shapes = _invariant_shapes(c) if shapes is None else [c.make_shape_from_shape(shape) for shape in shapes]
    for i in range(c.num_outputs):
        c.set_output(i, loop_shapes[i])
        data = c.input_handle_shapes_and_types(i)
        if data is not None:
            c.set_output_handle_shapes_and_types(i, data)


def _invariant_shapes(c: InferenceContext) -> list[ShapeHandle]:
    """The shapes of the inputs, relaxed by those after an iteration."""
    body, shapes = c.attrs.get("body"), list(c.inputs)
    # Handles stay what they are in all rounds, other values may change.
    slots = [None if c.input_handle_shapes_and_types(i) is None else i for i in range(len(shapes))]
    while isinstance(body, Func):
        results = c.function_outputs(body.name, body.attr, shapes, slots)
        if results is None or len(results) != len(shapes):
            break
        relaxed = [relaxed_shape(old, new, c.inputs) for old, (new, _) in zip(shapes, results, strict=True)]
        if all(a is b for a, b in zip(shapes, relaxed, strict=True)):
            break
        shapes = relaxed
    return shapes


def _condition(k: KernelContext) -> tuple[Kernel, Any]:
    func = func_attr(k.attrs, "cond")
    kernel = fitting(k, func, types_attr(k.attrs, "T"), None)
    assert k.functions is not None
    ret_types = k.functions.function_types(func.name, func.attr)[1]
    if len(ret_types) != 1:
        raise InvalidArgumentError(
            f"Expected a single scalar which can be converted to a boolean, got {len(ret_types)} tensors.", op=k.op, node=k.node_name
        )
    return kernel, truth_of(ret_types[0])


def _loop_kernel(k: KernelContext) -> Kernel:
    types = types_attr(k.attrs, "T")
    condition, is_true = _condition(k)
    body = fitting(k, func_attr(k.attrs, "body"), types, types)
    if len(types) == 1:

        def run_one(value: Any) -> Any:
            while is_true(condition(value)):
                value = body(value)
            return value

        return run_one

    def run(*values: Any) -> Any:
        while is_true(condition(*values)):
            values = body(*values)
        return tuple(values) if types else None

    return run if types else lambda: _without_values(condition, is_true, body)


def _without_values(condition: Kernel, is_true: Any, body: Kernel) -> None:
    while is_true(condition()):
        body()


def _loop_gradient(attrs: Attrs) -> str:
    types = types_attr(attrs, "T")
    if not types:
        raise InvalidArgumentError("A loop without values has no gradient")
    return """[T:list(type), cond:func, body:func](x:T, dy:T) -> (dx:T) {
      dx = _WhileGradient[T=$T, cond=$cond, body=$body](x, dy)
    }"""


def _gradient_kernel(k: KernelContext) -> Kernel:
    types = types_attr(k.attrs, "T")
    condition, is_true = _condition(k)
    func = func_attr(k.attrs, "body")
    body = fitting(k, func, types, types)
    in_types = (*types, *types)
    back = fitting(k, Func("SymbolicGradient", {"f": func, "Tin": in_types, "Tout": types}), in_types, types)
    count = len(types)

    def run(*values: Any) -> Any:
        state, gradients = values[:count], values[count:]
        steps = []
        while is_true(condition(*state)):
            steps.append(state)
            state = _as_tuple(body(*state), count)
        for step in reversed(steps):
            gradients = _as_tuple(back(*step, *gradients), count)
        return gradients if count > 1 else gradients[0]

    return run


def _as_tuple(result: Any, count: int) -> tuple[Any, ...]:
    return (result,) if count == 1 else tuple(result)


with_stateless_variant(
    "While",
    """Runs `body` on `input`, then on its own outputs, while `cond` is true; both {state}.

    input: the initial values.
    output: the results of the last iteration.
    T: the types of the loop variables.
    cond: a function of the loop variables to a condition; true as for If.
    body: a function of the loop variables to values of the same types.
    output_shapes: the shapes of the outputs; those of the inputs by default.
    parallel_iterations: the number of iterations that may overlap if the loop is lowered.
    """,
    "[T:list(type) >= 0, cond:func, body:func, output_shapes:list(shape) = [], parallel_iterations:int = 10](input:T) -> (output:T)",
    lambda _: _loop_gradient,
    shape=_loop_shapes,
    kernel=_loop_kernel,
    examples=(
        Example([[3.0]], {"cond": Func("BelowTen"), "body": Func("Doubled")}, outputs=[12.0], functions=(_BELOW_TEN, _DOUBLED)),
        Example([[30.0]], {"cond": Func("BelowTen"), "body": Func("Doubled")}, outputs=[30.0], functions=(_BELOW_TEN, _DOUBLED)),
    ),
    failures=(Example([[NO_INVERSE]], {"cond": Func("BelowTen"), "body": Func("Inverse")}, functions=(_BELOW_TEN, INVERSE)),),
)


def _gradient_shapes(c: InferenceContext) -> None:
    for i in range(c.num_outputs):
        c.set_output(i, c.input(i))


@op
class _WhileGradient:
    """The gradients of a loop's initial values, from those of its results.

    Runs the loop once more, keeping the loop variables, and then backwards through the gradient of its body.

    input: the initial values.
    dy: the gradients of the results.
    output: the gradients of `input`.
    T: the types of the loop variables.
    cond: the condition.
    body: one iteration.
    """

    signature = "_WhileGradient[T:list(type), cond:func, body:func](input:T, dy:T) -> (output:T)"
    shape = _gradient_shapes
    kernel = _gradient_kernel
    gradient = no_registered_gradient("gc.gradients builds the gradient of a loop as a loop, which can be differentiated again")
    examples = (
        Example([[3.0], [1.0]], {"cond": Func("BelowTen"), "body": Func("Doubled")}, outputs=[4.0], functions=(_BELOW_TEN, _DOUBLED)),
    )
    failures = (
        Example([[NO_INVERSE], [NO_INVERSE]], {"cond": Func("BelowTen"), "body": Func("Inverse")}, functions=(_BELOW_TEN, INVERSE)),
    )
