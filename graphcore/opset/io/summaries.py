"""Summaries: serialized protocol buffers with scalars, histograms, images, sound and tensors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import TensorValue
from graphcore.dtypes import uint8
from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import scalar_shape
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, op
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import on_host
from graphcore.opset.framework.type_sets import REAL

_COLOURS: Final = (1, 3, 4)
_TAG: Final = np.array(b"loss", object)
_NAN: Final = f"""
    tag = {scalar("string", '"loss"')}
    zero = {scalar("float", 0.0)}
    nan = Div[T=float](zero, zero)
    summary = HistogramSummary[T=float](tag, nan)
"""


def _schema() -> Any:
    """Import the messages lazily: they load protobuf."""
    from graphcore.definitions.wire import schema  # noqa: PLC0415 - it loads protobuf, which most sessions never need

    return schema


def _values() -> Any:
    from graphcore.opset.numerics import summary_values  # noqa: PLC0415 - as above

    return summary_values


def _serialized(message: Any) -> Any:
    array = np.empty((), object)
    array[()] = message.SerializeToString(deterministic=True)
    return array


def _refused(k: KernelContext, text: str) -> InvalidArgumentError:
    return InvalidArgumentError(text, op=k.op, node=k.node_name, source=k.source)


def _one_tag(k: KernelContext, tag: Any) -> str:
    if tag.size != 1 or tag.ndim:
        raise _refused(k, f"tags must be scalar, got shape {list(tag.shape)}")
    return _text(tag.item())


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class _Summary:
    """The parts that all of these share."""

    shape = scalar_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT


@op
class ScalarSummary(_Summary):
    """A summary of scalars, one for each tag.

    tags: their tags
    values: the scalars, of the shape of the tags
    """

    signature = f"ScalarSummary[T:{REAL}](tags:string, values:T) -> (summary:string)"
    examples = (Example([_TAG, 1.5]), Example([np.array([b"a", b"b"], object), [1, 2]]))
    failures = (Example([_TAG, [1.0, 2.0]]),)

    def kernel(k: KernelContext) -> Kernel:
        def summarize(tags: Any, values: Any) -> Any:
            tags, values = on_host(tags), on_host(values)
            if tags.shape != values.shape and not tags.size == values.size == 1:
                single = f" (tag '{_text(tags.item())}')" if tags.size == 1 else ""
                raise _refused(k, f"tags and values are not the same shape: {list(tags.shape)} != {list(values.shape)}{single}")
            message = _schema().Summary()
            for tag, value in zip(tags.reshape(-1).tolist(), values.reshape(-1).tolist(), strict=True):
                message.value.add(tag=_text(tag), simple_value=value)
            return _serialized(message)

        return summarize


@op
class HistogramSummary(_Summary):
    """A summary with a histogram of all values.

    tag: its tag
    values: finite numbers of any shape
    """

    signature = f"HistogramSummary[T:{REAL} = float](tag:string, values:T) -> (summary:string)"
    examples = (Example([_TAG, [[-2.0, 0.0], [0.5, 0.5]]]), Example([_TAG, [1, 2, 3]]))
    failures = (_NAN,)

    def kernel(k: KernelContext) -> Kernel:
        def summarize(tag: Any, values: Any) -> Any:
            numbers = on_host(values).astype(np.float64)
            if not np.isfinite(numbers).all():
                what = "Nan" if np.isnan(numbers.reshape(-1)[~np.isfinite(numbers).reshape(-1)][0]) else "Infinity"
                raise _refused(k, f"{what} in summary histogram for: {k.node_name}")
            message = _schema().Summary()
            message.value.add(tag=_one_tag(k, tag), histo=_values().histogram(numbers))
            return _serialized(message)

        return summarize


def _image_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(1), 4)
    c.set_output(0, c.scalar())


@op
class ImageSummary(_Summary):
    """A summary with images, as PNG.

    tag: the beginning of their tags
    tensor: [batch, height, width, channels], with 1, 3 or 4 channels: grey, or red, green and blue, or these and alpha. Floats are scaled, each
        image by itself: so that the largest is 255, or with negative ones so that 0 is 128.
    max_images: the most images, taken from the beginning of the batch.
    bad_color: the colour of pixels that are not finite.
    """

    signature = (
        "ImageSummary[max_images:int >= 1 = 3, T:{uint8, float, half, double} = float, "
        "bad_color:tensor = Tensor<type: uint8 shape: [4] values: 255 0 0 255>](tag:string, tensor:T) -> (summary:string)"
    )
    shape = _image_shape
    examples = (Example([_TAG, [[[[0.0], [0.5]], [[1.0], [2.0]]]]]), Example([_TAG, np.zeros((2, 1, 1, 3), np.uint8)], {"max_images": 1}))
    failures = (Example([_TAG, [[[[0.0, 0.5]]]]]),)

    def kernel(k: KernelContext) -> Kernel:
        most, bad = k.attr("max_images"), k.attr("bad_color")
        assert isinstance(most, int)
        if not isinstance(bad, TensorValue) or bad.dtype is not uint8 or bad.array.ndim != 1:
            raise _refused(k, f"bad_color must be a vector of uint8, got {bad!r}")
        colour = bad.array

        def summarize(tag: Any, tensor: Any) -> Any:
            images = on_host(tensor)
            if images.ndim != 4 or images.shape[3] not in _COLOURS:
                raise _refused(k, f"Tensor must be 4-D with last dim 1, 3, or 4, not {list(images.shape)}")
            if colour.size < images.shape[3]:
                raise _refused(k, f"expected depth <= bad_color.size, got depth = {images.shape[3]}, bad_color.size = {colour.size}")
            message = _schema().Summary()
            _, height, width, depth = images.shape
            from graphcore.opset.numerics.png_writer import png_bytes  # noqa: PLC0415 - few sessions need it

            as_pixels = _values().as_pixels
            for label, image in _labelled(_one_tag(k, tag), "image", most, images):
                value = message.value.add(tag=label)
                value.image.height, value.image.width, value.image.colorspace = height, width, depth
                value.image.encoded_image_string = png_bytes(as_pixels(image, colour))
            return _serialized(message)

        return summarize


def _labelled(tag: str, kind: str, most: int, parts: Any) -> list[tuple[str, Any]]:
    """The first parts of a batch, with their tags."""
    if most == 1:
        return [(f"{tag}/{kind}", part) for part in parts[:1]]
    return [(f"{tag}/{kind}/{i}", part) for i, part in enumerate(parts[:most])]


def _sound_shape(c: InferenceContext) -> None:
    c.with_rank_at_least(c.input(1), 2)
    c.with_rank_at_most(c.input(1), 3)
    c.set_output(0, c.scalar())


@op
class AudioSummaryV2(_Summary):
    """A summary with sound, as WAV of 16 bits.

    tag: the beginning of the tags
    tensor: [batch, frames, channels] or [batch, frames], from -1 to 1
    sample_rate: frames a second
    max_outputs: the most sounds, taken from the beginning of the batch.
    """

    signature = "AudioSummaryV2[max_outputs:int >= 1 = 3](tag:string, tensor:float, sample_rate:float) -> (summary:string)"
    shape = _sound_shape
    examples = (Example([_TAG, [[0.0, 0.5, -1.0, 2.0]], 8000.0]), Example([_TAG, [[[0.0, 0.25]]], 44100.0], {"max_outputs": 1}))
    failures = (Example([_TAG, [[0.0, 0.5]], -1.0]),)

    def kernel(k: KernelContext) -> Kernel:
        most = k.attr("max_outputs")
        assert isinstance(most, int)

        def summarize(tag: Any, tensor: Any, sample_rate: Any) -> Any:
            rate = float(on_host(sample_rate).item())
            if not rate > 0:
                raise _refused(k, f"sample_rate must be > 0, got {rate}")
            sounds = on_host(tensor)
            sounds = sounds[:, :, None] if sounds.ndim == 2 else sounds
            message = _schema().Summary()
            for label, sound in _labelled(_one_tag(k, tag), "audio", most, sounds):
                value = message.value.add(tag=label)
                audio = value.audio
                audio.sample_rate, audio.content_type = rate, "audio/wav"
                audio.length_frames, audio.num_channels = sound.shape
                audio.encoded_audio_string = _values().wav_bytes(sound, int(rate))
            return _serialized(message)

        return summarize


@op
class TensorSummaryV2(_Summary):
    """A summary with a tensor, and with data for the plugin of TensorBoard that shows it.

    tag: its tag
    tensor: any tensor
    serialized_summary_metadata: a serialized SummaryMetadata
    """

    signature = "TensorSummaryV2[T:type](tag:string, tensor:T, serialized_summary_metadata:string) -> (summary:string)"
    examples = (Example([_TAG, [1.0, 2.0], np.array(b"\n\x06\n\x04text", object)]),)
    failures = (Example([_TAG, [1.0, 2.0], np.array(b"no message", object)]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype = k.input_types[1].base

        def summarize(tag: Any, tensor: Any, metadata: Any) -> Any:
            from google.protobuf.message import DecodeError  # noqa: PLC0415 - it loads protobuf

            from graphcore.definitions.wire.tensors import write_tensor  # noqa: PLC0415 - it loads protobuf

            message = _schema().Summary()
            value = message.value.add(tag=_one_tag(k, tag))
            try:
                value.metadata.ParseFromString(on_host(metadata).item())
            except DecodeError:
                raise _refused(k, "serialized_summary_metadata is no SummaryMetadata") from None
            write_tensor(TensorValue(on_host(tensor), dtype), value.tensor)
            return _serialized(message)

        return summarize


@op
class MergeSummary(_Summary):
    """The values of several summaries in one; each tag may be in it once.

    inputs: serialized summaries
    """

    signature = "MergeSummary[N:int >= 1](inputs:N*string) -> (summary:string)"
    examples = (Example([[np.array(b"\n\x08\n\x01a\x15\x00\x00\xc0?", object), np.array(b"", object)]]),)
    failures = (Example([[np.array(b"no summary", object)]]),)

    def kernel(k: KernelContext) -> Kernel:
        def merge(*inputs: Any) -> Any:
            from google.protobuf.message import DecodeError  # noqa: PLC0415 - it loads protobuf

            merged, part, seen = _schema().Summary(), _schema().Summary(), set()
            for summary in (item for array in inputs for item in on_host(array).reshape(-1).tolist()):
                try:
                    part.ParseFromString(summary)
                except DecodeError:
                    raise _refused(k, "Could not parse one of the summary inputs") from None
                for value in part.value:
                    if value.tag and value.tag in seen:
                        raise _refused(k, f"Duplicate tag {value.tag} found in summary inputs")
                    seen.add(value.tag)
                    merged.value.add().CopyFrom(value)
            return _serialized(merged)

        return merge
