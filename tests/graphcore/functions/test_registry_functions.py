"""Every gradient in the registry, and every function of the data files, is a function whose text reads back."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphcore as gc
from graphcore.attrs import AttrValue
from tests.graphcore.opset.op_cases import Case, all_cases

pytestmark = pytest.mark.sweep

DATA = Path(__file__).parents[2] / "data"
FORBIDDEN = "PreventGradient"  # its gradient is an error with a reason
PLAIN: dict[str, AttrValue] = {
    "type": gc.float32,
    "list(type)": (gc.float32,),
    "int": 1,
    "func": gc.Func("Square", {"T": gc.float32}),
    "shape": gc.Shape([2]),
    "list(int)": (1,),
    "string": b"",
}
CASES = {case.op_def.name: case for case in all_cases() if case.entry.gradient is not None and case.op_def.name != FORBIDDEN}


def attrs_of(case: Case) -> dict[str, AttrValue]:
    """A value for every attr: what the example gives, the default, a plain one."""
    defaults = {attr.name: attr.default_value for attr in case.op_def.attr if attr.default_value is not None}
    plain = {attr.name: PLAIN[attr.type] for attr in case.op_def.attr if attr.name not in defaults and attr.type in PLAIN}
    given = gc.FunctionDefHelper.Node(["n"], case.op_def.name, attr=dict(case.attrs)).to_node_def().attr
    types = {attr.name for attr in case.op_def.attr if attr.type in {"type", "list(type)"}}
    return {**plain, **defaults, **{name: value for name, value in given.items() if name not in types}}


def test_every_op_with_a_gradient_is_looked_at() -> None:
    with_gradient = {entry.op_def.name for entry in gc.op_registry if entry.gradient is not None}
    assert with_gradient - {FORBIDDEN} == CASES.keys()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_gradient_in_the_registry_reads_back_from_its_text(case: Case) -> None:
    assert case.entry.gradient is not None
    function = case.entry.gradient(attrs_of(case))
    assert gc.parse_function(gc.debug_string(function)) == function


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pb")), ids=lambda path: path.stem)
def test_functions_of_graphs_made_by_tensorflow_read_back_from_their_text(path: Path) -> None:
    library = gc.load(path, allow_unknown_ops=True).library
    for function in library:
        again = gc.parse_function(gc.debug_string(function, library.look_up_op_def), library.look_up_op_def)
        assert again == function
    assert len(library) > 0 or path.stem != "functions_v2"
