"""The rules find what they are there to find."""

from __future__ import annotations

import ast

import pytest

from tests.lint import architecture, op_names, prose
from tests.lint.files import PACKAGES, source_files


def test_layers_are_told_by_the_package_a_module_is_in() -> None:
    names = [name for layer in architecture.LAYERS for name in layer]
    assert len(names) == len(set(names))
    order = [
        "graphcore.errors",
        "graphcore.text.printer",
        "graphcore.graph.model.node",
        "graphcore.graph.graph",
        "graphcore.graph",
        "graphcore.opset.math.binary",
        "graphcore",
        "widgets.scene",
        "kernelext",
    ]
    layers = [architecture.layer_of(module) for module in order]
    assert layers == sorted(set(layers))
    assert architecture.layer_of("graphcore.nowhere") == -1


def test_source_files_of_all_packages_are_found() -> None:
    assert set(PACKAGES) <= {part for path in source_files() for part in path.parts}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("if node.op == 'Tanh': pass", ["Tanh"]),
        ("SLOW = frozenset({'Tanh', 'Exp'})", ["Tanh", "Exp"]),
        ("NAME = 'Tanh'", ["Tanh"]),
        ("RULES = {'Tanh': 1}", ["Tanh"]),
        ("match op:\n    case 'Tanh': pass", ["Tanh"]),
        ("def f(x): return apply_op('Tanh' if x else 'Exp', [x])", []),
        ("def f(x): return g(1 if x.op == 'Tanh' else 2)", ["Tanh"]),
    ],
)
def test_tables_and_comparisons_are_found_and_new_nodes_are_not(text: str, found: list[str]) -> None:
    assert sorted(name for _, name in op_names.decisions(ast.parse(text))) == sorted(found)


@pytest.mark.parametrize("text", ["Whether a node runs.", "Told to somebody.", "How nodes run."])
def test_unplain_words_are_found(text: str) -> None:
    assert list(prose.faults(text))


def test_plain_words_pass() -> None:
    assert not list(prose.faults("Runs a node; `who` is code."))
