"""Convolution of arrays agrees with the definition, for any sizes, in pieces or whole."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcore.opset.numerics.convolving import filter_gradient, forward, input_gradient
from graphcore.opset.numerics.windows import PIECE, Geometry, Sliding, pieces
from tests.support.strict_arrays import strict


class Sizes(NamedTuple):
    """A valid convolution."""

    n: int
    spatial: tuple[int, ...]
    channels: int
    outputs: int
    g: Geometry

    def arrays(self) -> tuple[Any, Any, Any]:
        """Input, filter and the gradient of the output."""
        rng = np.random.default_rng(self.n + 10 * self.channels + 100 * self.outputs)
        x = rng.standard_normal((self.n, *self.spatial, self.channels))
        w = rng.standard_normal((*self.g.window, self.channels, self.outputs))
        return x, w, rng.standard_normal((self.n, *self.g.places, self.outputs))


@st.composite
def convolutions(draw: st.DrawFn) -> Sizes:
    """Of one to three dimensions."""
    rank = draw(st.integers(1, 3))
    slides, window, spatial = [], [], []
    for axis in range(rank):
        padding = draw(st.sampled_from([b"SAME", b"VALID", b"EXPLICIT"]))
        explicit = draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) if padding == b"EXPLICIT" else (0, 0)
        slide = Sliding(draw(st.integers(1, 3)), draw(st.integers(1, 2)), padding, explicit)
        width = draw(st.integers(1, 4))
        smallest = 1 if padding == b"SAME" else max(1, slide.reach(width) - sum(explicit))
        slides.append(slide)
        window.append(width)
        spatial.append(draw(st.integers(smallest, smallest + (11 if axis == rank - 1 else 4))))
    sizes = list(zip(slides, spatial, window, strict=True))
    places = tuple([slide.places(size, width) for slide, size, width in sizes])
    pads = tuple([slide.pads(size, width) for slide, size, width in sizes])
    g = Geometry(tuple(slides), tuple(window), places, pads)
    return Sizes(draw(st.integers(1, 4)), tuple(spatial), draw(st.integers(1, 5)), draw(st.integers(1, 5)), g)


def looked_at(g: Geometry, x: Any) -> Any:
    """Each window element with its part of the padded input."""
    wide = np.pad(x, ((0, 0), *g.pads, (0, 0)))
    for element in np.ndindex(*g.window):
        taps = [
            slice(at * s.dilation, at * s.dilation + (count - 1) * s.stride + 1, s.stride)
            for at, s, count in zip(element, g.slides, g.places, strict=True)
        ]
        yield element, wide, (slice(None), *taps)


def by_definition(x: Any, w: Any, g: Geometry) -> Any:
    return sum(wide[taps] @ w[element] for element, wide, taps in looked_at(g, x))


def filter_gradient_by_definition(x: Any, dy: Any, g: Geometry) -> Any:
    parts = [np.tensordot(wide[taps], dy, (range(dy.ndim - 1), range(dy.ndim - 1))) for _, wide, taps in looked_at(g, x)]
    return np.array(parts).reshape((*g.window, x.shape[-1], dy.shape[-1]))


def input_gradient_by_definition(x: Any, w: Any, dy: Any, g: Geometry) -> Any:
    total = np.zeros([size + sum(pads) for size, pads in zip(x.shape, ((0, 0), *g.pads, (0, 0)), strict=True)])
    for element, _, taps in looked_at(g, x):
        total[taps] += dy @ w[element].T
    return total[tuple([slice(low, low + size) for size, (low, _) in zip(x.shape, ((0, 0), *g.pads, (0, 0)), strict=True)])]


@given(convolutions())
def test_the_output_is_that_of_the_definition(sizes: Sizes) -> None:
    x, w, _ = sizes.arrays()
    np.testing.assert_allclose(forward(np, x, w, sizes.g), by_definition(x, w, sizes.g), atol=1e-12)


@given(convolutions())
def test_the_gradient_by_the_filter_is_that_of_the_definition(sizes: Sizes) -> None:
    x, w, dy = sizes.arrays()
    expected = filter_gradient_by_definition(x, dy, sizes.g).reshape(w.shape)
    np.testing.assert_allclose(filter_gradient(np, x, dy, sizes.g), expected, atol=1e-12)


@given(convolutions())
def test_the_gradient_by_the_input_is_that_of_the_definition(sizes: Sizes) -> None:
    x, w, dy = sizes.arrays()
    expected = input_gradient_by_definition(x, w, dy, sizes.g)
    np.testing.assert_allclose(input_gradient(np, w, dy, sizes.g, sizes.spatial), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "size", "channels"), [(70, 9, 2), (2, 70, 2), (3, 30, 9)], ids=["many images", "large images", "wide windows"]
)
def test_several_pieces_are_that_of_the_definition(n: int, size: int, channels: int) -> None:
    slide = Sliding(1, 1, b"SAME")
    sizes = Sizes(n, (size, size), channels, 9, Geometry((slide, slide), (3, 5), (size, size), ((1, 1), (2, 2))))
    x, w, dy = sizes.arrays()
    assert n * size**2 * 15 * channels > 2 * PIECE
    np.testing.assert_allclose(forward(np, x, w, sizes.g), by_definition(x, w, sizes.g), atol=1e-10)
    np.testing.assert_allclose(filter_gradient(np, x, dy, sizes.g), filter_gradient_by_definition(x, dy, sizes.g), atol=1e-8)
    expected = input_gradient_by_definition(x, w, dy, sizes.g)
    np.testing.assert_allclose(input_gradient(np, w, dy, sizes.g, sizes.spatial), expected, atol=1e-10)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(1, 99))
def test_pieces_cover_every_row_once_within_the_budget(n: int, rows: int, row_size: int, budget: int) -> None:
    covered = np.zeros((n, rows), int)
    for piece in pieces(n, rows, row_size, budget):
        covered[piece] += 1
        assert covered[piece].size * row_size <= max(budget, row_size)
    assert (covered == 1).all()


@given(convolutions())
def test_arrays_of_other_modules_are_taken_as_they_are(sizes: Sizes) -> None:
    x, w, dy = map(strict.asarray, map(np.ndarray.tolist, sizes.arrays()))
    np.testing.assert_allclose(forward(strict, x, w, sizes.g).get(), forward(np, x.get(), w.get(), sizes.g), atol=1e-12)
    by_filter = filter_gradient(strict, x, dy, sizes.g).get()
    np.testing.assert_allclose(by_filter, filter_gradient(np, x.get(), dy.get(), sizes.g), atol=1e-12)
    by_input = input_gradient(strict, w, dy, sizes.g, sizes.spatial).get()
    np.testing.assert_allclose(by_input, input_gradient(np, w.get(), dy.get(), sizes.g, sizes.spatial), atol=1e-12)


@given(convolutions(), st.data(), st.sampled_from([np.inf, np.nan]))
def test_infinite_elements_affect_only_windows_that_contain_them(sizes: Sizes, data: st.DataObject, strange: float) -> None:
    x, w, dy = sizes.arrays()
    x.flat[data.draw(st.integers(0, x.size - 1))] = strange
    dy.flat[data.draw(st.integers(0, dy.size - 1))] = strange
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(forward(np, x, w, sizes.g), by_definition(x, w, sizes.g), atol=1e-12)
        got = input_gradient(np, w, dy, sizes.g, sizes.spatial)
        np.testing.assert_allclose(got, input_gradient_by_definition(x, w, dy, sizes.g), atol=1e-12)
