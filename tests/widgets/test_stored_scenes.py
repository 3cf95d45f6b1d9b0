"""The compiler of pictures gives the stored scenes."""

from __future__ import annotations

import json

import pytest

from tests.golden.scene_cases import CASES
from tests.golden.scenes import FOLDER, changes, compiled, file_of, read


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_the_scenes_of_a_graph_and_its_data_are_the_stored_ones(name: str) -> None:
    stored = read(name)
    found = compiled(CASES[name], [walk["requests"] for walk in stored["walks"]])
    assert list(changes(stored, found)) == [], f"`python -m tests.golden.scenes {name}` stores them anew"
    assert found == stored


def test_each_file_of_scenes_has_a_case() -> None:
    assert set(FOLDER.iterdir()) == {file_of(name) for name in CASES}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a_wrong_shape", '"state": "error"'),
        ("a_lost_input", '"id": "gone:'),
        ("a_failed_cell", '"state": "stale"'),
        ("two_refused_nodes", '"id": "refused:'),
        ("a_circle", '"id": "circle:'),
        ("one_wrong_instance_of_a_repeat", '"error": "number 4, '),
        ("a_body_that_cannot_be_made", "does not open: "),
        ("a_node_of_a_chain_removed", '"state": "removed"'),
        ("mobilenetv2", '"mirror": true'),
        ("lenses_of_the_user", "ZeroDivisionError"),
    ],
)
def test_what_is_rare_is_in_the_stored_scenes(name: str, text: str) -> None:
    assert text in json.dumps(read(name)["walks"])
