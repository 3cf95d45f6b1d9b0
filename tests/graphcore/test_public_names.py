"""No public name comes or goes, and no parameter, without being written into the golden file."""

from __future__ import annotations

from tests.golden.public_names import GOLDEN, public_names


def test_the_public_names_are_those_of_the_golden_file() -> None:
    known = GOLDEN.read_text(encoding="utf-8").splitlines()
    found = list(public_names())
    added, lost = sorted(set(found) - set(known)), sorted(set(known) - set(found))
    assert (added, lost) == ([], []), "`python -m tests.golden.public_names` writes them anew"
    assert found == known
