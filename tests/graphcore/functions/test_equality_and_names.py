"""Equality and hash of functions (F6), canonical names of instantiations (F5)."""

from __future__ import annotations

import msgspec
import pytest

import graphcore.dtypes as dt
from graphcore.attrs import Func, TensorValue
from graphcore.definitions import FunctionDef, NodeDef
from graphcore.functions import InstantiateOptions, canonicalize, function_def_hash, function_defs_equal
from graphcore.shapes import Shape
from graphcore.text import parse_function
from tests.graphcore.functions.example_ops import op_def

BASE = """f[T:type, N:int](x:T, l:N*T) -> (y:T) {
  @attr a = 1
  @attr b = "s"
  @arg 0 [k=1, j=2]
  a = Identity[T=$T, _x=1](x) @ x, l
  b = Neg[T=$T](a:output:0)
  @return r = a
  return y = b:y:0
}"""


def parse(text: str) -> FunctionDef:
    return parse_function(text, op_def)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b = Neg[T=$T](a:output:0)", "b = Neg[T=$T](x)"),
        ("Neg", "Square"),
        ("_x=1", "_x=2"),
        ("_x=1", "_x=1.0"),
        ("(x:T, l", "(z:T, l"),
        ("b = Neg", "c = Neg[T=$T](x)\n  b = Neg"),
        ("return y = b:y:0", "return y = x"),
        ("@return r = a", "@return r = b"),
        ("@attr a = 1", "@attr a = 1\n  @attr c = 1"),
        ("@attr a = 1", "@attr a = true"),
        ("j=2", "j=3"),
        ("@arg 0", "@arg 1"),
        ("@ x, l", "@ x"),
        ("f[T", "g[T"),
    ],
)
def test_functions_that_differ_in_any_part_are_not_equal(old: str, new: str) -> None:
    assert old in BASE
    first, second = parse(BASE), parse(BASE.replace(old, new, 1))
    assert not function_defs_equal(first, second)
    assert function_def_hash(first) != function_def_hash(second)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[T=$T, _x=1]", "[_x=1, T=$T]"),
        ('@attr a = 1\n  @attr b = "s"', '@attr b = "s"\n  @attr a = 1'),
        ("[k=1, j=2]", "[j=2, k=1]"),
        ("@ x, l", "@ l, x"),
        ("[T:type, N:int]", "[N:int, T:type]"),
        ("  a = Identity[T=$T, _x=1](x) @ x, l\n  b = Neg[T=$T](a:output:0)", "  b = Neg[T=$T](a:output:0)\n  a = Identity[T=$T, _x=1](x) @ x, l"),
    ],
)  # fmt: skip
def test_the_order_of_attrs_nodes_and_control_inputs_does_not_matter(old: str, new: str) -> None:
    assert old in BASE
    first, second = parse(BASE), parse(BASE.replace(old, new, 1))
    assert function_defs_equal(first, second)
    assert function_def_hash(first) == function_def_hash(second)


def test_the_description_of_an_argument_counts_for_function_equality_but_not_for_the_text() -> None:
    first = parse(BASE)
    args = (msgspec.structs.replace(first.signature.input_arg[0], description="the input"), *first.signature.input_arg[1:])
    second = msgspec.structs.replace(first, signature=msgspec.structs.replace(first.signature, input_arg=args))
    assert not function_defs_equal(first, second)
    assert function_def_hash(first) != function_def_hash(second)
    assert first == second
    assert hash(first) == hash(second)


def test_functions_are_unequal_only_if_they_are_not_equal() -> None:
    first, second, other = parse(BASE), parse(BASE), parse(BASE.replace("Neg", "Square"))
    unequal = first != second
    assert first == second
    assert unequal is False
    assert first != other


def test_debug_info_does_not_count_for_the_text() -> None:
    plain = FunctionDef(signature=parse("f() -> () {}").signature, node_def=(NodeDef("a", "NoOp"),))
    known = msgspec.structs.replace(plain, node_def=(NodeDef("a", "NoOp", original_node_names=("b",)),))
    assert plain == known
    assert plain != msgspec.structs.replace(plain, node_def=(NodeDef("a", "NoOp", ("^b",)),))
    assert plain != "f"


def test_two_nodes_of_one_name_are_not_equal_to_one() -> None:
    signature = parse("f() -> () {}").signature
    a, b = NodeDef("a", "NoOp"), NodeDef("b", "NoOp")
    twice, both = (FunctionDef(signature=signature, node_def=nodes) for nodes in ((a, a), (a, b)))
    assert not function_defs_equal(twice, both)
    assert not function_defs_equal(both, twice)


@pytest.mark.parametrize(
    ("name", "attrs", "text"),
    [
        (
            "MatMul",
            {"transpose_b": False, "T": dt.float32, "transpose_a": False},
            "MatMul[T=float,transpose_a=false,transpose_b=false]",
        ),
        (
            "CheckNumericsV2",
            {"T": dt.half, "message": "Message should get hashed"},
            "CheckNumericsV2[T=half,message=811750450553548470]",
        ),
        ("F", {}, "F[]"),
        ("F", {"f": Func("G", {"b": 1, "a": dt.int32}), "l": [dt.float32, dt.int32]}, "F[f=G[a=int32, b=1],l={float, int32}]"),
        ("F", {"s": Shape([1, None]), "i": [1, 2], "x": 0.5, "g": Func("G")}, "F[g=G,i=[1, 2],s=[1,?],x=0.5]"),
    ],
)
def test_f5_canonical_names(name: str, attrs: dict[str, object], text: str) -> None:
    assert canonicalize(name, attrs) == text
    assert canonicalize(name, dict(reversed(attrs.items()))) == text


def test_f5_options_add_entries() -> None:
    lib = object()
    options = InstantiateOptions(target="/cpu:0", state_handle="h", executor_type="X", lib_def=lib, input_devices=("/cpu:1", "/cpu:2"))
    assert canonicalize("F", {"T": dt.float32}, options) == (
        f"F[T=float,_executor=X,_input_dev0=/cpu:1,_input_dev1=/cpu:2,_lib_def={id(lib)},_state_handle=h,_target=/cpu:0]"
    )
    assert canonicalize("F", {"_executor": "Y"}) == "F[_executor=Y]"
    assert canonicalize("F", {"_executor": "Y"}, InstantiateOptions(executor_type="Z", output_devices=("/gpu:0",))) == (
        "F[_executor=Z,_output_dev0=/gpu:0]"
    )


def test_f5_long_values_are_told_apart() -> None:
    tensors = [TensorValue([*range(9), last]) for last in (1, 2)]
    lists = [[b"x" * 200 + middle + b"x" * 200] for middle in (b"1", b"2")]
    assert canonicalize("F", {"t": tensors[0]}) != canonicalize("F", {"t": tensors[1]})
    assert canonicalize("F", {"l": lists[0]}) != canonicalize("F", {"l": lists[1]})
