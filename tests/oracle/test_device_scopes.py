"""The devices of nodes in random nested `device` and `colocate_with` blocks, as in TensorFlow 1."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

JOBS, TYPES = ("ps", "worker"), ("CPU", "GPU")


class Program:
    """The source of a random program: nested blocks with nodes, variables and colocation.

    Args:
        seed: that of the random choices.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.made: list[str] = []

    def device(self) -> str:
        """The source of a request: parts in random number, none, None, or a function that chooses by op."""
        kind = self.random.random()
        if kind < 0.1:
            return "None"
        if kind < 0.3:
            return f"(lambda op: {self.spec()!r} if op.type in ('Const', 'VariableV2') else {self.spec()!r})"
        return repr(self.spec())

    def spec(self) -> str:
        """A request."""
        parts = []
        if self.random.random() < 0.5:
            parts.append(f"/job:{self.random.choice(JOBS)}")
        if self.random.random() < 0.2:
            parts.append(f"/replica:{self.random.randrange(3)}")
        if self.random.random() < 0.4:
            parts.append(f"/task:{self.random.randrange(3)}")
        if self.random.random() < 0.5:
            parts.append(f"/device:{self.random.choice(TYPES)}:{self.random.randrange(3)}")
        return "".join(parts)

    def block(self, depth: int, indent: str) -> None:
        """A block with nodes and further blocks."""
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            if kind < 0.4 or depth > 4:
                self.node(indent)
                continue
            opening = f"with tf.device({self.device()}):"
            if kind > 0.85 and self.made:
                opening = f"with tf.get_default_graph().colocate_with({self.random.choice(self.made)}, {self.random.random() < 0.2}):"
            self.lines.append(indent + opening)
            self.block(depth + 1, indent + "    ")

    def node(self, indent: str) -> None:
        """A constant, a variable or a sum."""
        name = f"n{len(self.made)}"
        sources = [f"tf.constant(1.0, name='{name}').op", f"tf.Variable(1.0, name='{name}', use_resource=False).op"]
        if self.made:
            sources.append(f"tf.negative({self.random.choice(self.made)}.outputs[0], name='{name}').op")
        self.lines.append(f"{indent}{name} = {self.random.choice(sources)}")
        self.made.append(name)

    def source(self) -> str:
        """The whole program."""
        self.block(0, "")
        self.node("")
        names = ", ".join(self.made)
        return "\n".join([*self.lines, f"found = [n.device for n in [{names}]]", f"groups = [n.colocation_groups() for n in [{names}]]"])


@pytest.mark.parametrize("first", range(0, 200, 40))
def test_nodes_get_the_devices_and_groups_that_they_get_in_tensorflow(first: int, oracle: Oracle) -> None:
    sources = [Program(seed).source() for seed in range(first, first + 40)]
    snippet = """
answer = []
for source in arguments["sources"]:
    with tf.Graph().as_default():
        names = {"tf": tf.compat.v1}
        exec(source, names)
        answer.append((names["found"], names["groups"]))
"""
    theirs = oracle.run(snippet, sources=sources).answer
    for source, (devices, groups) in zip(sources, theirs, strict=True):
        names: dict[str, Any] = {"tf": gc, "np": np}
        with gc.Graph().as_default():
            exec(compile(source, "<program>", "exec"), names)
        assert names["found"] == devices, source
        assert names["groups"] == [list(each) for each in groups], source
