"""Variable scopes in cells that run again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.kernelext.conftest import NotebookShell


def run(shell: NotebookShell, cell: str, code: str) -> None:
    result = shell.run(code, cell)
    assert result.success, result.error_in_exec


def names() -> list[str]:
    return sorted(variable.name for variable in gc.global_variables())


MODEL = """
def model(x, reuse=None):
    with gc.variable_scope("model", reuse=reuse):
        return gc.matmul(x, gc.get_variable("w", [3, 2]))
x = gc.ones([1, 3])
a = model(x)
b = model(x, reuse=True)
"""


def test_a_cell_that_runs_again_replaces_its_variables(tracked: NotebookShell) -> None:
    run(tracked, "model", MODEL)
    run(tracked, "use", 'y = gc.reduce_sum(a, name="y")')
    count = len(gc.get_default_graph())
    run(tracked, "model", MODEL)
    assert (names(), len(gc.get_default_graph())) == (["model/w:0"], count)
    run(tracked, "model", MODEL.replace("[3, 2]", "[3, 5]"))
    assert names() == ["model/w:0"]
    assert tracked.user_ns["y"].node.inputs[0].shape == [1, 5]


def test_a_copy_of_the_cell_is_refused_with_the_line_of_the_first(tracked: NotebookShell) -> None:
    run(tracked, "model", MODEL)
    result = tracked.run(MODEL, "copy")
    assert isinstance(result.error_in_exec, gc.errors.AlreadyExistsError)
    assert "model/w already exists" in str(result.error_in_exec)
    assert "made in cell In [" in str(result.error_in_exec)


def test_sharing_needs_a_variable_of_another_cell_or_of_this_run(tracked: NotebookShell) -> None:
    run(tracked, "first", 'v = gc.get_variable("v", [2])')
    share = 'with gc.variable_scope("", reuse=True):\n    v = gc.get_variable("v")'
    run(tracked, "second", share)
    assert isinstance(tracked.run(share, "first").error_in_exec, ValueError), "the variable is that of an earlier run of this cell"


def test_auto_reuse_in_a_cell_that_runs_again_may_change_the_shape(tracked: NotebookShell) -> None:
    code = 'with gc.variable_scope("s", reuse=gc.AUTO_REUSE):\n    v = gc.get_variable("v", [{0}])\n    again = gc.get_variable("v", [{0}])'
    run(tracked, "cell", code.format(2))
    run(tracked, "cell", code.format(3))
    assert tracked.user_ns["v"] is tracked.user_ns["again"]
    assert tracked.user_ns["v"].shape == [3]


def test_default_names_are_those_of_the_first_run(tracked: NotebookShell) -> None:
    code = 'with gc.variable_scope(None, "layer"):\n    {} = gc.get_variable("w", [1])'
    run(tracked, "a", code.format("a"))
    run(tracked, "b", code.format("b"))
    run(tracked, "a", code.format("a"))
    run(tracked, "b", code.format("b"))
    assert names() == ["layer/w:0", "layer_1/w:0"]
    run(tracked, "a", "a = None")
    run(tracked, "b", code.format("b"))
    assert names() == ["layer/w:0"]


def test_the_variables_of_a_deleted_cell_can_be_made_by_another(tracked: NotebookShell) -> None:
    code = 'with gc.variable_scope(None, "layer"):\n    w = gc.get_variable("w", [1])'
    run(tracked, "a", code)
    gc.get_default_graph().drop_cell("a")
    run(tracked, "b", code)
    assert names() == ["layer/w:0"]


def test_a_template_of_another_cell_makes_its_variables_again(tracked: NotebookShell) -> None:
    run(tracked, "template", 't = gc.make_template("t", lambda x: x * gc.get_variable("w", x.shape))')
    call = "one, two = t(gc.ones([{0}])), t(gc.zeros([{0}]))"
    run(tracked, "call", call.format(2))
    run(tracked, "call", call.format(3))
    assert names() == ["t/w:0"]
    session = gc.Session()
    session.run(gc.global_variables_initializer())
    assert np.asarray(session.run(tracked.user_ns["two"])).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("scope", ['gc.variable_scope("outer")', 'gc.variable_scope(None, "outer")'])
def test_a_derived_call_is_made_again_in_the_scope_of_its_call(tracked: NotebookShell, scope: str) -> None:
    run(tracked, "x", 'x = gc.ones([2], name="x")')
    run(
        tracked,
        "call",
        f"""
def build():
    with gc.variable_scope(None, "inner"):
        return x * gc.get_variable("w", x.shape)
graph = gc.get_default_graph()
with {scope}:
    before = gc.get_variable("before", [1])
    y = graph.derivations.derive("a product", build, depends_on=[x])
""",
    )
    run(tracked, "x", 'x = gc.ones([3], name="x")')
    graph: Any = gc.get_default_graph()
    graph.settle()
    assert names() == ["outer/before:0", "outer/inner/w:0"]
    assert graph.find("outer/inner/w").outputs[0].shape == [3]
