"""Instantiation: the rules F2 and the errors F3."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import graphcore.dtypes as dt
from graphcore.attrs import AttrValue, Func, Placeholder
from graphcore.definitions import FunctionDef, NodeDef
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.functions import (
    FunctionDefHelper,
    FunctionInstantiationHelper,
    InstantiationResult,
    arg_num_type,
    define_function,
    get_set_attrs,
    instantiate_function,
    validate_signature_with_attrs,
)
from graphcore.shapes import Shape
from graphcore.text import debug_string, parse_function
from tests.graphcore.functions.example_ops import op_def

NOTHING: Mapping[str, AttrValue] = {}


def instantiate(text: str, attrs: Mapping[str, object] = NOTHING) -> InstantiationResult:
    return instantiate_function(parse_function(text, op_def), attrs, op_def)


def inputs(result: InstantiationResult) -> dict[str, tuple[str, ...]]:
    return {node.name: node.input for node in result.nodes}


def test_arguments_come_first_then_the_body_then_the_returns() -> None:
    result = instantiate("f(x:float) -> (y:float) {\n a = Neg[T=float](x)\n return y = a:y:0\n}")
    assert result.arg_types == [dt.float32]
    assert result.ret_types == [dt.float32]
    assert result.nodes == [
        NodeDef("x", "_Arg", (), "", {"T": dt.float32, "index": 0}),
        NodeDef("a", "Neg", ("x",), "", {"T": dt.float32}),
        NodeDef("y_RetVal", "_Retval", ("a",), "", {"T": dt.float32, "index": 0}),
    ]


def test_a_list_argument_becomes_one_node_an_element() -> None:
    text = "f[N:int](x:N*float, z:int32) -> (y:N*float) {\n return y = x\n}"
    result = instantiate(text, {"N": 2})
    assert [(node.name, node.attr["index"]) for node in result.nodes[:3]] == [("x_0", 0), ("x_1", 1), ("z", 2)]
    assert [(node.name, node.input) for node in result.nodes[3:]] == [("y_RetVal_0", ("x_0",)), ("y_RetVal_1", ("x_1",))]
    assert [node.name for node in instantiate(text, {"N": 1}).nodes] == ["x", "z", "y_RetVal"]


def test_port_zero_is_written_without_a_number_and_a_whole_list_expands_to_its_ports() -> None:
    text = """f(d:int32, x:float) -> (y:float, z:float) {
      s = Split[T=float, num_split=3](d, x)
      y = AddN[N=3, T=float](s:output)
      z = Add[T=float](s:output:0, s:output:2)
      return y = y:sum
      return z = z:z:0
    }"""
    assert inputs(instantiate(text))["y"] == ("s", "s:1", "s:2")
    assert inputs(instantiate(text))["z"] == ("s", "s:2")


def test_lists_and_single_tensors_fill_an_argument_together() -> None:
    text = "f[N:int](x:N*float, w:float) -> (y:float) {\n y = AddN[N=4, T=float](w, x, x:1)\n return y = y:sum:0\n}"
    assert inputs(instantiate(text, {"N": 2}))["y"] == ("w", "x_0", "x_1", "x_1")


def test_placeholders_are_bound_also_in_the_attrs_of_functions_and_in_lists() -> None:
    node = NodeDef("y", "Foo", (), "", {"f": Func("A", {"g": (Func("B", {"T": Placeholder("T")}),)}), "k": b"x"})
    function = FunctionDef(signature=parse_function("f[T:type]() -> () {}").signature, node_def=(node,))
    result = instantiate_function(function, {"T": dt.int64}, lambda _: op_def("NoOp"))
    assert result.nodes[0].attr == {"f": Func("A", {"g": (Func("B", {"T": dt.int64}),)}), "k": b"x"}


def test_missing_attrs_get_the_ops_defaults() -> None:
    result = instantiate("f() -> (y:float) {\n a = HasDefaultType()\n return y = a:out:0\n}")
    assert result.nodes[0].attr == {"T": dt.float32}


def test_missing_attrs_of_the_function_get_its_defaults() -> None:
    result = instantiate("f[T:type = int32](x:T) -> (y:T) {\n a = Neg[T=$T](x)\n return y = a:y:0\n}")
    assert result.ret_types == [dt.int32]


def test_extra_attrs_and_extra_returns_are_no_errors() -> None:
    result = instantiate("f(x:float) -> () {\n return y = nowhere:y:0\n}", {"T": dt.float32, "K": 3})
    assert [node.name for node in result.nodes] == ["x"]


def test_control_inputs_may_name_nodes_and_arguments_and_come_last() -> None:
    text = "f[N:int](x:N*float) -> () {\n o = NoOp() @ x, y\n y = AddN[N=$N, T=float](x) @ x\n}"
    assert inputs(instantiate(text, {"N": 2})) == {"x_0": (), "x_1": (), "o": ("^x_0", "^y"), "y": ("x_0", "x_1", "^x_0")}


def test_device_and_debug_info_of_a_node_are_kept() -> None:
    node = FunctionDefHelper.Node(["a"], "NoOp", device="/device:CPU:1", original_node_names=["b"], original_func_names=["g"])
    function = FunctionDefHelper.create("f", [], [], [], [node], {})
    assert instantiate_function(function, {}, op_def).nodes == [NodeDef("a", "NoOp", (), "/device:CPU:1", {}, ("b",), ("g",))]


def test_ints_may_be_kept_on_the_device() -> None:
    text = "f(x:int32, z:float) -> (y:int32, w:float) {%s\n return y = x\n return w = z\n}"
    plain, on_device = instantiate(text % ""), instantiate(text % " @attr experimental_ints_on_device = true")
    assert [node.op for node in plain.nodes] == ["_Arg", "_Arg", "_Retval", "_Retval"]
    assert [node.op for node in on_device.nodes] == ["_DeviceArg", "_Arg", "_DeviceRetval", "_Retval"]


def test_attrs_of_an_argument_go_to_its_node() -> None:
    result = instantiate("f(x:float, z:int32) -> () {\n @arg 1 [_output_shapes=[[?,3]]]\n}")
    assert result.nodes[0].attr == {"T": dt.float32, "index": 0}
    assert result.nodes[1].attr == {"T": dt.int32, "index": 1, "_output_shapes": (Shape([None, 3]),)}


def test_a_reference_argument_has_a_reference_type_at_its_node() -> None:
    result = instantiate("f(r:Ref(float), v:float) -> (y:float) {\n a = Assign[T=float](r, v)\n return y = a:output_ref:0\n}")
    assert result.nodes[0].attr["T"] is dt.float32.ref
    assert result.arg_types == [dt.float32, dt.float32]


def test_attrs_may_be_given_by_name_and_strings_with_a_dollar_are_placeholders() -> None:
    text = "f[T:type](x:T) -> () {}"
    assert instantiate(text, {"T": "float"}).arg_types == [dt.float32]
    with pytest.raises(InvalidArgumentError, match="unexpected type 'placeholder'"):
        instantiate(text, {"T": "$T"})


ONE = "f[T:type]() -> (y:T) {\n a = One[T=%s]()\n return y = a:y:0\n}"
ADD = "f(x:float) -> (y:float) {\n y = Add[T=%s](%s)%s\n return y = y:z:0\n}"
RETURN = "f(x:float) -> (y:%s) {\n return %s = %s\n}"
LISTS = "f[N:int](x:N*float) -> (y:float) {\n y = AddN[%s](%s)\n return y = y:sum:0\n}"


@pytest.mark.parametrize(
    ("text", "attrs", "error", "message"),
    [
        pytest.param(ONE % "$T", {"U": dt.float32}, NotFoundError, "Attr T is not found from Op<name=f;", id="F3 attr not passed"),
        pytest.param(
            ONE % "$T",
            {"T": Placeholder("x")},
            InvalidArgumentError,
            "AttrValue had value with unexpected type 'placeholder'\n\tfor attr 'T'",
            id="F3 passed placeholder",
        ),
        pytest.param(ONE % "$unknown", {"T": dt.float32}, InvalidArgumentError, "Failed to bind all placeholders in $unknown", id="F3 unbound"),
        pytest.param(
            "f(d:int32) -> () {\n y = One[T=float]()\n y = One[T=float]()\n}",
            {},
            InvalidArgumentError,
            "Duplicated ret name: y:y\n\tIn {{node y}}",
            id="F3 duplicated ret",
        ),
        pytest.param(
            ADD % ("float", "x, z", ""),
            {},
            InvalidArgumentError,
            "input z is not found: {{node y}}\n\tIn {{node y}}",
            id="F3 input unknown",
        ),
        pytest.param(
            ADD % ("int32", "x, x", ""),
            {},
            InvalidArgumentError,
            "input x[0] expected type int32 != float, the type of x[0]\n\tIn {{node y}}",
            id="F3 input type",
        ),
        pytest.param(
            ADD % ("float", "x, x", " @ z"),
            {},
            InvalidArgumentError,
            "input[2] == '^z', is not found.\n\tIn {{node y}}",
            id="F3 control unknown",
        ),
        pytest.param(RETURN % ("float", "z", "x"), {}, InvalidArgumentError, "Return y missing.\n\tIn function output y:float", id="F3 missing"),
        pytest.param(
            RETURN % ("float", "y", "z"),
            {},
            InvalidArgumentError,
            "Return y -> z is not found.\n\tIn function output y:float",
            id="F3 ret unknown",
        ),
        pytest.param(
            RETURN % ("int32", "y", "x"),
            {},
            InvalidArgumentError,
            "Invalid ret types y : int32 vs. float\n\tIn function output y:int32",
            id="F3 ret type",
        ),
        pytest.param(
            "f[N:int](x:float) -> (y:N*float) {\n return y = x\n}",
            {"N": 2},
            InvalidArgumentError,
            "Invalid ret types y : float, float vs. float\n\tIn function output y:N*float",
            id="F3 ret length",
        ),
        pytest.param(
            "f(x:float) -> () {\n y = IdentityN(x)\n}", {}, NotFoundError, "type list attr not found: T\n\tIn {{node y}}", id="F3 type list"
        ),
        pytest.param("f(x:float) -> () {\n y = Neg(x)\n}", {}, NotFoundError, "type attr not found: T\n\tIn {{node y}}", id="F3 type attr"),
        pytest.param(
            LISTS % ("T=float", "x"), {"N": 2}, NotFoundError, "type attr not found: T\n\tIn {{node y}}", id="F3 number attr"
        ),
        pytest.param(
            LISTS % ("N=2, T=float", "x:0, x:1, x:0"),
            {"N": 2},
            InvalidArgumentError,
            "Expected input[2] == 'x:0' to be a control input.\n\tIn {{node y}}",
            id="F3 too many inputs",
        ),
        pytest.param(
            LISTS % ("N=3, T=float", "x:0, x:1"),
            {"N": 2},
            InvalidArgumentError,
            "Attempt to access beyond input size: 2 >= 2\n\tIn {{node y}}",
            id="F3 too few inputs",
        ),
        pytest.param(
            LISTS % ("N=3, T=float", "x:0, x"),
            {"N": 3},
            InvalidArgumentError,
            "Input x too long for inputs\n\tIn {{node y}}",
            id="F3 list too long",
        ),
        pytest.param("f(x:float) -> () {\n y = Foo(x)\n}", {}, NotFoundError, "Op type not registered 'Foo'", id="F3 unknown op"),
        pytest.param(
            "f[N:int](x:N*float) -> () {}", {"N": 10**12}, InvalidArgumentError, "Length of 'x' must be 0 to ", id="F3 absurd length"
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_instantiated_is_refused(text: str, attrs: dict[str, object], error: type[GraphError], message: str) -> None:
    with pytest.raises(error) as caught:
        instantiate(text, attrs)
    assert message in caught.value.message


def test_the_steps_of_an_instantiation_can_be_taken_one_by_one() -> None:
    text = """f[N:int, T:{float, int32}](x:N*T, y:float) -> (z:T) {
  @attr _noinline = true
  z = AddN[N=$N, T=$T](x)
  return z = z:sum:0
}"""
    function = parse_function(text, op_def)
    assert get_set_attrs(function) == {"_noinline": True}
    attrs = validate_signature_with_attrs(function.signature, {"N": 2, "T": "float"})
    assert attrs == {"N": 2, "T": dt.float32}
    assert [arg_num_type(attrs, arg) for arg in function.signature.input_arg] == [(False, (dt.float32, dt.float32)), (False, (dt.float32,))]
    of_lists = parse_function("g[L:list(type)](x:L) -> () {\n}", op_def).signature.input_arg[0]
    assert arg_num_type({"L": (dt.int32, dt.bool_)}, of_lists) == (True, (dt.int32, dt.bool_))
    helper = FunctionInstantiationHelper(function, attrs, op_def)
    for arg in function.signature.input_arg:
        helper.build_input_arg_index(arg, None)
    assert helper.get_item_or_none("x:1") == (True, 1, 0, (dt.float32,))
    assert helper.get_item_or_none("w") is None
    assert [node.name for node in helper.nodes] == ["x_0", "x_1", "y"]
    assert instantiate_function(function, attrs, op_def) == FunctionInstantiationHelper(function, attrs, op_def).run()


def test_two_arguments_may_not_share_a_name() -> None:
    function = FunctionDefHelper.create("f", ["x: float", "x: float"], [], [], [], {})
    with pytest.raises(InvalidArgumentError, match="Duplicated arg name: x\n\tIn x:float"):
        instantiate_function(function, {}, op_def)


def test_a_function_of_100_nodes_is_instantiated_node_by_node() -> None:
    lines = "\n".join(f"n{i} = Add[T=$T]({'x' if i == 0 else f'n{i - 1}'}, x) @ x" for i in range(100))
    function = define_function(f"[T:{{float, double}}](x:T) -> (n99:T) {{\n{lines}\n}}", look_up=op_def)
    assert debug_string(instantiate_function(function, {"T": dt.float32}, op_def).nodes).count("\n") == 103
