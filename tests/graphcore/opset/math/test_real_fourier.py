"""Fourier transforms of real numbers, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc

tf: Any = gc

LENGTHS = [("", [4]), ("", [3]), ("", [2]), ("2D", [3, 4]), ("2D", [2, 3]), ("3D", [2, 3, 4]), ("3D", [1, 2, 3])]


@pytest.mark.parametrize(("suffix", "sizes"), LENGTHS)
def test_the_transforms_are_those_of_numpy_and_have_their_gradients(suffix: str, sizes: list[int]) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(2, 3, 4))
    spectrum = random.normal(size=(2, 3, 3)) + 1j * random.normal(size=(2, 3, 3))
    axes = tuple(range(-len(sizes), 0))
    with gc.Graph().as_default(), gc.Session() as session:
        x, z = gc.constant(values), gc.constant(spectrum)
        forward = tf.apply_op(f"RFFT{suffix}", [x, np.array(sizes, np.int32)], {"Tcomplex": gc.complex128})
        inverse = tf.apply_op(f"IRFFT{suffix}", [z, np.array(sizes, np.int32)], {"Treal": gc.float64})
        found = session.run([forward, inverse])
        wanted = np.fft.rfftn(values, sizes, axes), np.fft.irfftn(spectrum, sizes, axes)
        for got, expected, shape in zip(found, wanted, (forward.shape, inverse.shape), strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-12)
            assert shape.as_list() == list(expected.shape)
        for y, by in ((forward, x), (inverse, z)):
            assert gc.check_gradient(y, [by])
            (first,) = gc.gradients(y * y, by)
            assert gc.check_gradient(first, [by])


def test_an_input_that_is_too_small_is_refused_by_the_op_and_filled_up_by_the_function() -> None:
    values = np.arange(4.0)
    with gc.Graph().as_default(), gc.Session() as session:
        x = gc.constant(values)
        with pytest.raises(gc.errors.InvalidArgumentError, match="at least"):
            session.run(tf.apply_op("RFFT", [x, [6]], {"Tcomplex": gc.complex128}))
        forward = tf.signal.rfft(x, [6])
        inverse = tf.signal.irfft(tf.signal.rfft(x), [8])
        found = session.run([forward, inverse])
        assert gc.check_gradient(forward, [x])
    np.testing.assert_allclose(found[0], np.fft.rfft(values, 6), atol=1e-12)
    np.testing.assert_allclose(found[1], np.fft.irfft(np.fft.rfft(values), 8), atol=1e-12)
