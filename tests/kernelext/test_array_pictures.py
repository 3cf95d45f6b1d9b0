"""Arrays like images show as pictures beside their text; all others as text alone."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.graph import reset_default_graph
from tests.kernelext.conftest import NotebookShell


@pytest.fixture
def loaded(shell: NotebookShell) -> Iterator[NotebookShell]:
    reset_default_graph()
    assert shell.run("%load_ext kernelext\nimport numpy as np\nimport graphcore as gc", "load").success
    yield shell
    shell.run("%unload_ext kernelext", "unload")
    reset_default_graph()


def shown(shell: NotebookShell, value: object) -> dict[str, Any]:
    display: Any = shell.display_formatter
    data: dict[str, Any] = display.format(value)[0]
    return data


def decoded(html: str) -> list[Any]:
    """The pictures as TensorFlow's decoder for PNG files reads them."""
    files = [base64.b64decode(text) for text in re.findall(r"data:image/png;base64,([^\"]+)", html)]
    with gc.Graph().as_default(), gc.Session() as session:
        return [session.run(gc.ops.decode_png(gc.constant(file))) for file in files]


@pytest.mark.parametrize(
    ("shape", "pictures"),
    [((8, 8), 1), ((28, 20), 1), ((30, 40, 3), 1), ((30, 40, 1), 1), ((5, 8, 8), 5), ((3, 12, 9, 3), 3), ((40, 8, 8, 1), 16)],
)
def test_arrays_of_the_shapes_of_images_are_pictures(loaded: NotebookShell, shape: tuple[int, ...], pictures: int) -> None:
    data = shown(loaded, np.linspace(0, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))
    assert len(decoded(data["text/html"])) == pictures
    assert f"float32 [{','.join(map(str, shape))}]" in data["text/html"]
    assert data["text/plain"].startswith("array(")


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(64, np.float32),
        np.zeros((64, 10), np.float32),
        np.zeros((7, 7), np.float32),
        np.zeros((3, 3, 64, 64), np.float32),
        np.zeros((20, 16, 12), np.float32),
        np.zeros((8, 8), np.int32),
        np.zeros((8, 8), object),
        np.zeros((0, 8, 8), np.float32),
        np.ma.masked_array(np.zeros((8, 8)), False),
        np.float32(3),
    ],
)
def test_everything_else_is_text(loaded: NotebookShell, array: Any) -> None:
    assert "text/html" not in shown(loaded, array)


def test_black_and_white_are_told_and_what_is_not_finite_is_red(loaded: NotebookShell) -> None:
    array = np.full((8, 8), 2.0, np.float32)
    array[0, :3] = [-2.0, np.nan, np.inf]
    html = shown(loaded, array)["text/html"]
    assert "black is -2, white 2, 2 not finite (red)" in html
    (picture,) = decoded(html)
    assert picture[0, :4].tolist() == [[0, 0, 0], [214, 39, 40], [214, 39, 40], [255, 255, 255]]


def test_bytes_are_drawn_as_they_are_and_large_pictures_smaller(loaded: NotebookShell) -> None:
    array = np.random.default_rng(3).integers(0, 256, (600, 400, 3), dtype=np.uint8)
    (picture,) = decoded(shown(loaded, array)["text/html"])
    np.testing.assert_array_equal(picture, array[::3, ::3])


def test_what_a_session_returns_is_a_picture_and_numpy_is_as_it_was_afterwards(shell: NotebookShell) -> None:
    shell.run("%load_ext kernelext\nimport numpy as np\nimport graphcore as gc", "load")
    result = shell.run("gc.Session().run(gc.ops.random_uniform([2, 9, 9, 3], gc.float32))", "run").result
    assert type(result) is np.ndarray
    assert "<img" in shown(shell, result)["text/html"]
    shell.run("%unload_ext kernelext", "unload")
    assert "text/html" not in shown(shell, result)
