"""The examples in the docstrings of what `gc?` lists run and print what they say."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest

import graphcore as gc

# The modules on the page are no functions: their own documentation lists what they have.
MODULES = {"nn", "train", "losses", "ops", "testing", "NAME"}
LISTED = sorted(set(re.findall(r"\bgc\.((?:train\.)?\w+)", gc.__doc__ or "")) - MODULES)
# The first lines of the page use these; one sentence documents each.
IN_THE_FIRST_EXAMPLE = {"float32", "zeros", "softmax", "initialize_all_variables", "RunMetadata"}


def named(path: str) -> object:
    """The object that `gc.PATH` names."""
    found: object = gc
    for part in path.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("path", [path for path in LISTED if path not in IN_THE_FIRST_EXAMPLE])
def test_the_example_runs_and_prints_what_it_says(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(named(path)) or ""
    example = doctest.DocTestParser().get_doctest(text, {"gc": gc}, f"gc.{path}", None, None)
    assert example.examples, f"gc.{path} has no example"
    said: list[str] = []
    with gc.Graph().as_default():
        failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
    assert not failed, "".join(said)
