"""The printed form of functions, nodes and values (F1), and lossless additions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import graphcore.dtypes as dt
from graphcore.attrs import AttrValue, Func, Placeholder, TensorValue
from graphcore.definitions import ArgDef, AttrDef, FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, OpDef
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape
from graphcore.text import (
    attr_value_text,
    debug_string,
    debug_string_whole,
    parse_attr_text,
    parse_function,
    parse_nodes,
)
from tests.graphcore.functions.example_ops import op_def


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.float32, "float"),
        (dt.float32.ref, "float_ref"),
        ((dt.float32, dt.int32), "{float, int32}"),
        ((), "[]"),
        (Placeholder("T"), "$T"),
        (Func("Square"), "Square"),
        (Func("Square", {"b": 1, "T": dt.float32, "f": Func("G")}), "Square[T=float, b=1, f=G]"),
        (Func("float"), "float[]"),
        (Func("my func", {"a": True}), '"my func"[a=true]'),
        ((Func("f", {"T": dt.float32}), Func("g")), "[f[T=DT_FLOAT], g[]]"),
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (b'say "\xc3\xa9"\n', '"say \\"\\303\\251\\"\\n"'),
        (b"x" * 100, '"' + "x" * 100 + '"'),
        (tuple(range(40)), "[" + ", ".join(map(str, range(40))) + "]"),
        ((b"a", b"b"), '["a", "b"]'),
        (Shape([1, None, 3]), "[1,?,3]"),
        (Shape(None), "<unknown>"),
        ((Shape([1, 2]), Shape([])), "[[1,2], []]"),
        (TensorValue(np.int64(2)), "Tensor<type: int64 shape: [] values: 2>"),
    ],
    ids=str,
)
def test_attr_values_print_as_documented_and_read_back(value: AttrValue, text: str) -> None:
    assert attr_value_text(value) == text
    again = parse_attr_text(text)
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    ("array", "dtype", "text"),
    [
        (2.0, dt.float32, "shape: [] values: 2"),
        ([0.1, 1e10, -1e-7, np.inf, np.nan], dt.float32, "shape: [5] values: 0.1 1e+10 -1e-07 inf nan"),
        ([[1, 2], [3, 4]], dt.int32, "shape: [2,2] values: [1 2][3 4]"),
        (np.zeros((2, 1, 2)), dt.float64, "shape: [2,1,2] values: [[0 0]][[0 0]]"),
        (np.zeros((2, 0)), dt.float32, "shape: [2,0] values: "),
        ([True, False], dt.bool_, "shape: [2] values: 1 0"),
        ([1 + 2j], dt.complex64, "shape: [1] values: (1,2)"),
        ([0.5], dt.bfloat16, "shape: [1] values: 0.5"),
        ([b"plain", b"two words", b"", b'q"'], dt.string, 'shape: [4] values: plain "two words" "" "q\\""'),
        ([[b"a"], [b"b"]], dt.string, "shape: [2,1] values: [a][b]"),
        (list(range(20)), dt.int32, "shape: [20] values: " + " ".join(map(str, range(20)))),
    ],
)
def test_tensors_print_all_their_values_and_read_back(array: npt.ArrayLike, dtype: DType, text: str) -> None:
    tensor = TensorValue(array, dtype)
    expected = f"Tensor<type: {dtype.text} {text}>"
    assert attr_value_text(tensor) == expected
    assert parse_attr_text(expected) == tensor


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Tensor<type: int32 shape: [3] values: 1 2>", "expected 3 values for shape [3], got 2"),
        ("Tensor<type: int32 shape: [?] values: 1>", "expected Tensor<type: TYPE"),
        ("Tensor<type: resource shape: [] values: 1>", "expected Tensor<type: TYPE"),
        ("Tensor<type: int8 shape: [] values: 200>", "expected values of type int8"),
        ("Tensor<type: float shape: [] values: x>", "expected values of type float"),
        ("{float, foo}", "line 1, column 9: expected a data type, found 'foo}'"),
        ("[1, 2", "line 1, column 6: expected ',' or ']', found the end"),
        ('"abc', "line 1, column 1: expected a closed string"),
        ("f[a=1, a=2]", "line 1, column 8: expected each attr once, but 'a' comes again"),
        ("*", "expected an attr value"),
        ("1 2", "line 1, column 3: expected the end of the value, found '2'"),
    ],
)
def test_a_wrong_value_is_refused_with_line_column_and_expectation(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_attr_text(text)
    assert message in caught.value.message


@pytest.mark.parametrize("dtype", ["half", "float", "bfloat16"])
def test_an_element_too_large_for_its_type_is_read_as_infinite(dtype: str) -> None:
    value = parse_attr_text(f"Tensor<type: {dtype} shape: [2] values: 1e300 -1e300>")
    assert isinstance(value, TensorValue)
    assert value.array.astype(np.float64).tolist() == [np.inf, -np.inf]


def test_kinds_that_look_alike_are_told_apart_by_the_kind_asked_for() -> None:
    assert type(parse_attr_text("[10]", "shape")) is Shape
    assert parse_attr_text("[10]", "list(int)") == (10,)
    assert parse_attr_text("[1,2]", "list(int)") == (1, 2)
    assert type(parse_attr_text("[1,2]", "list(int)")) is tuple
    assert parse_attr_text("[1, 2]", "shape") == Shape([1, 2])
    assert type(parse_attr_text("1", "float")) is float


def test_the_ops_definition_settles_what_a_nodes_text_leaves_open() -> None:
    nodes = parse_nodes('a = Placeholder[dtype=float, shape=[10]]()\nb = Conv2D[T=float, padding="SAME", strides=[1]](a, a)', op_def)
    assert type(nodes[0].attr["shape"]) is Shape
    assert type(nodes[1].attr["strides"]) is tuple
    assert type(parse_nodes("d = Dropout[rate=1](x)", op_def)[0].attr["rate"]) is float


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ("/device:CPU:0", "n = A[T=float, z=1, device=CPU:0](x)"),
        ("/device:GPU:12", "n = A[T=float, z=1, device=GPU:12](x)"),
        ("/job:w/task:1/device:GPU:2", 'n = A[T=float, z=1, device=GPU:2 "/job:w/task:1/device:GPU:2"](x)'),
        ("/cpu:1", 'n = A[T=float, z=1, device=CPU:1 "/cpu:1"](x)'),
        ("/job:w", 'n = A[T=float, z=1, device=:0 "/job:w"](x)'),
        ("somewhere", 'n = A[T=float, z=1, device=<FAILED_TO_PARSE> "somewhere"](x)'),
    ],
)
def test_a_device_comes_last_short_and_where_that_is_not_all_in_full(device: str, text: str) -> None:
    node = NodeDef("n", "A", ("x",), device, {"z": 1, "T": dt.float32})
    assert debug_string(node) == text
    assert parse_nodes(text) == [node]


def test_a_device_is_printed_also_where_there_are_no_attrs() -> None:
    node = NodeDef("n", "NoOp", ("^a", "^b"), "/device:CPU:0")
    assert debug_string(node) == "n = NoOp[device=CPU:0]() @ a, b"
    assert parse_nodes(debug_string(node)) == [node]


def test_an_attr_may_be_called_device() -> None:
    node = NodeDef("n", "A", (), "/device:CPU:0", {"device": b"CPU:0", "zz": 1})
    assert debug_string(node) == 'n = A[device="CPU:0", zz=1, device=CPU:0]()'
    assert parse_nodes(debug_string(node)) == [node]


def test_instantiated_arguments_and_returns_print_as_a_signature_in_the_order_of_their_index() -> None:
    nodes = [
        NodeDef("b", "_Arg", (), "", {"T": dt.int32, "index": 1}),
        NodeDef("a", "_DeviceArg", (), "/device:CPU:0", {"T": dt.float32, "index": 0}),
        NodeDef("c", "_Arg", (), "nowhere", {"T": dt.bool_, "index": 2}),
        NodeDef("n", "Neg", ("a",), "", {"T": dt.float32}),
        NodeDef("r_RetVal", "_Retval", ("n:1", "^b"), "/job:w/device:GPU:1", {"T": dt.float32, "index": 0}),
    ]
    expected = """
(a:float@CPU:0, b:int32, c:bool@<FAILED_TO_PARSE_DEVICE>) -> (n:1:float@GPU:1) {
  n = Neg[T=float](a)
}
"""
    assert debug_string(nodes) == expected
    assert debug_string(GraphDef(node=tuple(nodes))) == expected


def test_a_list_type_argument_prints_its_attr_and_a_reference_its_ref() -> None:
    args = (
        ArgDef(name="x", type_list_attr="Tin"),
        ArgDef(name="r", type=dt.float32, is_ref=True),
        ArgDef(name="l", type_attr="T", number_attr="N"),
    )
    types = (AttrDef(name="Tin", type="list(type)", has_minimum=True, minimum=1), AttrDef(name="T", type="type"))
    length = AttrDef(name="N", type="int", has_minimum=True, minimum=2, default_value=3)
    function = FunctionDef(signature=OpDef(name="f", input_arg=args, attr=(*types, length)))
    assert debug_string(function) == "\nf[Tin:list(type), T:type, N:int >= 2 = 3](x:Tin, r:Ref(float), l:N*T) -> () {\n}\n"
    assert parse_function(debug_string(function)) == function


def test_attrs_of_a_function_and_of_its_arguments_stand_before_its_nodes() -> None:
    text = """
f(x:float) -> (y:float) @stateful {
  @attr _noinline = true
  @attr shape = [1,?]
  @arg 0 [_output_shapes=[[?,3]], _user_specified_name="x"]
  y = Neg[T=float](x)
  return y = y:y:0
}
"""
    function = parse_function(text, op_def)
    assert function.attr == {"_noinline": True, "shape": Shape([1, None])}
    assert function.arg_attr == {0: {"_output_shapes": (Shape([None, 3]),), "_user_specified_name": b"x"}}
    assert function.signature.is_stateful
    assert debug_string(function, op_def) == text


def test_control_outputs_are_the_control_returns_unless_the_text_says_otherwise() -> None:
    assert parse_function("f() -> () {\n a = NoOp()\n @return r = a\n}", op_def).signature.control_output == ("r",)
    function = parse_function("f() -> () {\n @control_output [p, q]\n a = NoOp()\n @return r = a\n}", op_def)
    assert function.signature.control_output == ("p", "q")
    assert parse_function(debug_string(function, op_def), op_def) == function


def test_a_function_reads_as_stateful_if_an_op_is_stateful_or_unknown() -> None:
    assert not parse_function("f() -> () {\n a = NoOp()\n}", op_def).signature.is_stateful
    assert parse_function("f(x:float) -> () {\n a = SomeFunction(x)\n}", op_def).signature.is_stateful
    assert parse_function("f(s:int32) -> () {\n a = RandomUniform[dtype=float, T=int32](s)\n}", op_def).signature.is_stateful
    assert not parse_function("f(x:float) -> () @stateless {\n a = SomeFunction(x)\n}", op_def).signature.is_stateful


def test_returns_print_in_the_order_of_the_outputs() -> None:
    function = parse_function("f(a:float, b:float) -> (p:float, q:float) {\n return extra = a\n return q = a\n return p = b\n}")
    assert debug_string(function).endswith("{\n  return p = b\n  return q = a\n  return extra = a\n}\n")


def test_a_whole_graph_prints_its_functions_and_then_its_nodes() -> None:
    function = parse_function("f(x:float) -> (y:float) {\n return y = x\n}")
    graph = GraphDef(node=(NodeDef("a", "NoOp"), NodeDef("b", "NoOp", ("^a",))), library=FunctionDefLibrary(function=(function,)))
    assert debug_string_whole(graph) == debug_string(function) + "\na = NoOp()\nb = NoOp() @ a\n"


def test_comments_and_free_layout_are_read() -> None:
    function = parse_function("f ( x : T ) -> ( ) { }".replace("( x", "[ T : type ] ( x"))
    assert function == parse_function("# a function\nf[T:type](x:T) -> () {  # nothing in it\n}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(x:float) -> () {", "line 1, column 19: expected a node, a return or '}', found the end"),
        ("f(x:float) -> () {\n  a Neg(x)\n}", "line 2, column 5: expected '=', found 'Neg(x)'"),
        ("f(x:float) -> () {\n  a = Neg[T=float(x)\n}", "line 2, column 18: expected ',' or ']', found '(x)'"),
        ("f(x:float) -> () {\n  a = Neg(x;)\n}", "line 2, column 12: expected ',' or ')', found ';)'"),
        ("f(x:float) -> () {\n  a, b = Neg(x)\n}", "line 2, column 3: expected one name for a node"),
        ("f(x:float) -> () {\n  return y\n}", "line 3, column 1: expected '=', found '}'"),
        ("f(x:float) -> () {\n  return y = x\n  return y = x\n}", "line 3, column 10: expected a return that is not there yet"),
        ("f(x:float) -> () {\n  @foo a = b\n}", "line 2, column 4: expected return, attr, arg or control_output after '@'"),
        ("f(x:float) -> () {\n  @arg 1 [a=1]\n}", "expected attrs of the function's 1 arguments, not of argument 1"),
        ("f(x:float) -> () {} g", "line 1, column 21: expected the end of the function, found 'g'"),
        ("f(x:float) -> () {\n  a = Neg[T=float, T=int32](x)\n}", "line 2, column 20: expected an attr that is not there yet"),
    ],
)  # fmt: skip
def test_a_wrong_function_is_refused_with_line_column_and_expectation(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_function(text)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(x float) -> () {}", "line 1, column 4: expected ':' and a data type, found 'float) -> () {}'"),
        ("(x:foo) -> () {}", "expected ':' and a data type"),
        ("(x:float) -> () {} y", "line 1, column 20: expected the end of the nodes, found 'y'"),
        ("(x:float x:int32) -> () {}", "expected ',' or ')'"),
    ],
)
def test_wrong_instantiated_nodes_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_nodes(text)
    assert message in caught.value.message


def test_return_nodes_read_back_with_names_of_their_own() -> None:
    nodes = parse_nodes("(x:float@CPU:0) -> (a:1:float, a:int32, x:float) {\n a = Foo(x)\n}")
    assert [(node.name, node.input, node.device) for node in nodes] == [
        ("x", (), "/device:CPU:0"),
        ("a", ("x",), ""),
        ("a_RetVal", ("a:1",), ""),
        ("a_RetVal_1", ("a",), ""),
        ("x_RetVal", ("x",), ""),
    ]
