"""The structure of graphs has no chance in it: it is the one of the file that the page's tests read."""

from __future__ import annotations

import gzip
import json

from tests.support.tools.structure_cases import FILE, graphs, written


def test_the_structure_of_graphs_is_the_stored_one() -> None:
    stored = json.loads(gzip.decompress(FILE.read_bytes()))
    made = written(graphs())
    assert [case["name"] for case in made["cases"]] == [case["name"] for case in stored["cases"]]
    for ours, theirs in zip(made["cases"], stored["cases"], strict=True):
        assert ours == theirs, ours["name"]
    assert made == stored
