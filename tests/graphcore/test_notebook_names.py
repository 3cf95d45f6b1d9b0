"""Names after `gc.`: what users write completes, and everything promised resolves."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
from pathlib import Path

import graphcore as gc

README = Path(__file__).parents[2] / "README.md"


def test_internal_names_do_not_complete_but_resolve() -> None:
    completed = dir(gc)
    for name in (
        "add_arg_to_sig",
        "attach_def",
        "function_def_hash",
        "remove_dead_nodes",
        "reverse_post_order",
        "GradientCut",
        "api",
        "plumbing",
    ):
        assert name not in completed
        assert hasattr(gc, name)
    assert gc.add_arg_to_sig is gc.definitions.add_arg_to_sig


def test_the_names_that_a_notebook_uses_complete() -> None:
    used = set(re.findall(r"\bgc\.([A-Za-z_]\w*)", README.read_text(encoding="utf-8")))
    assert len(used) > 15
    assert used <= {*dir(gc)}


def test_names_that_complete_exist() -> None:
    assert [name for name in dir(gc) if not hasattr(gc, name)] == []


def test_the_page_about_the_package_names_only_what_exists() -> None:
    page = inspect.getdoc(gc) or ""
    names = set(re.findall(r"\bgc\.([A-Za-z_]\w*)", page)) - {"NAME"}
    assert len(names) > 20
    assert [name for name in names if not hasattr(gc, name)] == []
    assert "%graph" in page
    assert "00_quickstart" in page


def test_the_package_has_the_version_that_is_installed() -> None:
    assert gc.package_version == importlib.metadata.version("graphloupe")


def test_programs_that_check_the_version_of_tensorflow_find_that_of_its_names() -> None:
    assert gc.__version__ == gc.VERSION == gc.version.VERSION == "1.15.0"  # type: ignore[attr-defined]  # a namespace found by name
