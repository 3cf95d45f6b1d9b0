"""The pages that the site is made of, without its build: `make docs` builds it, and checks its links."""

from __future__ import annotations

from pathlib import Path

from tests.support.site.checks import faults
from tests.support.site.docstrings import markdown
from tests.support.site.gallery import DATA, MODELS, page_name
from tests.support.site.reference import TOPICS, own_names

DOCSTRING = """Gives `x` with a * and <b>.

    indented = code

Args:
    a, b: the arrays, of [n]
        elements.

Raises:
    ValueError: `a` has none.

Example:
    >>> f(1)  # doctest: +SKIP
    2
"""


def test_each_name_of_the_reference_has_one_topic() -> None:
    listed = [name for names in TOPICS.values() for name in names.split()]
    assert sorted(listed) == sorted(own_names())


def test_a_docstring_becomes_markdown_with_its_signs() -> None:
    text = markdown(DOCSTRING)
    assert "Gives `x` with a \\* and \\<b\\>." in text
    assert "```text\nindented = code\n```" in text or "```text\nindented = code\n\n```" in text
    assert "- `a, b`: the arrays, of \\[n\\]\n  elements." in text
    assert "**Raises**\n\n- `ValueError`: `a` has none." in text
    assert "```pycon\n>>> f(1)\n2\n```" in text


def test_the_models_of_the_gallery_are_stored_under_names_of_their_own() -> None:
    assert all((DATA / model.path).exists() for model in MODELS)
    assert len({page_name(model) for model in MODELS}) == len(MODELS) >= 20


def test_links_that_lead_nowhere_and_files_from_elsewhere_are_faults(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here"></a><a href="c.html"></a><a href="https://example.com"></a>', encoding="utf-8")
    (tmp_path / "b.html").write_text(
        '<p id="there"></p><script src="https://example.com/x.js"></script><img src="a.html">', encoding="utf-8"
    )
    assert faults(tmp_path) == [
        "a.html: no such place: b.html#here",
        "a.html: leads nowhere: c.html",
        "b.html: loads https://example.com/x.js from elsewhere",
        "b.html: picture without a text: a.html",
    ]
