"""Printed text reads back to an equal value, and nonsense raises only GraphErrors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphcore.attrs import AttrValue
from graphcore.definitions import FunctionDef, NodeDef, OpDef, attr_values_equal, attrs_equal
from graphcore.errors import GraphError, NotFoundError
from graphcore.functions import define_function
from graphcore.text import attr_value_text, debug_string, parse_attr_text, parse_function, parse_nodes, parse_op_signature
from tests.graphcore.functions.example_ops import op_def
from tests.graphcore.text.strategies import clear_values, functions, names, nodes, ops_of, signatures


@given(clear_values)
@settings(max_examples=100, deadline=None)
def test_attr_values_read_back_with_their_kind(value: AttrValue) -> None:
    assert attr_values_equal(parse_attr_text(attr_value_text(value)), value)


@given(signatures(names.filter(bool)))
@settings(max_examples=60, deadline=None)
def test_op_signatures_read_back(signature: OpDef) -> None:
    assert parse_op_signature(debug_string(signature)) == signature


@given(functions())
@settings(max_examples=60, deadline=None)
def test_functions_read_back(function: FunctionDef) -> None:
    ops = ops_of(function)

    def look_up(name: str) -> OpDef:
        if name not in ops:
            raise NotFoundError(name)
        return ops[name]

    again = parse_function(debug_string(function, look_up), look_up)
    assert again == function
    for node, same in zip(function.node_def, again.node_def, strict=True):
        assert node.op not in ops or attrs_equal(node.attr, same.attr)
    assert attrs_equal(again.attr, function.attr)
    assert all(attrs_equal(again.arg_attr[index], attrs) for index, attrs in function.arg_attr.items())


@given(st.lists(nodes, max_size=4))
@settings(max_examples=50, deadline=None)
def test_node_lines_read_back(some: list[NodeDef]) -> None:
    assert parse_nodes("\n".join(debug_string(node) for node in some)) == some


PIECES = st.sampled_from([*"[](){}<>@=:,*.$\"'\\#?-^\n 0123", "->", "return", "Ref(", "T", "x", "type", "list(", "float", "Tensor<type: ", "shape: ", "values: ", "[T:type]", "(x:T)", " -> (y:T) {", "int", ">=", "= 1", "Tensor<type: int32 shape: [2] values: 1 2>", "device=CPU:0", "@arg 0 [", "@attr", "é", "\x00"])  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=30))
@settings(max_examples=150, deadline=None)
@example("f[N:int]() -> () {} ")
@example("Tensor<type: string shape: [1] values: \\400>")
@example("[" * 2000)
@example("1" * 5000)
@example("Tensor<type: int32 shape: [99999999999999999999] values: 1>")
@example('f[T:type = float]() -> () { "\ud800" = X() }')
@pytest.mark.parametrize("parse", [parse_attr_text, parse_function, parse_nodes, parse_op_signature, lambda text: define_function(text, "T:type", op_def)], ids=["value", "function", "nodes", "signature", "define"])  # fmt: skip
def test_nonsense_gives_a_graph_error_or_a_value(parse: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(GraphError):
        assert parse(text) is not None
