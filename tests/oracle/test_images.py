"""Functions of images beside TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore
from tests.oracle.conftest import Oracle

gc: Any = graphcore  # its namespaces are found on demand
RANDOM = np.random.default_rng(8)
INPUTS: dict[str, Any] = {
    "one": RANDOM.uniform(size=(5, 7, 3)).astype(np.float32),
    "two": RANDOM.uniform(size=(2, 6, 4, 3)).astype(np.float32),
    "photo": RANDOM.integers(0, 256, size=(5, 7, 3)).astype(np.uint8),
}
EXPRESSIONS = [
    "[i.flip_left_right(one), i.flip_up_down(two)]",
    "[i.rot90(one), i.rot90(two, 2), i.rot90(two, 3), i.rot90(one, tf.constant(5))]",
    "[i.transpose_image(one), i.transpose_image(two)]",
    "[i.central_crop(one, 0.5), i.central_crop(two, 0.9), i.central_crop(two, 1.0)]",
    "i.central_crop(tf.placeholder_with_default(two, [None, None, None, 3]), 0.5)",
    "i.crop_to_bounding_box(two, 1, 0, 3, 2)",
    "i.pad_to_bounding_box(one, 1, 2, 8, 9)",
    "[i.resize_image_with_crop_or_pad(one, 3, 10), i.resize_image_with_crop_or_pad(two, 8, 3)]",
    "i.resize_image_with_crop_or_pad(tf.placeholder_with_default(two, [None, None, None, 3]), 8, 3)",
    "[i.resize_images(one, [3, 9]), i.resize_images(two, [3, 9], align_corners=True), i.resize_images(photo, [5, 7])]",
    "[i.resize_images(photo, [4, 4], method=i.ResizeMethod.NEAREST_NEIGHBOR), i.resize_images(two, [4, 4], 2), i.resize_images(two, [3, 2], 3)]",
    "i.resize_images(two, [12, 12], preserve_aspect_ratio=True)",
    "[i.convert_image_dtype(photo, tf.float32), i.convert_image_dtype(one, tf.uint8), i.convert_image_dtype(photo, tf.int32)]",
    "[i.convert_image_dtype(one * 2 - 0.5, tf.uint8, saturate=True), i.convert_image_dtype(np.int32([2**30, 5]), tf.uint8)]",
    "[i.adjust_brightness(one, 0.2), i.adjust_brightness(photo, -0.3)]",
    "[i.adjust_contrast(one, 1.5), i.adjust_contrast(photo, 0.4), i.adjust_contrast(two, 2.0)]",
    "i.adjust_gamma(one, 2.0, 0.5)",
    "[i.rgb_to_grayscale(one), i.rgb_to_grayscale(photo), i.grayscale_to_rgb(tf.constant(one[..., :1]))]",
    "[i.per_image_standardization(one), i.per_image_standardization(photo), i.per_image_standardization(two)]",
    "[i.total_variation(tf.constant(one)), i.total_variation(tf.constant(two))]",
    "[i.psnr(one, one * 0.9, 1.0), i.psnr(photo, photo // 2, 255)]",
    "[i.random_flip_left_right(one, seed=s) for s in range(4)]",
    "[i.random_flip_up_down(two, seed=s) for s in range(4)]",
    "[i.random_brightness(one, 0.3, seed=1), i.random_contrast(one, 0.2, 1.8, seed=2)]",
    "tf.random_crop(one, [2, 3, 3], seed=4)",
    "[i.rgb_to_hsv(one), i.hsv_to_rgb(one), i.adjust_hue(one, 0.3), i.adjust_saturation(photo, 0.5)]",
    "[i.random_hue(one, 0.2, seed=3), i.random_saturation(one, 0.5, 1.5, seed=3)]",
]
THEIRS = """
v1 = tf.compat.v1
answer = []
for expression in arguments["expressions"]:
    with v1.Graph().as_default(), v1.Session() as session:
        found = eval(expression, dict(inputs, i=v1.image, tf=v1, np=np))
        listed = found if isinstance(found, list) else [found]
        answer.append([(np.asarray(session.run(each)), each.shape.as_list()) for each in listed])
"""


@pytest.fixture(scope="module")
def theirs(oracle: Oracle) -> dict[str, Any]:
    return dict(zip(EXPRESSIONS, oracle.run(THEIRS, INPUTS, expressions=EXPRESSIONS).answer, strict=True))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_function_of_images_gives_what_it_gives_in_tensorflow(expression: str, theirs: dict[str, Any]) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        found = eval(expression, {"i": gc.image, "tf": gc, "np": np, **INPUTS})
        listed = found if isinstance(found, list) else [found]
        values = [(np.asarray(session.run(each)), each.shape.as_list()) for each in listed]
    for (mine, shape), (other, expected) in zip(values, theirs[expression], strict=True):
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        assert all(known is None or size == known for size, known in zip(shape, expected, strict=True))
        if mine.dtype.kind in "iu":
            assert mine.tolist() == other.tolist()
        else:
            np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-5)


CROP = """
answer = []
for window, ratio in arguments["crops"]:
    try:
        answer.append(tf.raw_ops.DecodeAndCropJpeg(contents=arguments["file"], crop_window=window, ratio=ratio).numpy())
    except tf.errors.InvalidArgumentError:
        answer.append(None)
"""


def test_a_window_of_a_reduced_jpeg_file_is_that_of_tensorflow(oracle: Oracle) -> None:
    crops = [([3, 8, 6, 7], 1), ([10, 8, 6, 8], 2), ([14, 0, 4, 4], 2), ([0, 0, 0, 4], 1)]
    slope = np.add.outer(np.arange(32) * 4, np.arange(32) * 3).astype(np.uint8)[..., None]
    with gc.Graph().as_default(), gc.Session() as session:
        file = session.run(gc.image.encode_jpeg(slope))
        for (window, ratio), theirs in zip(crops, oracle.run(CROP, file=bytes(file), crops=crops).answer, strict=True):
            mine = gc.apply_op("DecodeAndCropJpeg", [file, np.array(window, np.int32)], {"ratio": ratio})
            if theirs is None:
                with pytest.raises(gc.errors.InvalidArgumentError, match="crop window"):
                    session.run(mine)
            else:
                assert mine.shape.as_list() == [*theirs.shape[:2], None]
                np.testing.assert_allclose(session.run(mine).astype(int), theirs, atol=4)
