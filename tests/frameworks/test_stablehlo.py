"""Lowered and compiled functions of JAX: operations of StableHLO and of HLO text as JAX has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from graphcore.frontends.foreign import ForeignGraph
from graphcore.frontends.sources import open_source

jax: Any = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.frameworks
OPERATION = re.compile(r"^\s+(?:ROOT )?%?\S+ = (?:\(.*?\)|\S+) ([a-z-]+)\(", re.MULTILINE)


def lowered() -> Any:
    def network(x: Any, w: Any) -> Any:
        y, _ = jax.lax.scan(lambda carry, _: (jnp.tanh(carry @ w), carry.sum()), x, None, length=3)
        return jax.lax.cond(y.sum() > 0, jnp.sin, jnp.cos, y), jnp.argsort(y)

    return jax.jit(network).lower(jnp.ones((2, 4)), jnp.ones((4, 4)))


def operations_of(source: ForeignGraph) -> list[str]:
    """The names of all operations, those of functions and bodies included."""
    functions = (source.main, *source.functions.values())
    return sorted(node.op for function in functions for node in function.nodes if node.kind not in {"input", "output"})


def walked(operation: Any) -> list[Any]:
    """The operations within an operation of MLIR, as JAX's own reader gives them."""
    found = []
    for region in operation.regions:
        for block in region.blocks:
            for each in block.operations:
                found += [each.operation, *walked(each.operation)]
    return found


def test_operations_of_stablehlo_are_those_of_its_own_reader(tmp_path: Path) -> None:
    module = lowered().compiler_ir("stablehlo")
    (tmp_path / "model.mlir").write_text(str(module), encoding="utf-8")
    ends = {"func.func", "func.return", "stablehlo.return"}
    theirs = sorted(each.name for each in walked(module.operation) if each.name not in ends)
    assert {"stablehlo.while", "stablehlo.case"} <= {*theirs}
    assert operations_of(open_source(tmp_path / "model.mlir")) == theirs


def test_instructions_of_compiled_hlo_are_those_of_its_text(tmp_path: Path) -> None:
    text = lowered().compile().as_text()
    (tmp_path / "model.hlo.txt").write_text(text, encoding="utf-8")
    source = open_source(tmp_path / "model.hlo.txt")
    entry = text[text.index("\nENTRY") :].partition("\n}")[0]
    theirs = sorted(f"hlo.{name}" for name in OPERATION.findall(entry))
    assert sorted(node.op for node in source.main.nodes if node.kind != "output") == theirs
