"""The function library: the rules F6."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from graphcore.attrs import Func
from graphcore.definitions import FunctionDef, FunctionDefLibrary, GradientDef, GraphDef, NodeDef
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.functions import FunctionDefHelper, FunctionLibraryDefinition, define_function
from graphcore.graph import Node
from graphcore.text import parse_function
from tests.graphcore.functions.example_ops import op_def, registry
from tests.support.shape_rows import assert_row, infer

NUMBERS = "T: {float, double, int32, int64}"


def x_times_two() -> FunctionDef:
    text = """XTimesTwo[T:{float, double, int32, int64}](x:T) -> (y:T) {
      two = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 2>]()
      scale = Cast[SrcT=int64, DstT=$T](two)
      y = Mul[T=$T](x, scale)
    }"""
    return define_function(text, look_up=op_def)


def calling(name: str, callee: str) -> FunctionDef:
    nodes = [(["x2"], callee, ["x"], {"T": "$T"}), (["y"], callee, ["x2:y:0"], {"T": "$T"})]
    return FunctionDefHelper.create(name, ["x: T"], ["y: T"], [NUMBERS], nodes, {"y": "y:y:0"})


def named(name: str, body: str = "") -> FunctionDef:
    return parse_function(f"{name}() -> () {{\n{body}\n}}", op_def)


def library(*functions: FunctionDef) -> FunctionLibraryDefinition:
    made = FunctionLibraryDefinition(registry)
    for function in functions:
        made.add_function_def(function)
    return made


def contents(lib: FunctionLibraryDefinition) -> FunctionDefLibrary:
    return lib.to_proto()


def test_f6_a_function_is_found_by_its_name() -> None:
    lib = library(x_times_two())
    assert lib.contains("XTimesTwo")
    assert "XTimesTwo" in lib
    assert not lib.contains("XTimes16")
    assert lib.find("XTimesTwo") == x_times_two()
    assert lib.find("XTimes16") is None
    assert lib.num_functions == len(lib) == 1
    assert lib.list_function_names() == [function.name for function in lib] == ["XTimesTwo"]


def test_f6_a_function_is_looked_up_as_an_op_with_unknown_shapes() -> None:
    entry = library(x_times_two()).look_up("XTimesTwo")
    assert entry.op_def == x_times_two().signature
    assert entry.is_function
    assert entry.shape_fn is not None
    assert_row(infer(entry.shape_fn, "[1,2]"), "?")


def test_f6_ops_of_the_registry_behind_are_looked_up_too() -> None:
    lib = library(x_times_two())
    assert lib.look_up_op_def("Mul") is op_def("Mul")
    assert not lib.look_up("Mul").is_function
    with pytest.raises(NotFoundError, match="Op type not registered 'XTimes16'"):
        lib.look_up_op_def("XTimes16")


def test_f6_an_equal_function_or_gradient_may_be_added_again() -> None:
    lib = library(x_times_two(), x_times_two())
    gradient = GradientDef("XTimesTwo", "XTimesFour")
    lib.add_gradient_def(gradient)
    lib.add_gradient_def(gradient)
    assert lib.find_gradient("XTimesTwo") == "XTimesFour"
    assert lib.find_gradient("XTimesFour") == ""
    assert contents(lib) == FunctionDefLibrary((x_times_two(),), (gradient,))


def test_f6_clear_empties_the_library() -> None:
    lib = library(x_times_two())
    lib.add_gradient_def(GradientDef("XTimesTwo", "XTimesFour"))
    lib.clear()
    assert contents(lib) == FunctionDefLibrary()
    assert lib.find_gradient("XTimesTwo") == ""


def test_f6_a_unique_name_has_the_smallest_number_not_in_use() -> None:
    assert library().unique_function_name("Foo_") == "Foo_0"
    assert library(named("Foo_0"), named("Foo_2")).unique_function_name("Foo_") == "Foo_1"


def test_f6_of_several_definitions_in_a_proto_the_last_silently_wins() -> None:
    first, second = named("F"), named("F", "a = NoOp()")
    gradients = (GradientDef("F", "G"), GradientDef("F", "H"))
    lib = FunctionLibraryDefinition(registry, FunctionDefLibrary((first, second), gradients))
    assert lib.find("F") == second
    assert lib.find_gradient("F") == "H"


Change = Callable[[FunctionLibraryDefinition], None]
SAME_NAME = "Cannot add function 'XTimesTwo' because a different function with the same name already exists."
AN_OP = "Cannot add function 'Add' because an op with the same name already exists."
SECOND_GRADIENT = "Cannot assign gradient function 'XTimes16' to 'XTimesTwo' because it already has gradient function 'XTimesFour'"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda lib: lib.add_function_def(named("Add")), AN_OP, id="F6 op"),
        pytest.param(lambda lib: lib.add_function_def(named("XTimesTwo")), SAME_NAME, id="F6 function"),
        pytest.param(lambda lib: lib.add_gradient_def(GradientDef("XTimesTwo", "XTimes16")), SECOND_GRADIENT, id="F6 gradient"),
        pytest.param(lambda lib: lib.remove_function("XTimes16"), "Tried to remove non-existent function 'XTimes16'.", id="F6 remove"),
        pytest.param(lambda lib: lib.remove_gradient("X"), "Tried to remove non-existent gradient 'X'.", id="F6 remove gradient"),
        pytest.param(lambda lib: lib.replace_function("X", named("Y")), "Tried to remove non-existent function 'X'.", id="replace"),
        pytest.param(lambda lib: lib.replace_function("XTimesTwo", named("Add")), AN_OP, id="replace by op"),
        pytest.param(
            lambda lib: lib.replace_gradient(GradientDef("X", "Y")), "Tried to remove non-existent gradient 'X'.", id="replace gradient"
        ),
        pytest.param(lambda lib: lib.add_library(FunctionDefLibrary((named("F"), named("XTimesTwo")))), SAME_NAME, id="F6 library"),
        pytest.param(
            lambda lib: lib.add_library(FunctionDefLibrary((named("F"), named("F", "a = NoOp()")))),
            "Cannot add function 'F' because a different function with the same name already exists.",
            id="F6 library against itself",
        ),
        pytest.param(
            lambda lib: lib.add_library(FunctionDefLibrary((named("F"),), (GradientDef("XTimesTwo", "XTimes16"),))),
            SECOND_GRADIENT,
            id="F6 library gradient",
        ),
        pytest.param(
            lambda lib: lib.add_library(FunctionDefLibrary((), (GradientDef("A", "B"), GradientDef("A", "C")))),
            "Cannot assign gradient function 'C' to 'A' because it already has gradient function 'B'",
            id="F6 library gradients against each other",
        ),
    ],
)
def test_a_refused_change_leaves_the_library_as_it_was(change: Change, message: str) -> None:
    lib = library(x_times_two())
    lib.add_gradient_def(GradientDef("XTimesTwo", "XTimesFour"))
    before = contents(lib)
    with pytest.raises(InvalidArgumentError) as caught:
        change(lib)
    assert caught.value.message == message
    assert contents(lib) == before


def test_f6_a_library_may_be_added_to_itself_and_to_another() -> None:
    lib = library(x_times_two(), calling("XTimesFour", "XTimesTwo"))
    lib.add_gradient_def(GradientDef("XTimesTwo", "XTimesFour"))
    before = contents(lib)
    lib.add_library(lib)
    other = library()
    other.add_library(lib)
    assert contents(lib) == contents(other) == before


def test_functions_and_gradients_may_be_replaced_and_removed() -> None:
    lib = library(x_times_two(), named("F"))
    lib.replace_function("XTimesTwo", named("XTimesTwo", "a = NoOp()"))
    lib.replace_function("F", named("G"))
    lib.add_gradient_def(GradientDef("G", "H"))
    lib.replace_gradient(GradientDef("G", "K"))
    assert lib.find("XTimesTwo") == named("XTimesTwo", "a = NoOp()")
    assert lib.find("F") is None
    assert lib.find_gradient("G") == "K"
    lib.remove_gradient("G")
    lib.remove_function("G")
    assert lib.list_function_names() == ["XTimesTwo"]


def test_a_copy_is_a_library_of_its_own() -> None:
    lib = library(x_times_two())
    copy = lib.copy()
    copy.add_function_def(named("F"))
    assert copy.contains("F")
    assert not lib.contains("F")


def test_the_attr_of_a_call_is_the_attr_of_the_function() -> None:
    lib = library(named("F", "@attr _noinline = true"), named("G", '@attr _noinline = false\n@attr k = "v"'))
    gradient = NodeDef("g", "SymbolicGradient", attr={"f": Func("F")})
    assert lib.get_attr(NodeDef("c", "F"), "_noinline") is True
    assert lib.get_attr(cast("Node", SimpleNamespace(node_def=NodeDef("c", "F"))), "_noinline") is True
    assert lib.get_attr(gradient, "_noinline") is True
    lib.add_gradient_def(GradientDef("F", "G"))
    assert lib.get_attr(gradient, "_noinline") is False
    assert lib.get_attr(gradient, "k") == b"v"
    for node, name in ((NodeDef("c", "F"), "k"), (NodeDef("c", "Add"), "k"), (NodeDef("g", "SymbolicGradient"), "k")):
        with pytest.raises(InvalidArgumentError, match=r"Attr k is not defined\."):
            lib.get_attr(node, name)


def test_reachable_functions_are_those_called_named_in_attrs_or_gradients_of_these() -> None:
    lib = library(
        named("A", "b = B()"),
        named("B", "m = Cond[cond=C, then_branch=Missing[g=[D[]]]]()"),
        *[named(name) for name in "CDEGX"],
    )
    lib.add_gradient_def(GradientDef("C", "G"))
    lib.add_gradient_def(GradientDef("X", "E"))
    reached = lib.reachable_definitions(GraphDef(node=(NodeDef("n", "A"),)))
    assert sorted(reached.list_function_names()) == ["A", "B", "C", "D", "G"]
    assert reached.to_proto().gradient == (GradientDef("C", "G"),)
    assert lib.reachable_definitions(named("X")).list_function_names() == []
    assert sorted(lib.reachable_definitions([NodeDef("n", "X")]).list_function_names()) == ["E", "X"]
