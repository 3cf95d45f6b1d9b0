"""Fuzz all readers of files and text: only GraphErrors, in little time and memory, are allowed.

    python -m tests.support.fuzzing.fuzz --runs 100000 --seed 1
    python -m tests.support.fuzzing.fuzz --seed 1 --only 4711       repeat one input and show the traceback

Input and outcome of run N depend on the seed and on N alone.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import random
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import graphcore as gc
from graphcore.attrs import TensorValue
from graphcore.definitions import OpDefBuilder, summarize_node_def, summarize_op_def, validate_external_node_def_syntax, validate_op_def
from graphcore.definitions.wire import (
    function_def_to_bytes,
    graph_def_from_bytes,
    graph_def_to_bytes,
    graph_def_to_json,
    graph_def_to_text,
    op_def_to_bytes,
    op_list_from_bytes,
    op_list_to_bytes,
    read_meta_graphs,
)
from graphcore.definitions.wire.files import looks_binary
from graphcore.errors import GraphError
from graphcore.graph import ImportOptions, import_graph_def
from graphcore.text import attr_value_text, debug_string_whole, parse_attr_text
from tests.support.fuzzing.fuzz_inputs import Input, corpus, damaged, graph_inputs, random_graph, right_graph
from tests.support.fuzzing.messages import damaged_json, damaged_text
from tests.support.yardstick import loop_seconds

TURNS = 140_000_000
"""The time limit of an input, in iterations of an empty loop; half is the claim, since the machine may be busy."""
MEMORY = 3 << 30
TEXT, QUOTES = 5_000, 20
"""The longest error text: each of many specs may be quoted in its own sentence, as TensorFlow does."""
SHOWN = 400
TOKENWISE = 0.3
"""The share of texts that are damaged token by token, which leaves more of them right."""
FILES = frozenset({"graph", "ops", "saved model"})
WHOLE = 0.15
"""The share of inputs that are random graphs without further damage, which get past the parsers."""


def read_graph(data: bytes) -> None:
    """Read a file, access its content, write it in each form, read these, import it."""
    graph = graph_def_from_bytes(data)
    for node in graph.node:
        assert summarize_node_def(node)
        hash(node)
        with contextlib.suppress(GraphError):
            validate_external_node_def_syntax(node)
        for value in node.attr.values():
            if isinstance(value, TensorValue):
                with contextlib.suppress(GraphError):
                    assert value.array.shape == tuple(value.shape.as_list())
    # As bytes, since NaN in a file does not equal itself.
    written = graph_def_to_bytes(graph)
    assert graph_def_to_bytes(graph_def_from_bytes(written)) == written
    with contextlib.suppress(GraphError):
        import_graph_def(graph, gc.Graph(), ImportOptions(allow_unknown_ops=True))
    graph_def_to_text(graph)
    graph_def_to_json(graph)
    debug_string_whole(graph)


def read_ops(data: bytes) -> None:
    """Read an OpList, print and check its ops."""
    ops = op_list_from_bytes(data)
    written = op_list_to_bytes(ops)
    assert op_list_to_bytes(op_list_from_bytes(written)) == written
    for op_def in ops:
        gc.debug_string(op_def)
        assert summarize_op_def(op_def)
        with contextlib.suppress(GraphError):
            validate_op_def(op_def)


def read_specs(data: bytes) -> None:
    """Build an op from specs, separated by null characters."""
    builder = OpDefBuilder("Test")
    add = {"A": builder.attr, "I": builder.input, "O": builder.output, "D": builder.doc}
    for spec in text_of(data).split("\0"):
        add.get(spec[:1], builder.attr)(spec[1:])
    op_def = builder.finalize()
    assert gc.parse_op_signature(gc.debug_string(op_def)).name == "Test"


def read_function(data: bytes) -> None:
    """Read a function, print it, read it again."""
    function = gc.parse_function(text_of(data))
    again = gc.parse_function(gc.debug_string(function))
    assert function_def_to_bytes(again) == function_def_to_bytes(function)


def read_nodes(data: bytes) -> None:
    """Read nodes and print them."""
    gc.debug_string(gc.parse_nodes(text_of(data)))


def read_signature(data: bytes) -> None:
    """Read an op's signature, print it, read it again."""
    op_def = gc.parse_op_signature(text_of(data))
    assert op_def_to_bytes(gc.parse_op_signature(gc.debug_string(op_def))) == op_def_to_bytes(op_def)


def read_value(data: bytes) -> None:
    """Read an attr value and print it."""
    attr_value_text(parse_attr_text(text_of(data)))


def text_of(data: bytes) -> str:
    """Decode as a notebook cell or a file with invalid characters would be."""
    return data.decode(errors="replace")


READERS: dict[str, Callable[[bytes], object]] = {
    "graph": read_graph, "ops": read_ops, "saved model": read_meta_graphs,
    "specs": read_specs, "function": read_function, "nodes": read_nodes, "signature": read_signature, "value": read_value,
}  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """The failure of one input."""

    number: int
    reader: str
    data: bytes
    what: str

    def __str__(self) -> str:
        return f"input {self.number} for {self.reader}: {self.what}\n  {self.data[:SHOWN]!r}"


@dataclass
class Report:
    """The numbers of accepted and refused inputs by reader, and the failures."""

    taken: collections.Counter[str] = field(default_factory=collections.Counter)
    refused: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[Failure] = field(default_factory=list)
    slowest: float = 0.0

    def __str__(self) -> str:
        lines = [f"{name:12} taken {self.taken[name]:7} refused {self.refused[name]:7}" for name in READERS]
        return "\n".join([*lines, f"slowest input {self.slowest:.2f} s, failures {len(self.failures)}"])


@functools.lru_cache(1)
def ops() -> list[gc.OpDef]:
    """The registered ops."""
    return [entry.op_def for entry in gc.op_registry]


@functools.lru_cache(2)
def sources(seed: int) -> dict[str, list[bytes]]:
    """The undamaged inputs of a seed, by reader."""
    found: dict[str, list[bytes]] = {reader: [] for reader in READERS}
    for reader, data in corpus(random.Random(seed)):
        found[reader].append(data)
    return found


def make_input(seed: int, number: int) -> Input:
    """The damaged input of one run: as many for each reader, and some whole graphs."""
    rng = random.Random(f"{seed} {number}")
    if rng.random() < WHOLE:
        return rng.choice(graph_inputs(rng.choice([random_graph, right_graph])(ops(), rng)))
    reader, other = rng.choice(list(READERS)), rng.choice(list(READERS))
    source = rng.choice(sources(seed)[reader])
    if reader in FILES and not looks_binary(source) and rng.random() < TOKENWISE:
        data = (damaged_json if source.startswith(b"{") else damaged_text)(source.decode(), rng).encode()
    else:
        data = damaged(source, rng.choice(sources(seed)[other]), rng)
    if rng.random() < 0.02:
        reader = rng.choice(list(READERS))
    return reader, data


def run(seed: int, numbers: range) -> Report:
    """Run the inputs with these numbers; a warning counts as a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return _run(seed, numbers)


def _run(seed: int, numbers: range) -> Report:
    report = Report()
    for number in numbers:
        reader, data = make_input(seed, number)
        start = time.process_time()
        try:
            READERS[reader](data)
            report.taken[reader] += 1
        except GraphError as error:
            report.refused[reader] += 1
            if len(str(error)) > TEXT + QUOTES * len(data):
                report.failures.append(Failure(number, reader, data, f"an error text of {len(str(error))} characters"))
        except Exception as error:  # noqa: BLE001 - that any comes out is what is looked for
            report.failures.append(Failure(number, reader, data, f"{type(error).__name__}: {str(error)[:SHOWN]}"))
        seconds = time.process_time() - start
        report.slowest = max(report.slowest, seconds)
        if seconds > loop_seconds(TURNS):
            report.failures.append(Failure(number, reader, data, f"took {seconds:.1f} s"))
    return report


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Feed damaged input to everything that reads files or text.")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="repeat this run alone and show the traceback")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if arguments.only is not None:
        reader, data = make_input(arguments.seed, arguments.only)
        print(f"{reader}: {data!r}")
        try:
            READERS[reader](data)
        except GraphError:
            traceback.print_exc()
        return
    begin = time.monotonic()
    report = run(arguments.seed, range(arguments.first, arguments.first + arguments.runs))
    for failure in report.failures[:20]:
        print(failure)
    print(f"{report}\n{arguments.runs} inputs of seed {arguments.seed} in {time.monotonic() - begin:.0f} s")
    sys.exit(bool(report.failures))


if __name__ == "__main__":
    main()
