"""NodeDefBuilder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphcore import dtypes as d
from graphcore.attrs import Func, TensorValue
from graphcore.definitions import (
    FakeInput,
    NodeDef,
    NodeOut,
    OpDef,
    OpDefBuilder,
    in_out_types_for_node,
    summarize_node_def,
)
from graphcore.errors import InvalidArgumentError
from graphcore.graph import NodeDefBuilder
from graphcore.registry import OpRegistry
from graphcore.shapes import Shape


def op(name: str, *parts: str) -> OpDef:
    builder = OpDefBuilder(name)
    add = {"A": builder.attr, "I": builder.input, "O": builder.output}
    for part in parts:
        add[part[0]](part[2:])
    return builder.finalize()


OPS = {
    made.name: made
    for made in [
        op("Simple", "I a: int32", "O out: float"),
        op("Polymorphic", "I a: T", "O out: T", "A T: type"),
        op("PolymorphicOut", "O out: T", "A T: type"),
        op("PolymorphicDefaultOut", "O out: T", "A T: type = DT_STRING"),
        op("Binary", "I a: T", "I b: T", "O out: T", "A T: type"),
        op("Restrict", "I a: T", "O out: T", "A T: {string, bool}"),
        op("TypeList", "I a: T", "A T: list(type)"),
        op("TypeListOutDefault", "O out: T", "A T: list(type) >= 0 = [DT_BOOL]"),
        op("TypeListTwice", "I a: T", "I b: T", "A T: list(type)"),
        op("TypeListRestrict", "I a: T", "A T: list({string, bool})"),
        op("AttrInt", "A a: int"),
        op("AttrMin", "A a: int >= 5"),
        op("AttrFloat", "A a: float"),
        op("AttrBool", "A a: bool"),
        op("AttrBoolList", "A a: list(bool)"),
        op("AttrListMin", "A a: list(int) >= 2"),
        op("AttrDefault", "A a: string = 'banana'"),
        op("AttrEnum", "A a: {'apples', 'oranges'}"),
        op("AttrEnumList", "A a: list({'apples', 'oranges'})"),
        op("AttrShape", "A a: shape"),
        op("AttrTensor", "A a: tensor"),
        op("AttrFunc", "A a: func"),
        op("AttrManyDefaultAndInferred", "I input: T", "A T: {float, double}", "A a: string", "A b: list(string) >= 1",
           "A c: bool = true", "A d: float = 0.3", "A e: string", "A f: float = 0.25"),
        op("NIntsIn", "I a: N * int32", "A N: int >= 2"),
        op("NPolymorphicIn", "I a: N * T", "A N: int >= 2", "A T: type"),
        op("NPolymorphicRestrictIn", "I a: N * T", "A N: int >= 2", "A T: {string, bool}"),
        op("NInTwice", "I a: N * int32", "I b: N * string", "A N: int >= 0"),
        op("NInPolymorphicTwice", "I a: N * T", "I b: N * T", "A N: int >= 0", "A T: type"),
        op("NInTwoTypeVariables", "I a: N * S", "I b: N * T", "A N: int >= 0", "A S: type", "A T: type"),
        op("InPolymorphicTwice", "I a: N * T", "I b: M * T", "A N: int >= 0", "A M: int >= 0", "A T: type"),
        op("RefIn", "I a: Ref(int32)"),
        op("PolymorphicRefIn", "I a: Ref(T)", "A T: type"),
        op("TwoRefsIn", "I a: Ref(T)", "I b: Ref(T)", "A T: type"),
        op("RefList", "I a: Ref(N * T)", "A N: int", "A T: type"),
    ]
}  # fmt: skip


def build(name: str, *steps: Callable[[NodeDefBuilder], object]) -> NodeDef:
    builder = NodeDefBuilder("n", OPS[name])
    for step in steps:
        step(builder)
    return builder.finalize()


def give(*args: Any) -> Callable[[NodeDefBuilder], object]:
    return lambda builder: builder.input(*args)


def attr(name: str, value: object) -> Callable[[NodeDefBuilder], object]:
    return lambda builder: builder.attr(name, value)


def outs(*dtypes: d.DType, node: str = "x") -> list[NodeOut]:
    return [NodeOut(node, i, dtype) for i, dtype in enumerate(dtypes)]


@pytest.mark.parametrize(
    ("name", "steps", "summary"),
    [
        ("Simple", [give(FakeInput())], "Simple[](a)"),
        ("Simple", [give(FakeInput(d.int32))], "Simple[](a)"),
        ("Simple", [give("x", 0, d.int32)], "Simple[](x)"),
        ("Simple", [give("y", 2, d.int32)], "Simple[](y:2)"),
        ("Simple", [give("x", 0, d.int32.ref)], "Simple[](x)"),
        ("Simple", [give(NodeOut("z", 1, d.int32))], "Simple[](z:1)"),
        ("Simple", [give(FakeInput()), lambda b: b.control_input("x"), lambda b: b.control_input("y")], "Simple[](a, ^x, ^y)"),
        ("Simple", [lambda b: b.control_input("x"), give(FakeInput()), lambda b: b.control_input("y")], "Simple[](a, ^x, ^y)"),
        ("Simple", [give(FakeInput()), lambda b: b.device("ddd")], 'Simple[_device="ddd"](a)'),
        ("Polymorphic", [give(FakeInput(d.int32))], "Polymorphic[T=DT_INT32](a)"),
        ("Polymorphic", [give(FakeInput(d.bool_)), attr("T", d.bool_)], "Polymorphic[T=DT_BOOL](a)"),
        ("Polymorphic", [attr("T", d.bool_), give(FakeInput(d.bool_))], "Polymorphic[T=DT_BOOL](a)"),
        ("Polymorphic", [attr("T", d.bool_), give(FakeInput())], "Polymorphic[T=DT_BOOL](a)"),
        ("Polymorphic", [give(FakeInput(d.int32.ref))], "Polymorphic[T=DT_INT32](a)"),
        ("PolymorphicOut", [attr("T", "int32")], "PolymorphicOut[T=DT_INT32]()"),
        ("PolymorphicDefaultOut", [], "PolymorphicDefaultOut[T=DT_STRING]()"),
        ("PolymorphicDefaultOut", [attr("T", d.bool_)], "PolymorphicDefaultOut[T=DT_BOOL]()"),
        ("Binary", [give(FakeInput(d.string)), give(FakeInput())], "Binary[T=DT_STRING](a, b)"),
        ("Binary", [give(FakeInput(d.int32)), give(FakeInput(d.int32))], "Binary[T=DT_INT32](a, b)"),
        ("Restrict", [give(FakeInput(d.string))], "Restrict[T=DT_STRING](a)"),
        ("TypeList", [give(FakeInput([d.string, d.int32]))], "TypeList[T=[DT_STRING, DT_INT32]](a, a:1)"),
        ("TypeList", [give(outs(d.bool_.ref))], "TypeList[T=[DT_BOOL]](x)"),
        ("TypeList", [attr("T", [d.string]), give(FakeInput())], "TypeList[T=[DT_STRING]](a)"),
        ("TypeListOutDefault", [], "TypeListOutDefault[T=[DT_BOOL]]()"),
        ("TypeListOutDefault", [attr("T", [])], "TypeListOutDefault[T=[]]()"),
        ("TypeListTwice", [give(FakeInput([d.int32, d.bool_])), give(FakeInput())], "TypeListTwice[T=[DT_INT32, DT_BOOL]](a, a:1, b, b:1)"),
        ("TypeListRestrict", [give(FakeInput([d.string, d.bool_]))], "TypeListRestrict[T=[DT_STRING, DT_BOOL]](a, a:1)"),
        ("AttrInt", [attr("a", 12)], "AttrInt[a=12]()"),
        ("AttrMin", [attr("a", 5)], "AttrMin[a=5]()"),
        ("AttrFloat", [attr("a", 1.5)], "AttrFloat[a=1.5]()"),
        ("AttrBoolList", [attr("a", [True, False, True])], "AttrBoolList[a=[true, false, true]]()"),
        ("AttrBoolList", [attr("a", [])], "AttrBoolList[a=[]]()"),
        ("AttrListMin", [attr("a", [1, 2])], "AttrListMin[a=[1, 2]]()"),
        ("AttrDefault", [], 'AttrDefault[a="banana"]()'),
        ("AttrDefault", [attr("a", "kiwi")], 'AttrDefault[a="kiwi"]()'),
        ("AttrEnum", [attr("a", "apples")], 'AttrEnum[a="apples"]()'),
        ("AttrEnumList", [attr("a", ["oranges", "apples"])], 'AttrEnumList[a=["oranges", "apples"]]()'),
        ("AttrShape", [attr("a", [5, None])], "AttrShape[a=[5,?]]()"),
        ("AttrShape", [attr("a", Shape([0]))], "AttrShape[a=[0]]()"),
        ("AttrTensor", [attr("a", TensorValue([1, 2]))], "AttrTensor[a=Tensor<type: int64 shape: [2] values: 1 2>]()"),
        ("AttrFunc", [attr("a", Func("f", {"T": d.int32}))], "AttrFunc[a=f[T=DT_INT32]]()"),
        ("AttrManyDefaultAndInferred", [give(FakeInput(d.float32)), attr("a", "x"), attr("b", ["y"]), attr("e", "z"), attr("c", False)],
         'AttrManyDefaultAndInferred[T=DT_FLOAT, a="x", b=["y"], c=false, d=0.3, e="z", f=0.25](a)'),
        ("NIntsIn", [give(FakeInput(2))], "NIntsIn[N=2](a, a:1)"),
        ("NIntsIn", [attr("N", 3), give(FakeInput())], "NIntsIn[N=3](a, a:1, a:2)"),
        ("NIntsIn", [give(outs(d.int32.ref, d.int32))], "NIntsIn[N=2](x, x:1)"),
        ("NPolymorphicIn", [give(FakeInput(2, d.int32))], "NPolymorphicIn[N=2, T=DT_INT32](a, a:1)"),
        ("NPolymorphicIn", [attr("T", d.string), give(FakeInput(2))], "NPolymorphicIn[N=2, T=DT_STRING](a, a:1)"),
        ("NInTwice", [give(FakeInput(2)), give(FakeInput(2))], "NInTwice[N=2](a, a:1, b, b:1)"),
        ("NInTwice", [give([]), give([])], "NInTwice[N=0]()"),
        ("NInTwoTypeVariables", [give(FakeInput(1, d.bool_)), give(FakeInput(1, d.int32))], "NInTwoTypeVariables[N=1, S=DT_BOOL, T=DT_INT32](a, b)"),
        ("InPolymorphicTwice", [give(FakeInput(0)), give(FakeInput(1, d.bool_))], "InPolymorphicTwice[M=1, N=0, T=DT_BOOL](b)"),
        ("RefIn", [give(FakeInput(d.int32.ref))], "RefIn[](a)"),
        ("RefIn", [give(FakeInput())], "RefIn[](a)"),
        ("PolymorphicRefIn", [give(FakeInput(d.bool_.ref))], "PolymorphicRefIn[T=DT_BOOL](a)"),
        ("TwoRefsIn", [give(FakeInput(d.bool_.ref)), give(FakeInput())], "TwoRefsIn[T=DT_BOOL](a, b)"),
    ],
    ids=lambda value: f"N7-{value}" if isinstance(value, str) else "",
)  # fmt: skip
def test_a_builder_gives_the_node(name: str, steps: list[Any], summary: str) -> None:
    assert summarize_node_def(build(name, *steps)) == f"{{{{node n}}}} = {summary}"


SIMPLE = "Op<name=Simple; signature=a:int32 -> out:float>"


@pytest.mark.parametrize(
    ("name", "steps", "text"),
    [
        ("Simple", [give(FakeInput()), give(FakeInput())], f"More Input() calls than the 1 input_args while building NodeDef 'n' using {SIMPLE}"),
        ("Simple", [], f"0 inputs specified of 1 inputs in Op while building NodeDef 'n' using {SIMPLE}"),
        ("Simple", [give(FakeInput(d.float32))], "Input 'a' passed float expected int32 while"),
        ("Simple", [give(FakeInput([d.int32]))], "List provided to input 'a' when single Tensor expected while"),
        ("Simple", [give(FakeInput(3))], "List provided to input 'a' when single Tensor expected while"),
        ("Simple", [give("", 0, d.int32)], "Empty input node name while"),
        ("Simple", [give("^x", 0, d.int32)], "Non-control input starting with ^: ^x while"),
        ("Simple", [give(FakeInput()), lambda b: b.control_input("z:1")], "Control input '^z:1' must not have ':' in NodeDef:"),
        ("Simple", [give(FakeInput()), attr("foo", 12)], f"NodeDef mentions attr 'foo' not in {SIMPLE}"),
        ("Polymorphic", [give(FakeInput())], "Could not infer type for input 'a': No attr named 'T' in NodeDef:"),
        ("Polymorphic", [give(FakeInput(d.bool_)), attr("T", d.string)], "Inconsistent values for attr 'T' DT_BOOL vs. DT_STRING while"),
        ("Polymorphic", [attr("T", d.string), give(FakeInput(d.bool_))], "Inconsistent values for attr 'T' DT_STRING vs. DT_BOOL while"),
        ("Polymorphic", [attr("T", 12), give(FakeInput(d.bool_))], "Inconsistent values for attr 'T' 12 vs. DT_BOOL while"),
        ("PolymorphicOut", [], "NodeDef missing attr 'T' from Op<name=PolymorphicOut;"),
        ("PolymorphicOut", [attr("T", 12)], "AttrValue had value with type 'int' when 'type' expected\n\t for attr 'T'"),
        ("PolymorphicOut", [attr("T", [d.bool_])], "AttrValue had value with type 'list(type)' when 'type' expected"),
        ("PolymorphicOut", [attr("T", d.float32.ref)], "AttrValue must not have reference type value of float_ref"),
        ("Binary", [give(FakeInput(d.bool_)), give(FakeInput(d.string))], "Inconsistent values for attr 'T' DT_BOOL vs. DT_STRING while"),
        ("Restrict", [give(FakeInput(d.int32))], "Value for attr 'T' of int32 is not in the list of allowed values: string, bool"),
        ("TypeList", [give(FakeInput(d.bool_))], "Single tensor passed to 'a', expected list while"),
        ("TypeList", [give([])], "Length for attr 'T' of 0 must be at least minimum 1"),
        ("TypeListTwice", [give(FakeInput([d.int32, d.bool_])), give(FakeInput([d.int32, d.string]))],
         "Inconsistent values for attr 'T' [DT_INT32, DT_BOOL] vs. [DT_INT32, DT_STRING] while"),
        ("TypeListRestrict", [give(FakeInput([d.string, d.int32]))], "of int32 is not in the list of allowed values: string, bool"),
        ("AttrMin", [attr("a", 2)], "Value for attr 'a' of 2 must be at least minimum 5"),
        ("AttrFloat", [attr("a", 12)], "AttrValue had value with type 'int' when 'float' expected"),
        ("AttrBool", [attr("a", 1)], "AttrValue had value with type 'int' when 'bool' expected"),
        ("AttrInt", [attr("a", True)], "AttrValue had value with type 'bool' when 'int' expected"),
        ("AttrInt", [attr("a", object())], "Attr 'a': Not an attr value:"),
        ("AttrBoolList", [attr("a", [0])], "AttrValue had value with type 'list(int)' when 'list(bool)' expected"),
        ("AttrListMin", [attr("a", [1])], "Length for attr 'a' of 1 must be at least minimum 2"),
        ("AttrEnum", [attr("a", "invalid")], "Value for attr 'a' of \"invalid\" is not in the list of allowed values: \"apples\", \"oranges\""),
        ("AttrEnumList", [attr("a", ["apples", "x"])], "Value for attr 'a' of \"x\" is not in the list of allowed values: "),
        ("NIntsIn", [give(FakeInput(1))], "Value for attr 'N' of 1 must be at least minimum 2"),
        ("NIntsIn", [give(FakeInput(2, d.string))], "2 errors while building NodeDef"),
        ("NIntsIn", [give(outs(d.int32, d.string))], "Input 'a' passed string expected int32 while"),
        ("NPolymorphicIn", [give(outs(d.int32, d.string))], "Input 'a' passed string expected int32 while"),
        ("NPolymorphicRestrictIn", [give(FakeInput(2, d.int32))], "Value for attr 'T' of int32 is not in the list of allowed values: string, bool"),
        ("NInTwice", [give(FakeInput(3)), give(FakeInput(1))], "Inconsistent values for attr 'N' 3 vs. 1 while"),
        ("NInPolymorphicTwice", [give(FakeInput(1, d.int32)), give(FakeInput(1, d.string))], "Inconsistent values for attr 'T' DT_INT32 vs. DT_STRING while"),
        ("NInPolymorphicTwice", [give([]), give([])], "NodeDef missing attr 'T' from"),
        ("RefIn", [give(FakeInput(d.int32))], "Input 'a' passed int32 expected int32_ref while"),
        ("PolymorphicRefIn", [give(FakeInput(d.bool_))], "Input 'a' passed bool expected ref type while"),
        ("TwoRefsIn", [give(FakeInput(d.bool_.ref)), give(FakeInput(d.bool_))], "Input 'b' passed bool expected ref type while"),
    ],
    ids=lambda value: f"N7-{value[:60]}" if isinstance(value, str) else "",
)  # fmt: skip
def test_a_builder_refuses_what_does_not_fit(name: str, steps: list[Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        build(name, *steps)
    assert text in caught.value.message
    assert (caught.value.node, caught.value.op) == ("n", name)


@pytest.mark.parametrize(
    ("name", "steps", "first", "second"),
    [
        ("TypeList", [give(FakeInput())], "Could not infer list of types for input 'a': No attr named 'T' in NodeDef:", "0 inputs specified of 1 inputs in Op"),
        ("NIntsIn", [give(FakeInput())], "Could not infer length of input 'a': No attr named 'N' in NodeDef:", "0 inputs specified of 1 inputs in Op"),
        ("NPolymorphicIn", [give(FakeInput(2))], "Could not infer type for input 'a': No attr named 'T' in NodeDef:", "0 inputs specified of 1 inputs in Op"),
        ("NIntsIn", [give(FakeInput(2, d.string))], "Input 'a' passed string expected int32", "Input 'a' passed string expected int32"),
    ],
    ids=["N7-type list", "N7-length", "N7-type", "N7-each element"],
)  # fmt: skip
def test_several_errors_are_numbered_and_listed(name: str, steps: list[Any], first: str, second: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        build(name, *steps)
    head, *errors = caught.value.message.split("\n", 1)
    assert head.startswith(f"2 errors while building NodeDef 'n' using Op<name={name};")
    assert errors[0].startswith(first)
    assert errors[0].endswith(second)


def test_n7_an_unknown_op_is_named_with_the_node() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        NodeDefBuilder("n", "Op Does Not Exist", OpRegistry()).input(FakeInput()).finalize()
    assert "Op type not registered 'Op Does Not Exist'" in caught.value.message
    assert "while building NodeDef 'n'" in caught.value.message


def test_n7_an_op_may_be_given_by_name() -> None:
    registry = OpRegistry()
    registry.register(OPS["Simple"])
    assert NodeDefBuilder("n", "Simple", registry).input(FakeInput()).finalize().op == "Simple"


def test_n7_an_op_given_by_name_alone_is_looked_up_in_the_global_registry() -> None:
    node = NodeDefBuilder("n", "AddN").input([NodeOut("a", 0, d.float32), NodeOut("b", 1, d.float32)]).finalize()
    assert summarize_node_def(node) == "{{node n}} = AddN[N=2, T=DT_FLOAT](a, b:1)"
    with pytest.raises(InvalidArgumentError, match="Op type not registered 'Nowhere'"):
        NodeDefBuilder("n", "Nowhere").finalize()


def test_n7_finalize_may_be_called_twice_with_equal_results() -> None:
    builder = NodeDefBuilder("n", OPS["Simple"]).input(FakeInput()).control_input("c")
    assert builder.finalize() == builder.finalize()


def test_n7_inputs_may_follow_a_failed_finalize() -> None:
    builder = NodeDefBuilder("n", OPS["Simple"])
    with pytest.raises(InvalidArgumentError):
        builder.finalize()
    assert builder.input(FakeInput()).finalize().input == ("a",)


def test_n7_what_is_added_later_does_not_change_an_earlier_node() -> None:
    builder = NodeDefBuilder("n", OPS["PolymorphicDefaultOut"])
    first = builder.finalize()
    builder.attr("_note", 1).control_input("c")
    assert (first.input, dict(first.attr)) == ((), {"T": d.string})
    assert builder.finalize().input == ("^c",)


def test_n7_attrs_keep_the_order_in_which_they_were_found() -> None:
    assert list(build("InPolymorphicTwice", give(FakeInput(0)), give(FakeInput(1, d.bool_))).attr.items()) == [
        ("N", 0),
        ("M", 1),
        ("T", d.bool_),
    ]


def test_n7_a_ref_tensor_has_a_ref_input_type_but_a_base_attr() -> None:
    node = build("PolymorphicRefIn", give(FakeInput(d.bool_.ref)))
    assert node.attr["T"] is d.bool_
    assert in_out_types_for_node(node, OPS["PolymorphicRefIn"])[0] == (d.bool_.ref,)
