"""Numbers of thousands of digits are refused by every reader of texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import graphcore as gc
from graphcore.definitions import GraphDef, NodeDef, OpDefBuilder, VersionDef
from graphcore.definitions.wire import graph_def_from_bytes
from graphcore.graph import import_graph_def
from graphcore.text import parse_attr_text

DIGITS = "9" * 5000


def load_with_input(name: str) -> None:
    nodes = (NodeDef("x", "Placeholder", (), "", {"dtype": gc.float32}), NodeDef("y", "Identity", (name,), "", {"T": gc.float32}))
    import_graph_def(GraphDef(node=nodes, versions=VersionDef(producer=21)), gc.Graph())


def place_on(device: str) -> None:
    with gc.Graph().as_default(), gc.device(device):
        gc.constant(1)


READERS: list[Callable[[str], object]] = [
    parse_attr_text,
    lambda digits: OpDefBuilder("Test").attr(f"a: int = {digits}").finalize(),
    lambda digits: OpDefBuilder("Test").attr(f"a: int >= {digits}").finalize(),
    lambda digits: OpDefBuilder("Test").attr(f"a: type = {digits}").finalize(),
    lambda digits: OpDefBuilder("Test").attr(f"a: list(int) = [{digits}]").finalize(),
    lambda digits: OpDefBuilder("Test").attr(f"a: shape = {{dim{{size:{digits}}}}}").finalize(),
    lambda digits: gc.parse_op_signature(f"Op[a:int = {digits}](x:float) -> (y:float)"),
    lambda digits: gc.parse_op_signature(f"Op[a:int >= {digits}](x:float) -> (y:float)"),
    lambda digits: gc.parse_nodes(f"y = Identity[T=float, a={digits}](x)"),
    lambda digits: gc.Graph().as_graph_element(f"x:{digits}"),
    lambda digits: load_with_input(f"x:{digits}"),
    lambda digits: graph_def_from_bytes(f"versions {{ producer: {digits} }}".encode()),
    lambda digits: graph_def_from_bytes(f'{{"versions": {{"producer": {digits}}}}}'.encode()),
    lambda digits: graph_def_from_bytes(f'{{"versions": {{"producer": "{digits}"}}}}'.encode()),
    lambda digits: place_on(f"/job:a/task:{digits}"),
]


@pytest.mark.parametrize("read", READERS)
def test_a_number_of_thousands_of_digits_is_refused(read: Callable[[str], object]) -> None:
    with pytest.raises(gc.GraphError):
        read(DIGITS)


def test_an_input_that_ends_in_a_digit_of_another_script_is_no_output_of_a_node() -> None:
    with pytest.raises(gc.GraphError, match="Unknown input node"):
        load_with_input("x:\u00b2")
