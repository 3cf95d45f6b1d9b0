"""Registered gradients and functions of data files: round trips through text, fitting signatures."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.errors import InvalidArgumentError, NotFoundError
from tests.graphcore.opset.op_cases import REFUSED_GRADIENTS, Case, all_cases, constants
from tests.support.op_checks import checked_for

pytestmark = pytest.mark.sweep

DATA = Path(__file__).parents[2] / "data"
REFUSES = "PreventGradient"  # its gradient function is an intended error
PLAIN: dict[str, AttrValue] = {
    "type": gc.float32,
    "list(type)": (gc.float32,),
    "int": 1,
    "func": gc.Func("Square", {"T": gc.float32}),
    "shape": gc.Shape([2]),
    "list(int)": (1,),
    "string": b"",
}
EXAMPLES = [case for case in all_cases() if case.entry.gradient is not None and case.op_def.name != REFUSES]
CASES = [case for case in EXAMPLES if case.runs and not case.takes_variable and case.id not in REFUSED_GRADIENTS]
NOT_BUILT = [case for case in EXAMPLES if not case.runs or case.takes_variable]


def node_of(case: Case) -> gc.Node:
    with gc.Graph().as_default():
        return case.build_plain(constants(case.arrays))


def gradient_of(case: Case, node: gc.Node) -> gc.FunctionDef:
    assert case.entry.gradient is not None
    return case.entry.gradient(node.node_def.attr)


def attrs_of(case: Case) -> dict[str, AttrValue]:
    """A value for every attr: the example's, the default, or a simple one."""
    defaults = {attr.name: attr.default_value for attr in case.op_def.attr if attr.default_value is not None}
    plain = {attr.name: PLAIN[attr.type] for attr in case.op_def.attr if attr.name not in defaults and attr.type in PLAIN}
    given = gc.FunctionDefHelper.Node(["n"], case.op_def.name, attr=dict(case.attrs)).to_node_def().attr
    types = {attr.name for attr in case.op_def.attr if attr.type in {"type", "list(type)"}}
    return {**plain, **defaults, **{name: value for name, value in given.items() if name not in types}}


def assert_reads_back(function: gc.FunctionDef) -> None:
    assert gc.parse_function(gc.debug_string(function)) == function


@checked_for(NOT_BUILT)
def the_gradient_of_an_op_on_handles_reads_back_from_its_text(case: Case) -> None:
    assert case.entry.gradient is not None
    assert_reads_back(case.entry.gradient(attrs_of(case)))


@checked_for(CASES)
def a_gradient_reads_back_and_takes_inputs_and_output_gradients_and_gives_input_gradients(case: Case) -> None:
    node = node_of(case)
    function = gradient_of(case, node)
    assert_reads_back(function)
    assert not function.signature.is_stateful or case.op_def.is_stateful
    result = gc.instantiate_function(function, node.node_def.attr)
    types = [dtype.base for dtype in node.input_types]
    assert result.arg_types == types + [dtype.base for dtype in node.output_types]
    assert result.ret_types == types
    assert gc.debug_string(gc.parse_nodes(gc.debug_string(result.nodes))) == gc.debug_string(result.nodes)


def test_f11_the_gradient_of_add() -> None:
    function = gc.get_op_gradient_creator("Add")
    assert function is not None
    definition = function({"T": gc.float32})
    body = gc.debug_string(gc.instantiate_function(definition, {"T": gc.float32}).nodes)
    assert (
        body
        == """
(x:float, y:float, dz:float) -> (dx:float, dy:float) {
  sx = Shape[T=float, out_type=int32](x)
  sy = Shape[T=float, out_type=int32](y)
  gx = Identity[T=float](dz)
  gy = Identity[T=float](dz)
  rx = BroadcastGradientArgs[T=int32](sx, sy)
  sum_gx = Sum[T=float, Tidx=int32, keep_dims=false](gx, rx)
  dx = Reshape[T=float, Tshape=int32](sum_gx, sx)
  sum_gy = Sum[T=float, Tidx=int32, keep_dims=false](gy, rx:1)
  dy = Reshape[T=float, Tshape=int32](sum_gy, sy)
}
"""
    )


def test_f7_a_second_gradient_for_an_op_is_refused() -> None:
    with pytest.raises(gc.errors.AlreadyExistsError, match="Duplicated gradient for Add"):
        gc.register_op_gradient("Add", lambda _: gc.parse_function("f() -> () {}"))
    with pytest.raises(gc.errors.AlreadyExistsError, match="Duplicated gradient for Shape"):
        gc.register_op_no_gradient("Shape")


def test_f7_looking_for_a_gradient_that_is_not_there_says_so() -> None:
    with pytest.raises(gc.errors.NotFoundError, match="No gradient defined for op: SurelyNoSuchOp"):
        gc.get_op_gradient_creator("SurelyNoSuchOp")


def test_f7_no_gradient_is_a_null_creator() -> None:
    assert gc.get_op_gradient_creator("Shape") is None


def test_a_gradient_that_is_forbidden_says_why() -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        y = gc.ops.prevent_gradient(x, message="not yet")
        with pytest.raises(InvalidArgumentError, match=r"Gradient explicitly disabled\. Reason: not yet"):
            gc.gradients(y, x)


@pytest.mark.parametrize("op", ["Mul", "MulNoNan", "Pow", "MatMul", "BatchMatMul", "BatchMatMulV2"])
def test_f7_a_gradient_that_depends_on_the_type_must_be_told_it(op: str) -> None:
    creator = gc.get_op_gradient_creator(op)
    assert creator is not None
    with pytest.raises(NotFoundError, match="No attr named 'T' in NodeDef:"):
        creator({})
    with pytest.raises(NotFoundError, match="No attr named 'T' in NodeDef:"):
        gc.InstantiatedFunctions(gc.FunctionLibraryDefinition()).body_of("SymbolicGradient", {"f": gc.Func(op)})
    assert creator({"T": gc.float32}).signature.name


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pb")), ids=lambda path: path.stem)
def test_functions_of_graphs_made_by_tensorflow_read_back_from_their_text(path: Path) -> None:
    library = gc.load(path, allow_unknown_ops=True).library
    for function in library:
        again = gc.parse_function(gc.debug_string(function, library.look_up_op_def), library.look_up_op_def)
        assert again == function
    assert len(library) > 0 or path.stem != "functions_v2"
