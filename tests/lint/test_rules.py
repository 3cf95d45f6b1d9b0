"""The rules find what they are there to find."""

from __future__ import annotations

import ast

import pytest

from tests.lint import architecture, op_names, prose, variable_names
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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("found = 1", ["found"]),
        ("found: int = 1", ["found"]),
        ("if (found := f()): pass", ["found"]),
        ("for each in values: pass", ["each"]),
        ("texts = [str(each) for each in values]", ["each"]),
        ("def f(given, *known, told=None): pass", ["given", "known", "told"]),
        ("f(lambda given: 1)", ["given"]),
        ("match value:\n    case [known, *told]: pass", ["known", "told"]),
        ("class C:\n    known: str\n    def found(self): pass", []),
        ("self.given = f(known=value.told, found_names=[])", []),
    ],
)
def test_variables_with_empty_names_are_found_and_fields_are_not(text: str, names: list[str]) -> None:
    assert sorted(name for _, name in variable_names.empty_names(ast.parse(text))) == names
