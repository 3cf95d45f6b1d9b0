"""Definitions as the last expression of a cell: pictures of their fields."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from kernelext.display.formatters import Formatters
from kernelext.guard import Guard
from tests.kernelext.conftest import NotebookShell
from tests.support.hostile_names import HOSTILE_NAMES

SHAPES = {"circle", "defs", "desc", "g", "path", "rect", "style", "svg", "text", "title", "tspan"}

SQUARE_PLUS_ONE = """
SquarePlusOne[T:{float, double}](x:T) -> (y:T) {
  a = Square[T=$T](x)
  o = OnesLike[T=$T](x)
  y = AddV2[T=$T](a:y, o:y)
  return y = y:z:0
}
"""


@pytest.fixture
def shell_with_formats(shell: NotebookShell) -> Iterator[NotebookShell]:
    formatters = Formatters(shell, lambda graph: f"<p>{len(graph)} nodes</p>", lambda _function: False, Guard())
    formatters.start()
    yield shell
    formatters.stop()


def shown(shell: NotebookShell, value: object) -> dict[str, str]:
    display: Any = shell.display_formatter
    data: dict[str, str] = display.format(value)[0]
    return data


def drawing(shell: NotebookShell, value: object) -> ET.Element:
    """The SVG of the only picture of a value."""
    (address,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', shown(shell, value)["text/html"])
    return ET.fromstring(base64.b64decode(address))


def words(picture: ET.Element) -> list[str]:
    """The texts of a picture, without the titles that a pointer shows."""
    texts = [element for element in picture.iter() if element.tag.endswith("}text")]
    return [part for text in texts for part in [text.text or "", *[inner.text or "" for inner in text if inner.tag.endswith("}tspan")]]]


def lines(picture: ET.Element, kind: str) -> int:
    return sum(element.get("class") == f"line {kind}" for element in picture.iter())


def test_a_node_def_stands_between_its_producers_and_its_op(shell_with_formats: NotebookShell) -> None:
    builder = gc.NodeDefBuilder("sum", "AddV2").input("left", 1, gc.float32).input("right", 0, gc.float32)
    picture = drawing(shell_with_formats, builder.control_input("init").device("/gpu:1").finalize())
    texts = words(picture)
    assert [text in texts for text in ("left", "output 1", "right", "after it", "left:1", "^init", "/gpu:1", "x: T", "z: T")] == [True] * 9
    assert (lines(picture, "data"), lines(picture, "control"), lines(picture, "refers")) == (2, 1, 2)


def test_a_builder_shows_what_is_there_and_each_error(shell_with_formats: NotebookShell) -> None:
    builder = gc.NodeDefBuilder("sum", "AddV2").input("left", 0, gc.float32)
    assert "1 of 2" in words(drawing(shell_with_formats, builder))
    builder.input("right", 0, gc.int32)
    texts = " ".join(" ".join(words(drawing(shell_with_formats, builder))).split())
    assert "2 of 2" in texts
    assert "Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32" in texts
    with pytest.raises(gc.errors.InvalidArgumentError, match="Inconsistent values"):
        builder.finalize()


def test_a_builder_of_an_unknown_op_is_shown_with_its_error(shell_with_formats: NotebookShell) -> None:
    texts = words(drawing(shell_with_formats, gc.NodeDefBuilder("n", "NoSuchOp")))
    assert "0 of 0" in texts
    assert any("NoSuchOp" in text for text in texts)


def test_an_op_def_has_a_line_from_each_open_type_to_its_attr(shell_with_formats: NotebookShell) -> None:
    op_def = gc.OpDefBuilder("Many").input("x: N * T").input("y: float").output("z: T").attr("N: int >= 2").attr("T: type").finalize()
    picture = drawing(shell_with_formats, op_def)
    assert lines(picture, "data") == 3
    assert [text in words(picture) for text in ("N * T", "int >= 2", "float")] == [True] * 3


def test_an_instantiation_is_a_picture_of_node_defs(shell_with_formats: NotebookShell) -> None:
    result = gc.instantiate_function(gc.parse_function(SQUARE_PLUS_ONE), {"T": gc.float32})
    picture = drawing(shell_with_formats, result)
    assert lines(picture, "data") == sum(len(node.input) for node in result.nodes) == 5
    assert {node.name for node in result.nodes} <= set(words(picture))
    assert "y = AddV2[T=float](a, o)" in shown(shell_with_formats, result)["text/plain"]


def test_a_device_set_has_a_card_for_each_task(shell_with_formats: NotebookShell) -> None:
    texts = words(drawing(shell_with_formats, gc.simulated_devices("2 tasks x (1 cpu, 2 gpu)")))
    assert sum(text.startswith("/job:") for text in texts) == 2
    assert sum("priority 210" in text for text in texts) == 4


def test_a_context_names_unknown_sizes_that_are_the_same(shell_with_formats: NotebookShell) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None, 3], name="x")
        other = gc.placeholder(gc.float32, [3, None], name="other")
        product = gc.matmul(x, other, name="product")
    refiner = gc.ShapeRefiner(graph)
    for node in graph.nodes:
        refiner.add_node(node)
    texts = words(drawing(shell_with_formats, refiner.get_context(product.node)))
    assert [text in texts for text in ("[?a, 3]", "[3, ?b]", "[?a, ?b]")] == [True] * 3


def test_a_call_frame_shows_its_returns_once_they_are_set(shell_with_formats: NotebookShell) -> None:
    frame = gc.FunctionCallFrame([gc.float32], [gc.int32])
    assert [text.split()[-1] for text in words(drawing(shell_with_formats, frame)) if text.startswith(("float", "int32"))] == ["set", "set"]
    frame.set_args([np.float32(2.5)])
    frame.set_retval(0, np.int32(7))
    assert shown(shell_with_formats, frame)["text/plain"] == "arg 0: float  2.5\nret 0: int32  7"


def test_source_and_sink_show_where_a_run_begins_and_ends(shell_with_formats: NotebookShell) -> None:
    with gc.Graph().as_default() as graph:
        a, b = gc.constant(1.0, name="a"), gc.constant(2.0, name="b")
        gc.add(a, b, name="sum")
    for end, texts in [(graph.source_node, {"_SOURCE", "a", "b"}), (graph.sink_node, {"_SINK", "sum"})]:
        picture = drawing(shell_with_formats, end)
        assert texts <= set(words(picture))
        assert lines(picture, "control") == len(texts) - 1


def test_names_of_definitions_are_text(shell_with_formats: NotebookShell) -> None:
    for name in HOSTILE_NAMES:
        node = gc.NodeDef(name=name, op=name, input=(name, f"^{name}"), device=name, attr={name: name.encode("utf-8", "replace")})
        html = shown(shell_with_formats, node)["text/html"]
        assert re.findall(r"<(?!/?(?:figure|style|div|img|figcaption|details|summary|pre)\b)\S*", html) == []
        assert {element.tag.rpartition("}")[2] for element in drawing(shell_with_formats, node).iter()} <= SHAPES


def test_pictures_have_the_colours_of_dark_pages(shell_with_formats: NotebookShell) -> None:
    picture = drawing(shell_with_formats, gc.simulated_devices("1 cpu"))
    assert "prefers-color-scheme:dark" in "".join(element.text or "" for element in picture.iter() if element.tag.endswith("}style"))
