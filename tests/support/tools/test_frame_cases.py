"""The viewer and the static pictures agree on the test cases of frames and labels."""

from __future__ import annotations

import json

from tests.support.tools.frame_cases import FILE, written


def test_the_cases_that_the_viewer_is_held_to_are_what_still_pictures_do() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), "python -m tests.support.tools.frame_cases writes it anew"


def test_the_cases_have_frames_that_grow_labels_that_move_and_some_that_stay() -> None:
    cases = json.loads(FILE.read_text(encoding="utf-8"))
    grown = [
        case["held"]["frames"][key] != [x, width] for case in cases for key, _, x, _, width, _ in case["groups"] if key in case["placed"]
    ]
    moved = [case["held"]["labels"][key] != x for case in cases for key, _, _, x, *_ in case["edges"]]
    for changes in (grown, moved):
        assert 20 < sum(changes) < len(changes) - 20
