"""Crops of images, resized to one size; and the gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.kernels import float_attr, ints, invalid, on_host

_X: Final = (np.arange(48, dtype=np.float32) ** 2 % 17 / 4).reshape(2, 4, 3, 2)
_BOXES: Final = [[0.1, 0.2, 0.8, 0.9], [0.7, 0.1, 0.2, 0.6], [-0.5, 0.05, 0.6, 1.3]]
_IMAGE_OF_BOX: Final = [0, 1, 1]
_DY: Final = (np.arange(36, dtype=np.float32) % 7 - 3).reshape(3, 2, 3, 2)
_TYPES: Final = "{uint8, uint16, int8, int16, int32, int64, half, float, double}"
_LAST: Final = no_registered_gradient("the boxes are differentiated once")


class _Places:
    """The source pixels of one box's crop, along one dimension.

    Attributes:
        inside: a mask of the output pixels that lie in the image.
        low, high: the pixels before and after, for those inside.
        share: the weight of `high`.
        along: the derivatives of the position with respect to the two ends of the box, for those inside.
    """

    def __init__(self, begin: float, end: float, size: int, count: int) -> None:
        steps = np.arange(count, dtype=np.float32)
        first, last = np.float32(begin), np.float32(end)
        scale = (last - first) * np.float32(size - 1) / np.float32(count - 1) if count > 1 else np.float32(0)
        at = first * np.float32(size - 1) + steps * scale if count > 1 else np.full(1, 0.5 * (first + last) * (size - 1), np.float32)
        self.inside = np.flatnonzero((at >= 0) & (at <= size - 1))
        at = at[self.inside]
        self.at = at
        self.low, self.high = np.floor(at).astype(np.int64), np.ceil(at).astype(np.int64)
        self.share = (at - np.floor(at)).astype(np.float32)
        part = steps[self.inside] / np.float32(count - 1) if count > 1 else np.full(len(at), 0.5, np.float32)
        self.along = np.stack([(1 - part) * (size - 1), part * (size - 1)]).astype(np.float32)

    def nearest(self) -> Any:
        """The nearest pixel, with halves rounded away from 0."""
        return np.floor(self.at + np.float32(0.5)).astype(np.int64)


def _boxes(k: KernelContext, boxes: Any, images: Any, batch: int) -> tuple[Any, list[int]]:
    numbers, places = on_host(images).tolist(), on_host(boxes)
    if places.ndim != 2 or places.shape != (len(numbers), 4):
        raise invalid(k, f"boxes must be [{len(numbers)}, 4], one a box index, got {list(places.shape)}")
    if any(not 0 <= number < batch for number in numbers):
        raise invalid(k, f"box_index has values outside [0, {batch}): {numbers}")
    return places, numbers


def _crop_places(box: Any, sizes: tuple[int, int], crop: tuple[int, int]) -> tuple[_Places, _Places]:
    y1, x1, y2, x2 = box.tolist()
    return _Places(y1, y2, sizes[0], crop[0]), _Places(x1, x2, sizes[1], crop[1])


def _size(k: KernelContext, value: Any, count: int) -> tuple[int, ...]:
    sizes = ints(value)
    if len(sizes) != count or min(sizes, default=0) <= 0:
        raise invalid(k, f"required {count} positive sizes, got {list(sizes)}")
    return sizes


def _corners(x: Any, rows: _Places, columns: _Places) -> tuple[Any, Any, Any, Any]:
    """The four pixels around each position, in float32: above and below, left and right."""
    above, below = x[rows.low].astype(np.float32), x[rows.high].astype(np.float32)
    return above[:, columns.low], above[:, columns.high], below[:, columns.low], below[:, columns.high]


@op
class CropAndResize:
    """Parts of images, each resized to `crop_size`.

    image: [batch, rows, columns, channels]
    boxes: [n, 4], each from (y1, x1) to (y2, x2) in parts of the image: 0 its first pixel, 1 its last; the second may come first
    box_ind: [n], the image of each box
    crop_size: [2], rows and columns
    crops: [n, rows, columns, channels]
    method: mix the four pixels around, or take the nearest.
    extrapolation_value: the value outside of the image.
    """

    signature = (
        f"CropAndResize[T:{_TYPES}, method:{{'bilinear', 'nearest'}} = 'bilinear', extrapolation_value:float = 0.0]"
        "(image:T, boxes:float, box_ind:int32, crop_size:int32) -> (crops:float)"
    )
    gradient = """[T:type, method:string](image:T, boxes:float, box_ind:int32, crop_size:int32, dy:float) ->
        (dimage:T, dboxes:float, dind:int32, dsize:int32) {
      image_shape = Shape[T=$T](image)
      dimage = CropAndResizeGradImage[T=$T, method=$method](dy, boxes, box_ind, image_shape)
      dboxes = CropAndResizeGradBoxes[T=$T](dy, image, boxes, box_ind)
      dind = ZerosLike[T=int32](box_ind)
      dsize = ZerosLike[T=int32](crop_size)
    }"""
    examples = (
        Example([_X, _BOXES, _IMAGE_OF_BOX, [2, 3]], {"extrapolation_value": -1.0}),
        Example([_X, _BOXES[:2], [1, 0], [1, 4]]),
        Example([_X, _BOXES, _IMAGE_OF_BOX, [3, 2]], {"method": "nearest"}, differentiable=False),
    )
    failures = (Example([_X, _BOXES, [-1, -1, -1], [2, 3]], {"extrapolation_value": -1.0}),)

    def shape(c: InferenceContext) -> None:
        image, boxes = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 2)
        count = c.merge_dim(c.dim(boxes, 0), c.dim(c.with_rank(c.input(2), 1), 0))
        c.with_value(c.dim(boxes, 1), 4)
        c.with_value(c.dim(c.with_rank(c.input(3), 1), 0), 2)
        size = c.make_shape_from_shape_tensor(3)
        spatial = size.dims if size.dims is not None and len(size.dims) == 2 else (c.unknown_dim(), c.unknown_dim())
        c.set_output(0, c.make_shape([count, *spatial, c.dim(image, 3)]))

    def kernel(k: KernelContext) -> Kernel:
        xp, nearest, outside = k.xp, k.attr("method") == b"nearest", float_attr(k, "extrapolation_value")

        def crop(image: Any, boxes: Any, images: Any, size: Any) -> Any:
            if image.ndim != 4:
                raise invalid(k, f"input image must be 4-D, got shape {list(image.shape)}")
            height, width = _size(k, size, 2)
            places, numbers = _boxes(k, boxes, images, image.shape[0])
            result = xp.full((len(numbers), height, width, image.shape[3]), outside, np.float32)
            for i, (box, number) in enumerate(zip(places, numbers, strict=True)):
                rows, columns = _crop_places(box, image.shape[1:3], (height, width))
                where = (i, xp.asarray(rows.inside)[:, None], xp.asarray(columns.inside))
                if nearest:
                    result[where] = (
                        image[number].take(xp.asarray(rows.nearest()), 0).take(xp.asarray(columns.nearest()), 1).astype(np.float32)
                    )
                    continue
                across, down = xp.asarray(columns.share[:, None]), xp.asarray(rows.share[:, None, None])
                part = image[number]
                above, below = (part.take(xp.asarray(at), 0).astype(np.float32) for at in (rows.low, rows.high))
                sides = [side.take(xp.asarray(at), 1) for side in (above, below) for at in (columns.low, columns.high)]
                top, bottom = sides[0] + (sides[1] - sides[0]) * across, sides[2] + (sides[3] - sides[2]) * across
                result[where] = top + (bottom - top) * down
            return result

        return crop


@op
class CropAndResizeGradImage:
    """The gradient of CropAndResize with respect to the images.

    grads: [n, rows, columns, channels]
    boxes: as of CropAndResize
    box_ind: as of CropAndResize
    image_size: [4], the shape of the images
    method: as of CropAndResize.
    """

    signature = (
        "CropAndResizeGradImage[T:{float, half, double}, method:{'bilinear', 'nearest'} = 'bilinear']"
        "(grads:float, boxes:float, box_ind:int32, image_size:int32) -> (output:T)"
    )
    # The incoming gradient at the images is cropped like the images; the boxes affect it as they affected the images.
    gradient = """[T:type, method:string](grads:float, boxes:float, box_ind:int32, image_size:int32, dz:T) ->
        (dgrads:float, dboxes:float, dind:int32, dsize:int32) {
      shape = Shape[T=float](grads)
      one = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 1>]()
      two = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 2>]()
      size = Slice[T=int32, Index=int32](shape, one, two)
      dgrads = CropAndResize[T=$T, method=$method](dz, boxes, box_ind, size)
      dboxes = CropAndResizeGradBoxes[T=$T](grads, dz, boxes, box_ind)
      dind = ZerosLike[T=int32](box_ind)
      dsize = ZerosLike[T=int32](image_size)
    }"""
    examples = (
        Example([_DY, _BOXES, _IMAGE_OF_BOX, [2, 4, 3, 2]], {"T": "float"}),
        Example([_DY, _BOXES, _IMAGE_OF_BOX, [2, 4, 3, 2]], {"T": "float", "method": "nearest"}, differentiable=False),
    )
    failures = (Example([_DY, _BOXES, [-1, -1, -1], [2, 4, 3, 2]], {"T": "float"}),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(3), 4))

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype, nearest = k.xp, k.dtype("T"), k.attr("method") == b"nearest"

        def spread(grads: Any, boxes: Any, images: Any, size: Any) -> Any:
            sizes = _size(k, size, 4)
            places, numbers = _boxes(k, boxes, images, sizes[0])
            result = xp.zeros(sizes, np.float32)
            for i, (box, number) in enumerate(zip(places, numbers, strict=True)):
                rows, columns = _crop_places(box, (sizes[1], sizes[2]), grads.shape[1:3])
                part = grads[i].take(xp.asarray(rows.inside), 0).take(xp.asarray(columns.inside), 1)
                if nearest:
                    xp.add.at(result[number], (xp.asarray(rows.nearest())[:, None], xp.asarray(columns.nearest())), part)
                    continue
                for row, down in ((rows.low, 1 - rows.share), (rows.high, rows.share)):
                    for column, across in ((columns.low, 1 - columns.share), (columns.high, columns.share)):
                        weight = xp.asarray((down[:, None] * across)[..., None])
                        xp.add.at(result[number], (xp.asarray(row)[:, None], xp.asarray(column)), part * weight)
            return result.astype(dtype, copy=False)

        return spread


@op
class CropAndResizeGradBoxes:
    """The gradient of CropAndResize with respect to the boxes.

    grads: [n, rows, columns, channels]
    image: the cropped images
    boxes: as of CropAndResize
    box_ind: as of CropAndResize
    output: [n, 4]
    """

    signature = (
        f"CropAndResizeGradBoxes[T:{_TYPES}, method:{{'bilinear'}} = 'bilinear'](grads:float, image:T, boxes:float, box_ind:int32) -> "
        "(output:float)"
    )
    gradient = _LAST
    examples = (Example([_DY, _X, _BOXES, _IMAGE_OF_BOX]),)
    failures = (Example([_DY, _X, _BOXES, [-1, -1, -1]]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 4)
        c.with_rank(c.input(1), 4)
        c.set_output(0, c.with_rank(c.input(2), 2))

    def kernel(k: KernelContext) -> Kernel:
        xp = k.xp

        def by_boxes(grads: Any, image: Any, boxes: Any, images: Any) -> Any:
            dy, pixels = on_host(grads), on_host(image)
            places, numbers = _boxes(k, boxes, images, pixels.shape[0])
            result = np.zeros((len(numbers), 4), np.float32)
            for i, (box, number) in enumerate(zip(places, numbers, strict=True)):
                rows, columns = _crop_places(box, pixels.shape[1:3], dy.shape[1:3])
                part = dy[i][rows.inside][:, columns.inside]
                upper_left, upper_right, lower_left, lower_right = _corners(pixels[number], rows, columns)
                across, down = columns.share[:, None], rows.share[:, None, None]
                by_row = ((lower_left - upper_left) * (1 - across) + (lower_right - upper_right) * across) * part
                by_column = ((upper_right - upper_left) * (1 - down) + (lower_right - lower_left) * down) * part
                result[i, [0, 2]] = rows.along @ by_row.sum((1, 2))
                result[i, [1, 3]] = columns.along @ by_column.sum((0, 2))
            return xp.asarray(result)

        return by_boxes
