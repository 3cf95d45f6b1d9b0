"""The rules find what they are there to find."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.lint import architecture, files, op_names, prose, variable_names
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


def test_imports_for_annotations_have_a_direction_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_for_types = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from {} import A\n"
    for name, text in {
        "graphcore/errors.py": only_for_types.format("graphcore.text.made_up_first"),
        "graphcore/text/made_up_first.py": only_for_types.format("graphcore.text.made_up_second"),
        "graphcore/text/made_up_second.py": "from graphcore.text.made_up_first import A\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.setattr(files, "ROOT", tmp_path)
    monkeypatch.setattr(architecture, "ROOT", tmp_path)
    assert list(architecture.imports_point_only_to_lower_layers()) == [
        "graphcore/errors.py:4: imports graphcore.text.made_up_first, of a higher layer"
    ]
    assert list(architecture.no_module_imports_itself_by_a_detour()) == [
        "modules that need each other: ['graphcore.text.made_up_first', 'graphcore.text.made_up_second']"
    ]


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
