"""The docs' table of ops is up to date."""

from __future__ import annotations

from tests.support.tools.op_table import FAMILIES, PAGE, family_of, modules, with_table


def test_every_module_of_ops_belongs_to_one_family_and_no_family_is_empty() -> None:
    assert {family_of(module) for module in modules()} == set(FAMILIES)


def test_the_table_of_ops_in_the_docs_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text, "python -m tests.support.tools.op_table makes it anew"
