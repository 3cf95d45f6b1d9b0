"""Parts of expressions in `%graph`, and keys of calls, without any framework."""

from __future__ import annotations

import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphcore.frontends.frontend import Call
from kernelext.call_state import state_of
from kernelext.traced_calls import Expression


def notebook(code: str) -> dict[str, Any]:
    """The variables of a notebook after a cell."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    run(code, variables)
    return variables


def run(code: str, variables: dict[str, Any]) -> None:
    exec(compile(code, "<cell>", "exec"), variables)


def test_an_item_of_a_table_is_looked_up_each_time() -> None:
    variables = notebook("def f(x): return x\nbatch = {'x': [1, 2]}")
    expression = Expression("f(batch['x'][0], 3)")
    assert expression.value(variables).args == (1, 3)
    run("batch['x'] = [7]", variables)
    assert expression.value(variables).args == (7, 3)


def test_what_computes_is_kept_until_a_name_in_it_has_another_meaning() -> None:
    variables = notebook("made = []\ndef f(x): return x\ndef make(n):\n    made.append(n)\n    return n\nn = 1")
    expression = Expression("f(*[make(n)], key=make(n) + 1)")
    for _ in range(3):
        assert expression.value(variables) == Call(variables["f"], (1,), {"key": 2})
    assert variables["made"] == [1, 1]
    run("n = 2", variables)
    assert expression.value(variables).args == (2,)
    assert variables["made"] == [1, 1, 2, 2]


def test_an_error_of_an_argument_is_not_repeated_by_evaluation() -> None:
    variables = notebook("tried = []\ndef f(x): return x\ndef make():\n    tried.append(1)\n    raise ValueError('no')")
    expression = Expression("f(make())")
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            expression.value(variables)
    assert variables["tried"] == [1]


def test_random_numbers_of_arguments_are_not_drawn_from_the_generators() -> None:
    variables = notebook("import random, numpy\ndef f(*x): return x")
    legacy: Any = np.random
    before = random.getstate(), legacy.get_state()[1].tolist()
    Expression("f(random.random(), numpy.random.rand(3))").value(variables)
    assert (random.getstate(), legacy.get_state()[1].tolist()) == before


def test_a_name_that_is_missing_is_said() -> None:
    with pytest.raises(NameError, match="'nothing'"):
        Expression("f(nothing)").value(notebook("def f(x): return x"))


def same(code: str, change: str, call: Callable[[dict[str, Any]], Call]) -> bool:
    """True iff a cell leaves the key of a call as it is."""
    variables = notebook(code)
    before = state_of(call(variables))
    run(change, variables)
    return state_of(call(variables)) == before


USES = """
import functools, numpy
scale, unused, config, table = 2, 1, {'a': [1]}, numpy.ones((2, 2))
class Box:
    factor = 3
    def __init__(self): self.inner = [1, {'k': 2}]
    def times(self, x): return x * self.factor
box = Box()
def inner(x): return [x * scale for _ in config['a']]
def f(x): return box.times(inner(x)), table
"""


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ("unused = 5", True),
        ("scale = 2", True),
        ("scale = 2.0", False),
        ("scale = 3", False),
        ("config['a'].append(2)", False),
        ("box.inner[1]['k'] = 3", False),
        ("Box.factor = 4", False),
        ("Box.times = lambda self, x: x", False),
        ("def inner(x): return x", False),
        ("table = numpy.ones((3, 2))", False),
        ("def other(): pass", True),
        (USES.replace("x * scale", "x + scale"), False),
        ("del scale", False),
    ],
    ids=[
        *("unused", "equal", "type", "value", "nested", "attribute", "class-value", "method", "function", "shape", "other", "code", "gone")
    ],
)
def test_the_key_of_a_call_changes_with_what_its_function_uses(change: str, is_same: bool) -> None:
    assert same(USES, change, lambda variables: Call(variables["f"], (1,))) is is_same
    partly = "part = functools.partial(f, 1)\n"
    assert (
        same(
            USES + partly,
            change + ("\npart = functools.partial(f, 1)" if "def f" in change else ""),
            lambda variables: Call(variables["part"]),
        )
        is is_same
    )


def test_functions_of_installed_packages_count_by_themselves() -> None:
    code = "import json, numpy\nf = json.dumps"
    assert same(code, "json.extra = 1; del json.extra", lambda variables: Call(variables["f"], (np.ones(3),)))
    assert not same(code, "f = json.loads", lambda variables: Call(variables["f"], (np.ones(3),)))


def test_a_deleted_function_is_not_taken_for_a_later_one_with_its_id() -> None:
    one, other = types.FunctionType(compile("1", "a", "eval"), {}), types.FunctionType(compile("2", "b", "eval"), {})
    assert state_of(Call(one)) != state_of(Call(other))
