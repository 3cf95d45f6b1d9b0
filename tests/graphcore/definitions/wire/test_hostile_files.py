"""Damaged and hostile files: a GraphError at once, never another exception or much memory."""

from __future__ import annotations

import contextlib
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcore.definitions import summarize_node_def, validate_external_node_def_syntax
from graphcore.definitions.wire import (
    graph_def_from_bytes,
    graph_def_to_bytes,
    graph_def_to_json,
    graph_def_to_text,
    read_meta_graphs,
    schema,
)
from graphcore.errors import GraphError, InvalidArgumentError
from tests.support.yardstick import loop_seconds

DATA = Path(__file__).parents[3] / "data"
TURNS = 300_000_000
"""Reading a file for longer than an empty loop of so many turns means the square of its size, or worse."""
FILES = {path.stem: path.read_bytes() for path in sorted(DATA.glob("*.pb")) if path.stat().st_size < 50_000}
GRAPHS = {name: graph_def_from_bytes(data) for name, data in FILES.items()}
SOURCES = [
    *FILES.values(),
    *(graph_def_to_text(graph).encode() for graph in GRAPHS.values()),
    *(graph_def_to_json(graph).encode() for graph in GRAPHS.values()),
]


def read_and_use(data: bytes) -> None:
    """Read a file as far as possible."""
    try:
        graph_def = graph_def_from_bytes(data)
    except GraphError:
        return
    for node_def in graph_def.node:
        assert summarize_node_def(node_def)
        assert hash(node_def) == hash(node_def)
        with contextlib.suppress(InvalidArgumentError):
            validate_external_node_def_syntax(node_def)
    assert graph_def_from_bytes(graph_def_to_bytes(graph_def)) == graph_def


@settings(max_examples=100)
@given(st.data())
def test_a_damaged_file_gives_a_graph_or_a_graph_error(data: st.DataObject) -> None:
    source = bytearray(data.draw(st.sampled_from(SOURCES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(source) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "drop", "repeat"])):
            case "flip":
                source[at] ^= 1 << data.draw(st.integers(0, 7))
            case "cut":
                del source[max(at, 1) :]
            case "drop" if len(source) > 8:
                del source[at : at + 3]
            case _:
                source[at:at] = source[at : at + 9]
    read_and_use(bytes(source))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_graph_or_a_graph_error(data: bytes) -> None:
    read_and_use(data)
    with contextlib.suppress(InvalidArgumentError):
        read_meta_graphs(data)


@pytest.mark.parametrize("length", [1, 10, 100, 1000])
@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_that_is_cut_off_is_never_read_as_whole(name: str, length: int) -> None:
    try:
        graph_def = graph_def_from_bytes(FILES[name][:-length])
    except InvalidArgumentError:
        return
    assert graph_def != GRAPHS[name]


def deep_func(depth: int) -> bytes:
    node = schema.GraphDef().node.add(name="n", op="Op")
    func = node.attr["f"].func
    for _ in range(depth):
        func = func.attr["f"].func
    func.name = "end"
    data: bytes = b"\x0a" + _varint(node.ByteSize()) + node.SerializePartialToString()
    return data


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def many(field: str, count: int) -> bytes:
    graph = schema.GraphDef()
    node = graph.node.add(name="n", op="Op")
    if field == "input":
        node.input.extend(["a"] * count)
    elif field == "node":
        for _ in range(count):
            graph.node.add(name="n", op="Op")
    else:
        node.attr["a"].list.i.extend(range(count))
    data: bytes = graph.SerializeToString()
    return data


MILLION = 1_000_000
# Made lazily, so that failure reports do not print them; from a number that stands for the million.
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "nested funcs": lambda _: deep_func(20),
    "deeply nested funcs": lambda _: deep_func(200),
    "length of 2 GB": lambda _: b"\x0a\x80\x80\x80\x80\x08" + b"\0" * 16,
    "a hundred thousand tags": lambda n: b"\x0a" * (n // 10),
    "deep text": lambda _: b"node { attr { key: 'a' value { func { " * 3_000,
    "deep JSON": lambda _: b'{"node":[{"attr":{"a":{"func":' * 3_000,
    "deep unknown JSON": lambda n: b"{" + b'"a":{' * (n // 20),
    "open string": lambda n: b"node { name: '" + b"x" * n,
    "a million inputs": lambda n: many("input", n),
    "a million ints": lambda n: many("list", n),
    "a million ints in text, the last one wrong": lambda n: b"node{attr{value{list{" + b"i: 1\n" * n + b"i: x}}}}",
    "a million ints in JSON, the last one wrong": lambda n: b'{"node":[{"attr":{"a":{"list":{"i":[' + b"1," * n + b'"x"]}}}}]}',
    "a million strings in text and no end": lambda n: b"node {" + b'input: "a"\n' * n,
    "a million strings in one line and no end": lambda n: b"node {" + b'input: "a" ' * n,
    "a million empty functions in text": lambda n: b"library {" + b"function {}\n" * n + b"}",
    "a hundred thousand strings that are cut off": lambda n: b"node {" + b"input: 'a\n" * (n // 10),
    "a hundred thousand octal numbers, half of them wrong": lambda n: b"versions { bad_consumers: [" + b"017," * (n // 10) + b"08]}",
    "a hundred thousand nodes that are not closed": lambda n: b"node {" * (n // 10),
    "a million empty nodes": lambda n: b"\x0a\x00" * n,
    "the same name 30000 times": lambda n: many("node", 3 * n // 100),
}


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_file_is_read_or_refused_at_once(name: str) -> None:
    data = HOSTILE[name](MILLION)
    begin = time.process_time()
    message = refusal(data)
    seconds = time.process_time() - begin
    data = HOSTILE[name](MILLION // 10)  # reading takes several times as long under tracemalloc
    tracemalloc.start()
    refusal(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(message) < 1_000
    assert seconds < loop_seconds(TURNS)
    assert peak < 100 * max(len(data), 1 << 16)


def refusal(data: bytes) -> str:
    """The error of a file, "" if it is accepted."""
    try:
        graph_def_from_bytes(data)
    except InvalidArgumentError as error:
        return error.message
    return ""
