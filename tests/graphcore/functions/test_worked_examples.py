"""The worked examples of the design documents, with their exact strings."""

from __future__ import annotations

import pytest

import graphcore.dtypes as dt
from graphcore.attrs import AttrValue
from graphcore.definitions import FunctionDef, OpDef, OpDefBuilder
from graphcore.definitions.types import without_docs
from graphcore.functions import FunctionDefHelper as FDH  # noqa: N817 - the examples' own abbreviation
from graphcore.functions import instantiate_function
from graphcore.text import debug_string, parse_function, parse_nodes
from tests.graphcore.functions.example_ops import op_def

NUMBERS = "T: {float, double, int32, int64}"


def square_plus_one() -> FunctionDef:
    return FDH.create(
        "SquarePlusOne",
        ["x: T"],
        ["y: T"],
        [NUMBERS],
        [
            FDH.Node(["a"], "Square", ["x"], [("T", "$T")]),
            FDH.Node(["o"], "One", [], {"T": "$T"}),
            (["y"], "Add", ["a:y", "o:y"], {"T": "$T"}),
        ],
        [("y", "y:z:0")],
    )


def control_dep() -> FunctionDef:
    return FDH.create(
        "ControlDep",
        ["x: int32"],
        ["y: int32"],
        [],
        [
            (["a"], "Identity", ["x"], {"T": dt.int32}),
            (["o"], "NoOp", ["^a"], {}),
            (["y"], "Identity", ["a:output:0", "^o"], {"T": dt.int32}),
        ],
        {"y": "y:output:0"},
    )


def back_compat() -> FunctionDef:
    return FDH.create("BackCompat", [], ["y: float"], [], [(["a"], "HasDefaultType", [], {})], {"y": "a:out:0"})


def n_times_t() -> FunctionDef:
    nodes = [(["a"], "AddN", ["x", "y"], {"T": dt.float32, "N": 2})]
    return FDH.create("NTimesT", ["x: float", "y: float"], ["z: float"], [], nodes, {"z": "a:sum:0"})


def add_squared() -> FunctionDef:
    return FDH.create(
        "AddSquared",
        ["x: N*T"],
        ["y: T"],
        ["N:int", NUMBERS],
        [
            (["a"], "Map", ["x"], {"func": FDH.function_ref("Square", {"T": "$T"}), "T": "$T", "U": "$T", "N": "$N"}),
            (["y"], "AddN", ["a:y"], {"N": "$N", "T": "$T"}),
        ],
        {"y": "y:sum"},
    )


def array_list_converter() -> FunctionDef:
    return FDH.create(
        "Test",
        ["i:float"],
        ["o:float"],
        [],
        [
            FDH.const("zero", 0),
            (["s"], "Split", ["zero:output:0", "i"], {"num_split": 4, "T": dt.float32}),
            (["l"], "Mul", ["s:output:0", "s:output:1"], {"T": dt.float32}),
            (["r"], "Mul", ["s:output:2", "s:output:3"], {"T": dt.float32}),
            (["x"], "_ListToArray", ["l:z", "r:z"], {"N": 2, "T": dt.float32, "Tin": [dt.float32, dt.float32]}),
            (["o"], "AddN", ["x:output"], {"N": 2, "T": dt.float32}),
        ],
        {"o": "o:sum:0"},
    )


def my_select() -> FunctionDef:
    return FDH.define(
        "MySelect",
        ["x:float"],
        ["z:float"],
        [],
        [
            (
                ["y"],
                "Cond",
                ["x"],
                {
                    "Tin": [dt.float32],
                    "out_types": [dt.float32],
                    "cond": FDH.function_ref("MyCond"),
                    "then_branch": FDH.function_ref("MyThen"),
                    "else_branch": FDH.function_ref("MyElse"),
                },
            ),
            (
                ["z"],
                "Cond",
                ["y", "y"],
                {
                    "Tin": [dt.float32, dt.float32],
                    "out_types": [dt.float32],
                    "cond": FDH.function_ref("MyCond2"),
                    "then_branch": FDH.function_ref("MyThen2"),
                    "else_branch": FDH.function_ref("MyElse2"),
                },
            ),
        ],
        look_up=op_def,
    )


EXAMPLES: list[tuple[FunctionDef, str, dict[str, AttrValue], str]] = [
    (
        square_plus_one(),
        """
SquarePlusOne[T:{float, double, int32, int64}](x:T) -> (y:T) {
  a = Square[T=$T](x)
  o = One[T=$T]()
  y = Add[T=$T](a:y, o:y)
  return y = y:z:0
}
""",
        {"T": dt.float32},
        """
(x:float) -> (y:float) {
  a = Square[T=float](x)
  o = One[T=float]()
  y = Add[T=float](a, o)
}
""",
    ),
    (
        control_dep(),
        """
ControlDep(x:int32) -> (y:int32) {
  a = Identity[T=int32](x)
  o = NoOp() @ a
  y = Identity[T=int32](a:output:0) @ o
  return y = y:output:0
}
""",
        {"T": dt.float32},
        """
(x:int32) -> (y:int32) {
  a = Identity[T=int32](x)
  o = NoOp() @ a
  y = Identity[T=int32](a) @ o
}
""",
    ),
    (
        back_compat(),
        """
BackCompat() -> (y:float) {
  a = HasDefaultType()
  return y = a:out:0
}
""",
        {},
        """
() -> (a:float) {
  a = HasDefaultType[T=float]()
}
""",
    ),
    (
        n_times_t(),
        """
NTimesT(x:float, y:float) -> (z:float) {
  a = AddN[N=2, T=float](x, y)
  return z = a:sum:0
}
""",
        {},
        """
(x:float, y:float) -> (a:float) {
  a = AddN[N=2, T=float](x, y)
}
""",
    ),
    (
        add_squared(),
        """
AddSquared[N:int, T:{float, double, int32, int64}](x:N*T) -> (y:T) {
  a = Map[N=$N, T=$T, U=$T, func=Square[T=$T]](x)
  y = AddN[N=$N, T=$T](a:y)
  return y = y:sum
}
""",
        {"N": 3, "T": dt.float32},
        """
(x_0:float, x_1:float, x_2:float) -> (y:float) {
  a = Map[N=3, T=float, U=float, func=Square[T=float]](x_0, x_1, x_2)
  y = AddN[N=3, T=float](a, a:1, a:2)
}
""",
    ),
    (
        array_list_converter(),
        """
Test(i:float) -> (o:float) {
  zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
  s = Split[T=float, num_split=4](zero:output:0, i)
  l = Mul[T=float](s:output:0, s:output:1)
  r = Mul[T=float](s:output:2, s:output:3)
  x = _ListToArray[N=2, T=float, Tin={float, float}](l:z, r:z)
  o = AddN[N=2, T=float](x:output)
  return o = o:sum:0
}
""",
        {},
        """
(i:float) -> (o:float) {
  zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
  s = Split[T=float, num_split=4](zero, i)
  l = Mul[T=float](s, s:1)
  r = Mul[T=float](s:2, s:3)
  x = _ListToArray[N=2, T=float, Tin={float, float}](l, r)
  o = AddN[N=2, T=float](x, x:1)
}
""",
    ),
    (
        my_select(),
        """
MySelect(x:float) -> (z:float) {
  y = Cond[Tin={float}, cond=MyCond, else_branch=MyElse, out_types={float}, then_branch=MyThen](x)
  z = Cond[Tin={float, float}, cond=MyCond2, else_branch=MyElse2, out_types={float}, then_branch=MyThen2](y:output:0, y:output:0)
  return z = z:output:0
}
""",
        {},
        """
(x:float) -> (z:float) {
  y = Cond[Tin={float}, cond=MyCond, else_branch=MyElse, out_types={float}, then_branch=MyThen](x)
  z = Cond[Tin={float, float}, cond=MyCond2, else_branch=MyElse2, out_types={float}, then_branch=MyThen2](y, y)
}
""",
    ),
]
NAMES = [example[0].name for example in EXAMPLES]


def as_printed(function: FunctionDef) -> str:
    # MySelect is in the Define form, whose reader must know the same ops as its writer.
    return debug_string(function, op_def if function.name == "MySelect" else None)


@pytest.mark.parametrize(("function", "text", "attrs", "body"), EXAMPLES, ids=NAMES)
def test_the_definition_prints_as_documented(function: FunctionDef, text: str, attrs: dict[str, AttrValue], body: str) -> None:
    assert as_printed(function) == text


@pytest.mark.parametrize(("function", "text", "attrs", "body"), EXAMPLES, ids=NAMES)
def test_the_definition_reads_back(function: FunctionDef, text: str, attrs: dict[str, AttrValue], body: str) -> None:
    assert parse_function(text, op_def if function.name == "MySelect" else None) == function


@pytest.mark.parametrize(("function", "text", "attrs", "body"), EXAMPLES, ids=NAMES)
def test_the_instantiated_body_prints_as_documented_and_reads_back(
    function: FunctionDef, text: str, attrs: dict[str, AttrValue], body: str
) -> None:
    result = instantiate_function(function, attrs, op_def)
    assert debug_string(result.nodes) == body
    assert debug_string(parse_nodes(body)) == body
    assert [node for node in parse_nodes(body) if node.op != "_Retval"] == [node for node in result.nodes if node.op != "_Retval"]


def test_f2_example_1_the_types_of_arguments_and_returns_are_those_of_the_instantiation() -> None:
    result = instantiate_function(square_plus_one(), {"T": dt.float32}, op_def)
    assert (result.arg_types, result.ret_types) == ([dt.float32], [dt.float32])


def test_control_returns_are_printed_before_returns() -> None:
    function = FDH.create(
        "ControlRet",
        ["x: int32"],
        ["y: int32"],
        [],
        [(["a"], "Identity", ["x"], {"T": dt.int32})],
        {"y": "a:output:0"},
        {"must_execute": "a"},
    )
    expected = """
ControlRet(x:int32) -> (y:int32) {
  a = Identity[T=int32](x)
  @return must_execute = a
  return y = a:output:0
}
"""
    assert debug_string(function) == expected
    assert parse_function(expected) == function
    assert function.signature.control_output == ("must_execute",)


def test_the_documented_registrations_give_the_signatures_of_the_text_form() -> None:
    one = (
        OpDefBuilder("One")
        .output("y: T")
        .attr("T: {float, double, int32, int64}")
        .doc("""
Returns a tensor with a single element (1) of type T.

y: A scalar in type T.

""")
        .finalize()
    )
    has_default = OpDefBuilder("HasDefaultType").output("out: T").attr("T: {float, double, int32, int64} = DT_FLOAT").finalize()
    assert debug_string(one) == "One[T:{float, double, int32, int64}]() -> (y:T)"
    assert debug_string(has_default) == "HasDefaultType[T:{float, double, int32, int64} = float]() -> (out:T)"
    mapped = (
        OpDefBuilder("Map")
        .input("x: N * T")
        .output("y: N * U")
        .attr("T: type")
        .attr("U: type")
        .attr("N: int >= 1")
        .doc("""
Applies the 'func' on every input. I.e.,

y[i] = func<...>(x[i])

x: N tensors, each of type T;
y: N tensors, each of type U;

""")
        .finalize()
    )
    cond = (
        OpDefBuilder("Cond")
        .input("input: Tin")
        .output("output: out_types")
        .attr("Tin: list(type)")
        .attr("out_types: list(type)")
        .attr("cond: func")
        .attr("then_branch: func")
        .attr("else_branch: func")
        .doc("""
output = Cond(input) ? then_branch(input) : else_branch(input)

cond: A function takes 'input' and returns a scalar.
then_branch: A function takes 'input' and returns 'output'.
else_branch: A function takes 'input' and returns 'output'.
""")
        .finalize()
    )
    assert debug_string(mapped) == "Map[T:type, U:type, N:int](x:N*T) -> (y:N*U)", "the length of a list is 1 at least without saying so"
    assert mapped.summary == "Applies the 'func' on every input. I.e.,"
    signature = "Cond[Tin:list(type), out_types:list(type), cond:func, then_branch:func, else_branch:func](input:Tin) -> (output:out_types)"
    assert debug_string(cond) == signature
    assert without_docs(cond) == op_def("Cond")
    assert without_docs(mapped) == op_def("Map")
    assert without_docs(one) == op_def("One")
    assert isinstance(op_def("HasDefaultType"), OpDef)
    assert op_def("HasDefaultType") == has_default
