"""Progress of a loop: the drawing and its times."""

from __future__ import annotations

import base64
import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from graphcore.errors import InvalidArgumentError
from kernelext import progress as progress_module
from kernelext.curve import curve_svg, thinned
from kernelext.progress import Progress


class Handle:
    def __init__(self) -> None:
        self.pictures: list[str] = []

    def update(self, shown: Any) -> None:
        self.pictures.append(shown._repr_html_())


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    handle = Handle()
    monkeypatch.setattr(progress_module, "display", lambda _shown, **_options: handle)
    return handle


def picture(html: str) -> ET.Element:
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert found is not None
    return ET.fromstring(base64.b64decode(found[1]))


def test_the_loop_runs_over_its_steps_and_ends_with_a_full_bar(handle: Handle) -> None:
    progress = Progress(7, title="training")
    assert list(progress) == list(range(7))
    assert len(progress) == 7
    assert 'max="7" value="7"' in handle.pictures[-1]
    assert "training: 7 of 7 steps" in handle.pictures[-1]


def test_a_fast_loop_is_not_slowed_down_by_pictures(handle: Handle) -> None:
    progress = Progress(5000)
    for step in progress:
        progress.record(loss=1.0 / (step + 1))
    assert len(handle.pictures) <= 4


def test_recorded_values_become_a_curve_with_words_for_those_who_do_not_see_it(handle: Handle) -> None:
    progress = Progress(10)
    for step in progress:
        progress.record(loss=np.float32(10 - step), accuracy=np.array([step / 10]))
    html = handle.pictures[-1]
    assert "loss from 10 to 1, lowest 1, highest 10; accuracy from 0 to 0.9" in html
    labels = [text.text for text in picture(html).iter("{http://www.w3.org/2000/svg}text")]
    assert "loss" in labels
    assert "accuracy" in labels
    assert "loss 1" in repr(progress)


def test_a_loop_that_is_left_early_says_where_it_stopped(handle: Handle) -> None:
    for step in Progress(10, title="search"):
        if step == 4:
            break
    assert "search: stopped at step 4 of 10" in handle.pictures[-1]


def test_a_loop_that_fails_says_where_it_stopped_and_the_error_goes_on(handle: Handle) -> None:
    def fail() -> None:
        for step in Progress(10):
            1 / (3 - step)

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "stopped at step 3 of 10" in handle.pictures[-1]


def test_running_the_loop_again_starts_over(handle: Handle) -> None:
    progress = Progress(3)
    for step in progress:
        progress.record(loss=step)
    for step in progress:
        progress.record(loss=step)
    assert progress.series == {"loss": [(0, 0.0), (1, 1.0), (2, 2.0)]}


def test_values_that_are_not_finite_leave_a_gap_and_are_named(handle: Handle) -> None:
    progress = Progress(4)
    for step in progress:
        progress.record(loss=[1.0, 0.5, math.nan, math.inf][step])
    assert "loss is not finite since step 2" in handle.pictures[-1]
    assert "nan" not in ET.tostring(picture(handle.pictures[-1]), encoding="unicode")


def test_names_and_titles_are_never_taken_for_markup(handle: Handle) -> None:
    progress = Progress(1, title="<script>x</script>")
    for _ in progress:
        progress.record(**{"<b>&": 1.0})
    html = handle.pictures[-1]
    assert "<script" not in html
    assert "<b>" not in html
    assert any(text.text == "<b>&" for text in picture(html).iter("{http://www.w3.org/2000/svg}text"))


def test_a_negative_number_of_steps_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="-1"):
        Progress(-1)


def test_no_steps_are_a_loop_too(handle: Handle) -> None:
    assert list(Progress(0)) == []
    assert "0 of 0 steps" in handle.pictures[-1]


@pytest.mark.parametrize("values", [[], [3.0], [2.0, 2.0], [-1.0, 1.0], [math.nan]], ids=str)
def test_any_values_give_a_well_formed_picture(values: list[float]) -> None:
    assert ET.fromstring(curve_svg({"value": list(enumerate(values))}, len(values))).tag.endswith("svg")


def test_many_points_are_thinned_and_the_last_one_stays() -> None:
    points = [(step, float(step)) for step in range(10_001)]
    few = thinned(points)
    assert len(few) <= 402
    assert few[0] == points[0]
    assert few[-1] == points[-1]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 2.3, ["0", "1", "2", "3"]),
        (0.0, 1.73, ["0", "0.5", "1", "1.5", "2"]),
        (0.0, 1.0, ["0", "0.5", "1"]),
        (98.2, 99.1, ["98", "98.5", "99", "99.5"]),
        (1.0, 1.0001, ["1", "1.00005", "1.0001"]),
        (-3.0, 40.0, ["-20", "0", "20", "40"]),
        (0.0, 0.0007, ["0", "0.0002", "0.0004", "0.0006", "0.0008"]),
    ],
)
def test_the_ticks_of_a_curve_are_round_numbers(low: float, high: float, ticks: list[str]) -> None:
    texts = ET.fromstring(curve_svg({"value": [(0, low), (1, high)]}, 1)).iter("{http://www.w3.org/2000/svg}text")
    assert [text.text for text in texts if text.get("x") == "50"] == ticks


@pytest.mark.parametrize(("low", "high"), [(5e-324, 1e-323), (-1.7e308, 1.7e308), (1.0, 1.0000000000000002), (1e300, 1.5e300)])
def test_a_curve_of_extreme_values_is_drawn(low: float, high: float) -> None:
    drawn = ET.fromstring(curve_svg({"value": [(0, low), (1, high)]}, 1))
    assert all(text.text not in ("nan", "inf") for text in drawn.iter("{http://www.w3.org/2000/svg}text"))


def test_curves_follow_dark_themes() -> None:
    svg = curve_svg({"loss": [(0, 1.0), (1, 0.5)]}, 1)
    assert "prefers-color-scheme:dark" in svg
    assert "#ffffff" not in svg
    progress = Progress(1)
    progress.record(loss=1.0)
    assert "[data-jp-theme-light=false] :is(.graphloupe-still,.graphloupe-progress) img{color-scheme:dark}" in progress._repr_html_()
