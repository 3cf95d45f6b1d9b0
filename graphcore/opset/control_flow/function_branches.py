"""Ops that run one of several functions: If and Case, with state and without."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.attrs import Attrs, AttrValue, Func
from graphcore.definitions import ArgDef, AttrDef, FunctionDef, NodeDef, OpDef
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.inference.alternatives import common_shape
from graphcore.inference.shape_fns.common_shape_fns import explicit_shape, scalar_shape
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
from graphcore.opset.framework.block import NO_GRADIENT, Example, InferenceContext, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.numerics.tensor_list_values import TensorList
from graphcore.shapes import Shape

_TWICE: Final = "Twice(x:float) -> (y:float) {\n  y = Add[T=float](x, x)\n}"
_SQUARED: Final = "Squared(x:float) -> (y:float) {\n  y = Square[T=float](x)\n}"
_NEGATED: Final = "Negated(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n}"
_X: Final = [[1.0, -2.0], [3.0, 0.5]]
_TWICE_X: Final = [[2.0, -4.0], [6.0, 1.0]]
_SQUARED_X: Final = [[1.0, 4.0], [9.0, 0.25]]


def _if_shapes(c: InferenceContext) -> None:
    _branch_shapes(c, [branch for name in ("then_branch", "else_branch") if isinstance(branch := c.attrs.get(name), Func)])


def _case_shapes(c: InferenceContext) -> None:
    _branch_shapes(c, _branches(c.attrs))


def _branch_shapes(c: InferenceContext, branches: Sequence[Func]) -> None:
    declared = declared_shapes(c)
    if declared is not None:
        for i, shape in enumerate(declared):
            c.set_output(i, c.make_shape_from_shape(shape))
        return
    in_shapes, slots = c.inputs[1:], range(1, c.num_inputs)
    results = [c.function_outputs(branch.name, branch.attr, in_shapes, slots) for branch in branches]
    for i in range(c.num_outputs):
        shapes = [None if result is None or i >= len(result) else result[i][0] for result in results]
        c.set_output(i, c.unknown_shape() if None in shapes else common_shape([shape for shape in shapes if shape is not None]))


def _branches(attrs: Attrs) -> tuple[Func, ...]:
    value = attrs.get("branches")
    branches = tuple([item for item in value if isinstance(item, Func)]) if isinstance(value, tuple) else ()
    if not branches:
        raise InvalidArgumentError(f"Required at least one function in attr 'branches', got {value!r}", attr="branches")
    return branches


def _if_kernel(k: KernelContext) -> Kernel:
    inputs, outputs = k.input_types[1:], k.output_types
    chosen = [fitting(k, func_attr(k.attrs, name), inputs, outputs) for name in ("then_branch", "else_branch")]
    then, otherwise = chosen
    is_true = truth_of(k.input_types[0])

    def run(condition: Any, *inputs: Any) -> Any:
        return then(*inputs) if is_true(condition) else otherwise(*inputs)

    return run


def _case_kernel(k: KernelContext) -> Kernel:
    branches = [fitting(k, branch, k.input_types[1:], k.output_types) for branch in _branches(k.attrs)]
    last = len(branches) - 1

    def run(index: Any, *inputs: Any) -> Any:
        if index.shape:
            raise InvalidArgumentError(f"branch_index must be a scalar, got shape {list(index.shape)}", op=k.op, node=k.node_name)
        number = int(index)
        return branches[number if 0 <= number <= last else last](*inputs)

    return run


def _if_gradient(op_name: str, attrs: Attrs) -> FunctionDef:
    selector = attrs["Tcond"]
    assert isinstance(selector, DType)
    branches = {name: _gradient_branch(attrs, func_attr(attrs, name)) for name in ("then_branch", "else_branch")}
    return _gradient(op_name, attrs, selector, {"Tcond": selector, **branches})


def _case_gradient(op_name: str, attrs: Attrs) -> FunctionDef:
    return _gradient(op_name, attrs, dtypes.int32, {"branches": tuple([_gradient_branch(attrs, b) for b in _branches(attrs)])})


def _gradient_branch(attrs: Attrs, branch: Func) -> Func:
    in_types = (*types_attr(attrs, "Tin"), *types_attr(attrs, "Tout"))
    return Func("SymbolicGradient", {"f": branch, "Tin": in_types, "Tout": _gradient_types(types_attr(attrs, "Tin"))})


def _gradient_types(types: tuple[DType, ...]) -> tuple[DType, ...]:
    return tuple([dtypes.float32 if dtype is dtypes.resource else dtype for dtype in types])


def _gradient(op_name: str, attrs: Attrs, selector: DType, own: dict[str, AttrValue]) -> FunctionDef:
    """The gradient of a choice is the same choice among the gradients."""
    inputs, outputs = types_attr(attrs, "Tin"), types_attr(attrs, "Tout")
    kinds: list[tuple[str, str]] = [("Tin", "list(type)"), ("Tout", "list(type)")]
    selectors = [ArgDef(name="selector", type=selector)]
    signature = OpDef(
        name="_",
        input_arg=(*selectors, ArgDef(name="x", type_list_attr="Tin"), ArgDef(name="dy", type_list_attr="Tout")),
        output_arg=(ArgDef(name="dselector", type=selector), *_numbered("dx", _gradient_types(inputs))),
        attr=tuple([AttrDef(name=name, type=kind, has_minimum=True) for name, kind in kinds]),
    )
    nodes = [NodeDef("zeros", "ZerosLike", ("selector",), "", {"T": selector})]
    rets = {"dselector": "zeros:y:0"}
    if inputs:
        own |= {"Tin": (*inputs, *outputs), "Tout": _gradient_types(inputs), "output_shapes": ()}
        nodes.append(NodeDef("dx", op_name, ("selector", "x", "dy"), "", own))
        rets |= {f"dx{i}": f"dx:output:{i}" for i in range(len(inputs))}
    return FunctionDef(signature=signature, node_def=tuple(nodes), ret=rets)


def _numbered(name: str, types: tuple[DType, ...]) -> list[ArgDef]:
    return [ArgDef(name=f"{name}{i}", type=dtype) for i, dtype in enumerate(types)]


_IF: Final = (
    "[Tcond:type, Tin:list(type) >= 0, Tout:list(type) >= 0, then_branch:func, else_branch:func, output_shapes:list(shape) = []]"
    "(cond:Tcond, input:Tin) -> (output:Tout)"
)
_CASE: Final = (
    "[Tin:list(type) >= 0, Tout:list(type) >= 0, branches:list(func) >= 1, output_shapes:list(shape) = []]"
    "(branch_index:int32, input:Tin) -> (output:Tout)"
)
_IF_ATTRS: Final = {"Tout": ["float"], "then_branch": Func("Twice"), "else_branch": Func("Squared"), "output_shapes": [[2, 2]]}
_IF_EXAMPLES: Final = (
    Example([True, [_X]], _IF_ATTRS, outputs=[_TWICE_X], functions=(_TWICE, _SQUARED)),
    Example([0, [_X]], _IF_ATTRS, outputs=[_SQUARED_X], functions=(_TWICE, _SQUARED)),
)
_CASE_ATTRS: Final = {"Tout": ["float"], "branches": [Func("Twice"), Func("Squared"), Func("Negated")], "output_shapes": [[2, 2]]}
_CASE_EXAMPLES: Final = (
    Example([0, [_X]], _CASE_ATTRS, outputs=[_TWICE_X], functions=(_TWICE, _SQUARED, _NEGATED)),
    Example([-1, [_X]], _CASE_ATTRS, outputs=[[[-1.0, 2.0], [-3.0, -0.5]]], functions=(_TWICE, _SQUARED, _NEGATED)),
)


with_stateless_variant(
    "If",
    """Runs `then_branch` or `else_branch` on `input`; they {state}.

    cond: true are a number other than 0, a string that is not empty, and a tensor of another rank with elements.
    input: the arguments of the branch.
    output: the results of the branch.
    Tin: the types of the inputs.
    Tout: the types of the outputs.
    then_branch: a function of the inputs.
    else_branch: a function of the inputs.
    output_shapes: the shapes of the outputs, as far as they are known.
    """,
    _IF,
    lambda name: partial(_if_gradient, name),
    shape=_if_shapes,
    kernel=_if_kernel,
    examples=_IF_EXAMPLES,
    failures=(
        Example(
            [True, [NO_INVERSE]],
            {"Tout": ["float"], "then_branch": Func("Inverse"), "else_branch": Func("Inverse")},
            functions=(INVERSE,),
        ),
    ),
)
with_stateless_variant(
    "Case",
    """Runs one of `branches` on `input`; they {state}.

    branch_index: the index of the branch; one out of range selects the last.
    input: the arguments of the branch.
    output: the results of the branch.
    Tin: the types of the inputs.
    Tout: the types of the outputs.
    branches: functions of the inputs.
    output_shapes: the shapes of the outputs, as far as they are known.
    """,
    _CASE,
    lambda name: partial(_case_gradient, name),
    shape=_case_shapes,
    kernel=_case_kernel,
    examples=_CASE_EXAMPLES,
    failures=(Example([0, [NO_INVERSE]], {"Tout": ["float"], "branches": [Func("Inverse")]}, functions=(INVERSE,)),),
)


@op
class FakeParam:
    """Stands for a value of another branch; nothing reads it.

    dtype: its type.
    shape: its shape, as far as it is known.
    """

    signature = "FakeParam[dtype:type, shape:shape]() -> (output:dtype)"
    shape = explicit_shape
    can_fail = False
    gradient = no_registered_gradient("it depends on nothing")
    examples = (Example([], {"dtype": "float", "shape": [2, 0]}, outputs=[[[], []]]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype, shape = k.attr("dtype"), k.attr("shape")
        assert isinstance(dtype, DType)
        assert isinstance(shape, Shape)
        if dtype.as_numpy is None:
            return lambda: TensorList(dtypes.float32)
        value = np.zeros([size or 0 for size in shape.as_list()] if shape.rank is not None else [0], dtype.as_numpy)
        return lambda: value


@op
class ToBool:
    """The truth value of the input.

    True are a number other than 0, a string that is not empty, and a tensor of another rank with elements.
    """

    pure = True
    signature = "ToBool[T:type](input:T) -> (output:bool)"
    shape = scalar_shape
    can_fail = False
    gradient = NO_GRADIENT
    examples = (Example([0.5], outputs=[True]), Example([[0.0]], outputs=[True]), Example([b""], outputs=[False]))

    def kernel(k: KernelContext) -> Kernel:
        is_true = truth_of(k.input_types[0])
        return lambda value: np.bool_(is_true(value))
