"""No public name comes or goes, and no parameter, without being written into the golden file."""

from __future__ import annotations

import contextlib
import inspect
import pydoc
from typing import Any

import graphcore as gc
from tests.golden.public_names import GOLDEN, public_names


def test_the_public_names_are_those_of_the_golden_file() -> None:
    known = GOLDEN.read_text(encoding="utf-8").splitlines()
    found = list(public_names())
    added, lost = sorted(set(found) - set(known)), sorted(set(known) - set(found))
    assert (added, lost) == ([], []), "`python -m tests.golden.public_names` writes them anew"
    assert found == known


def test_classes_have_signatures_and_homes_which_the_help_of_python_needs() -> None:
    public: Any = gc
    values = [getattr(gc, name) for name in dir(gc)]
    modules = [value for value in values if inspect.ismodule(value)]
    classes = {value for value in [*values, *[value for module in modules for value in vars(module).values()]] if inspect.isclass(value)}
    assert {gc.Node, gc.RunComparison, public.Summary} <= classes
    assert [value for value in classes if not isinstance(getattr(value, "__module__", None), str)] == []
    assert [value for value in classes if not has_signature(value)] == []
    assert "max_abs" in pydoc.plain(pydoc.render_doc(gc.RunComparison))


def has_signature(value: type) -> bool:
    """False for a class whose annotations name what its module does not import."""
    with contextlib.suppress(ValueError, TypeError):  # classes of C have none
        try:
            inspect.signature(value)
        except NameError:
            return False
    return True
