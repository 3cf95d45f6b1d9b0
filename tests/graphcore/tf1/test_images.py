"""`gc.image` and `gc.metrics`: what they refuse."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore

gc: Any = graphcore  # its namespaces are found on demand
IMAGE = np.zeros((4, 6, 3), np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[graphcore.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: gc.image.flip_left_right(np.zeros((4, 4))),
            r"flip_left_right: 'image' must have either 3 or 4 dimensions, got the shape \[4,4\]",
        ),
        (lambda: gc.image.central_crop(IMAGE, 1.5), r"central_fraction must be within \(0, 1\], got 1.5"),
        (lambda: gc.image.crop_to_bounding_box(IMAGE, 2, 0, 3, 2), "height must be >= target [+] offset, got 4 < 3 [+] 2"),
        (lambda: gc.image.crop_to_bounding_box(IMAGE, -1, 0, 3, 2), "offset_height must be >= 0, got -1"),
        (lambda: gc.image.pad_to_bounding_box(IMAGE, 0, 1, 4, 6), "width must be >= target [+] offset, got 6 < 6 [+] 1"),
        (lambda: gc.image.resize_images(IMAGE, [3]), "'size' must be a 1-D Tensor of 2 elements"),
        (lambda: gc.image.resize_images(IMAGE, [3, 3], 7), "required one of gc.image.ResizeMethod, got 7"),
        (lambda: gc.image.random_brightness(IMAGE, -1), "max_delta must be non-negative, got -1"),
        (lambda: gc.image.random_contrast(IMAGE, 2.0, 1.0), "required 0 <= lower < upper, got 2.0 and 1.0"),
        (lambda: gc.metrics.accuracy([1, 2], [1, 2, 3]), "of predictions and .* of labels are incompatible"),
        (lambda: gc.metrics.mean_tensor(gc.placeholder(gc.float32, [None])), r"required values of known shape, got \[\?\]"),
        (lambda: gc.metrics.auc([True], [0.5], curve="ROCK"), "curve must be either ROC or PR, ROCK unknown"),
        (lambda: gc.metrics.auc([True], [0.5], summation_method="careful_interpolation"), "Invalid summation_method"),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=text):
        make()


def test_a_metric_needs_its_variables_initialised_and_probabilities_in_their_range() -> None:
    _, update = gc.metrics.auc([True, False], gc.placeholder_with_default(np.array([0.5, 1.5], np.float32), [2], name="p"))
    with gc.Session() as session:
        with pytest.raises(gc.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"):
            session.run(update)
        with pytest.raises(gc.errors.FailedPreconditionError, match="uninitialized value auc/"):
            session.run(update, {"p:0": [0.5, 1.0]})
        session.run(gc.local_variables_initializer())
        assert session.run(update, {"p:0": [0.5, 1.0]}) < 0.01


def test_metrics_go_into_the_collections_that_are_asked_for() -> None:
    value, update = gc.metrics.mean([1.0, 3.0], metrics_collections=["values"], updates_collections="updates")
    assert gc.get_collection("values") == [value]
    assert gc.get_collection("updates") == [update]
    assert [each.name for each in gc.get_collection("metric_variables")] == ["mean/total:0", "mean/count:0"]
    assert gc.trainable_variables() == gc.global_variables() == []


def test_a_file_whose_header_tells_of_more_pixels_than_pillow_reads_is_an_error_of_the_node() -> None:
    chunks = (b"IHDR" + struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0), b"IDAT")
    contents = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data)) for data in chunks
    )
    y = gc.image.decode_png(contents, name="pixels")
    with pytest.raises(
        graphcore.errors.InvalidArgumentError, match=r"Invalid PNG data, size 45: Image size \(10000000000 pixels\)"
    ) as caught:
        gc.Session().run(y)
    assert caught.value.node == "pixels"
