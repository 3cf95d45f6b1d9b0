"""The README says how many ops there are."""

from __future__ import annotations

from tests.support.op_table import README, family_of, modules, with_table


def test_every_module_of_ops_belongs_to_one_family() -> None:
    for module in modules():
        family_of(module)


def test_the_table_of_ops_in_the_readme_is_current() -> None:
    text = README.read_text(encoding="utf-8")
    assert with_table(text) == text, "python -m tests.support.op_table makes it anew"
