"""Frames, short-time spectra, cosine transforms and mel scales."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import graphcore as gc

tf: Any = gc
SIGNAL = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)


def run(value: Any) -> Any:
    with gc.Session() as session:
        return session.run(value)


@pytest.fixture(autouse=True)
def _new_graph() -> Any:
    with gc.Graph().as_default():
        yield


def test_frames_overlap_and_are_filled_up_at_the_end() -> None:
    x = gc.constant(SIGNAL)
    found, filled, along = run(
        [tf.signal.frame(x, 8, 3), tf.signal.frame(x, 8, 3, pad_end=True), tf.signal.frame(gc.transpose(x), 8, 3, axis=0)]
    )
    wanted = np.stack([SIGNAL[:, start : start + 8] for start in range(0, 43, 3)], 1)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(along, wanted.transpose(1, 2, 0))
    assert filled.shape == (2, 17, 8)
    assert filled[:, -1, 2:].tolist() == np.zeros((2, 6)).tolist()


def test_the_short_time_spectra_are_those_of_weighted_frames() -> None:
    frames = np.stack([SIGNAL[:, start : start + 15] for start in range(0, 36, 4)], 1)
    window = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(15) / 14)
    np.testing.assert_allclose(run(tf.signal.stft(SIGNAL, 15, 4)), np.fft.rfft(frames * window, 16), atol=1e-5)
    assert tf.contrib.signal.stft is tf.signal.stft


def test_the_inverse_short_time_transform_gives_the_signal() -> None:
    window = tf.signal.inverse_stft_window_fn(4)
    found = run(tf.signal.inverse_stft(tf.signal.stft(SIGNAL, 16, 4), 16, 4, window_fn=window))
    np.testing.assert_allclose(found[:, 16:32], SIGNAL[:, 16:32], atol=1e-5)


@pytest.mark.parametrize("kind", [2, 3, 4])
def test_an_orthogonal_cosine_transform_is_inverted(kind: int) -> None:
    x = gc.constant(SIGNAL)
    forward = tf.signal.dct(x, kind, norm="ortho")
    found, back = run([forward, tf.signal.idct(forward, kind, norm="ortho")])
    np.testing.assert_allclose(back, SIGNAL, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.linalg.norm(SIGNAL, axis=1), rtol=1e-5)


def test_mel_bands_rise_and_fall_between_their_neighbours() -> None:
    weights = run(tf.signal.linear_to_mel_weight_matrix(10, 129, 8000, 125.0, 3800.0))
    assert weights.shape == (129, 10)
    assert weights.min() == 0
    assert (np.diff(weights.argmax(0)) > 0).all()
    assert run(tf.signal.mfccs_from_log_mel_spectrograms(gc.constant(SIGNAL))).shape == SIGNAL.shape


def test_sizes_that_are_fed_are_taken_from_the_run() -> None:
    x = gc.placeholder(gc.float32, [None, None])
    spectra = tf.signal.stft(x, 16, 4)
    (gradient,) = gc.gradients(tf.abs(spectra) ** 2, x)
    with gc.Session() as session:
        found, slope = session.run([spectra, gradient], {x: SIGNAL})
    assert found.shape == (2, 9, 9)
    assert slope.shape == SIGNAL.shape
