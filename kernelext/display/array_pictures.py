"""Arrays like images as pictures: what a session returns for images and maps of features."""

from __future__ import annotations

import base64
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.opset.numerics.png_writer import png_bytes
from graphcore.support.shown import html_text

MIN_SIDE: Final = 8
"""The least rows and columns of a picture."""
MOST_RATIO: Final = 2
"""The most that one side of a matrix is longer than the other, for it to be a picture."""
MOST_PICTURES: Final = 16
MOST_PIXELS: Final = 256
"""The most rows and columns that are drawn; of larger pictures every second or third, ... pixel is."""
_SHOWN: Final = 96
_SHOWN_ALONE: Final = 224
_CHANNELS: Final = (1, 3, 4)
_MOST_LINES: Final = 12
_NOT_FINITE: Final = (214, 39, 40)


def pictures_of(array: Array) -> list[Array] | None:
    """The images in an array, each [rows, columns, channels].

    None if its shape or type is not that of images.

    Images are uint8 or floating: [rows, columns], [rows, columns, channels], squares [n, rows, columns], or [n, rows, columns, channels], with
    1, 3 or 4 channels and at least 8 rows and columns.
    """
    if type(array) is not np.ndarray or (array.dtype != np.uint8 and array.dtype.kind != "f") or not array.size:
        return None
    if array.ndim == 2 and max(array.shape) <= MOST_RATIO * min(array.shape):
        images = array[None, :, :, None]
    elif array.ndim == 3 and array.shape[2] in _CHANNELS:
        images = array[None]
    elif array.ndim == 3 and array.shape[1] == array.shape[2]:
        images = array[:, :, :, None]
    elif array.ndim == 4 and array.shape[3] in _CHANNELS:
        images = array
    else:
        return None
    return list(images) if min(images.shape[1:3]) >= MIN_SIDE else None


def picture_html(array: Array) -> str | None:
    """The images in an array, and its text; None if there are none."""
    images = pictures_of(array)
    if images is None:
        return None
    drawn = images[:MOST_PICTURES]
    low, high = _range(drawn)
    side = _SHOWN_ALONE if len(images) == 1 else _SHOWN
    pictures = "".join([_image(image, low, high, side, f"image {number} of {len(images)}") for number, image in enumerate(drawn, 1)])
    return f"<div>{pictures}<div><small>{html_text(_caption(array, images, low, high))}</small></div>{_text(array)}</div>"


def _range(images: list[Array]) -> tuple[float, float]:
    """The values that are drawn black and white: those of images, or the least and greatest."""
    if images[0].dtype == np.uint8:
        return 0.0, 255.0
    values = np.concatenate([image[np.isfinite(image)].ravel() for image in images]).astype(np.float64)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    return (0.0, 1.0) if low >= 0 and 0.5 <= high <= 1 else (low, high)


def _image(image: Array, low: float, high: float, side: int, words: str) -> str:
    step = -(-max(image.shape[:2]) // MOST_PIXELS)
    png = base64.b64encode(png_bytes(_pixels(image[::step, ::step], low, high))).decode()
    rows, columns = image.shape[:2]
    scale = side / max(rows, columns)
    size = f"width:{columns * scale:.0f}px;height:{rows * scale:.0f}px"
    style = f"{size};display:inline-block;margin:2px;image-rendering:pixelated"
    return f'<img src="data:image/png;base64,{png}" alt="{words}" style="{style}">'


def _pixels(image: Array, low: float, high: float) -> Any:
    """Bytes [rows, columns, channels]; those that are not finite are red."""
    if image.dtype == np.uint8:
        return image
    finite = np.isfinite(image).all(-1)
    spread = np.clip((np.nan_to_num(image.astype(np.float64)) - low) / ((high - low) or 1.0), 0.0, 1.0)
    pixels = np.rint(spread * 255).astype(np.uint8)
    if finite.all():
        return pixels
    coloured = np.repeat(pixels, 3, -1) if pixels.shape[-1] == 1 else pixels[..., :3].copy()
    coloured[~finite] = _NOT_FINITE
    return coloured


def _caption(array: Array, images: list[Array], low: float, high: float) -> str:
    shape = ",".join(map(str, array.shape))
    shown = "" if len(images) <= MOST_PICTURES else f", the first {MOST_PICTURES} of {len(images):,} images"
    lost = 0 if array.dtype == np.uint8 else array.size - int(np.count_nonzero(np.isfinite(array)))
    red = f", {lost:,} not finite (red)" if lost else ""
    return f"{array.dtype} [{shape}]{shown}, black is {low:.4g}, white {high:.4g}{red}"


def _text(array: Array) -> str:
    """The text that a terminal shows, folded if it is long."""
    text = repr(array)
    pre = f"<pre style='font-family:monospace'>{html_text(text)}</pre>"
    return pre if text.count("\n") < _MOST_LINES else f"<details><summary><small>values</small></summary>{pre}</details>"
