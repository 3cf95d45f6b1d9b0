"""Summaries and comparison of OpDefs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from graphcore import dtypes as d
from graphcore.definitions import (
    AttrDef,
    OpDefBuilder,
    attr_defs_equal,
    check_attr_defaults_unchanged,
    op_def_equal,
    op_def_hash,
    repeated_attr_defs_equal,
    summarize_op_def,
)
from graphcore.errors import InvalidArgumentError


def op(name: str = "Test", *specs: str) -> OpDefBuilder:
    builder = OpDefBuilder(name)
    for spec in specs:
        builder.attr(spec)
    return builder


@pytest.mark.parametrize(
    ("builder", "summary"),
    [
        (op("Simple").input("a: int32").output("out: float"), "Op<name=Simple; signature=a:int32 -> out:float>"),
        (op("In", "T: type").input("i: T"), "Op<name=In; signature=i:T -> ; attr=T:type>"),
        (op("L", "N: int", "T: list(type)").input("a: N*int32").input("b: T"),
         "Op<name=L; signature=a:N*int32, b: -> ; attr=N:int,min=1; attr=T:list(type),min=1>"),
        (op("R").output("a: Ref(int32)"), "Op<name=R; signature= -> a:Ref(int32)>"),
        (op("D", "e: {'a', 'b'} = 'a'", "i: int >= 2 = 3", "t: {float, int32}"),
         'Op<name=D; signature= -> ; attr=e:string,default="a",allowed=["a", "b"]; attr=i:int,default=3,min=2; attr=t:type,allowed=[DT_FLOAT, DT_INT32]>'),
        (op("F").set_is_commutative().set_is_aggregate().set_is_stateful().set_allows_uninitialized_input(),
         "Op<name=F; signature= -> ; is_commutative=true; is_aggregate=true; is_stateful=true; allows_uninitialized_input=true>"),
    ],
    ids=lambda value: f"O7-{value[8:20]}" if isinstance(value, str) else "",
)  # fmt: skip
def test_an_op_is_summarised_in_one_line(builder: OpDefBuilder, summary: str) -> None:
    assert summarize_op_def(builder.finalize()) == summary


BASE = AttrDef(name="x", type="int")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "y"},
        {"type": "float"},
        {"description": "d"},
        {"has_minimum": True},
        {"minimum": 2},
        {"default_value": 0},
        {"default_value": ()},
        {"allowed_values": ()},
        {"allowed_values": (d.float32,)},
    ],
    ids=lambda change: f"O9-{next(iter(change.items()))}",
)
def test_attr_defs_that_differ_in_one_field_are_not_equal(change: dict[str, Any]) -> None:
    other = msgspec.structs.replace(BASE, **change)
    assert not attr_defs_equal(BASE, other)
    assert not attr_defs_equal(other, BASE)
    assert attr_defs_equal(other, msgspec.structs.replace(other))


def test_o9_an_int_default_differs_from_an_equal_bool_default() -> None:
    first, second = (msgspec.structs.replace(BASE, default_value=value) for value in (1, True))
    assert not attr_defs_equal(first, second)


def test_o9_repeated_attrs_are_compared_by_name() -> None:
    a, b = AttrDef(name="a", type="int"), AttrDef(name="b", type="int")
    assert repeated_attr_defs_equal([a, b], [b, a])
    assert not repeated_attr_defs_equal([a, b], [a])
    assert not repeated_attr_defs_equal([a], [a, b])
    assert not repeated_attr_defs_equal([a, a], [a, b])
    assert not repeated_attr_defs_equal([a, b], [a, AttrDef(name="b", type="float")])


def test_o9_op_def_equality_ignores_the_order_of_attrs_only() -> None:
    first, second = op("X", "a: int", "b: float = 1.0").finalize(), op("X", "b: float = 1.0", "a: int").finalize()
    assert first != second
    assert op_def_equal(first, second)
    assert op_def_hash(first) == op_def_hash(second)
    assert not op_def_equal(first, op("X", "a: int", "b: float = 2.0").finalize())
    assert not op_def_equal(first, op("X", "a: int", "b: float = 1.0").set_is_stateful().finalize())
    assert not op_def_equal(first, op("Y", "a: int", "b: float = 1.0").finalize())


@pytest.mark.parametrize(
    ("old", "new"),
    [(["n: string"], ["n: string"]), (["n: string"], ["n: string = 'x'"]), (["n: string = 'x'"], ["n: string = 'x'"]), (["n: int = 1"], []),
     ([], ["n: int = 1"])],
    ids=["O9-none", "O9-added", "O9-same", "O9-attr removed", "O9-attr added"],
)  # fmt: skip
def test_defaults_that_keep_their_meaning_are_accepted(old: list[str], new: list[str]) -> None:
    check_attr_defaults_unchanged(op("X", *old).finalize(), op("X", *new).finalize())


@pytest.mark.parametrize(
    ("new", "text"),
    [
        ("n: string = 'y'", 'Attr \'n\' has changed it\'s default value; from "x" to "y"'),
        ("n: string", "Attr 'n' has removed it's default; from \"x\" to no default"),
    ],
    ids=["O9-changed", "O9-removed"],
)
def test_defaults_that_change_are_refused(new: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_attr_defaults_unchanged(op("X", "n: string = 'x'").finalize(), op("X", new).finalize())
    assert caught.value.message == text
