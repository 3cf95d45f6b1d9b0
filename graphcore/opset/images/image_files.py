"""Images from the contents of files, and the contents of files from images. Pillow reads the formats and writes JPEG."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import scalar_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op, op
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import float_attr, invalid
from graphcore.opset.numerics.png_writer import png_bytes
from graphcore.opset.numerics.string_arrays import one_string, strings
from graphcore.support.memory_limits import check_allocation

_PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a730000001649444154789c636410d1b0b1b161a8e859b0e5c41d0015ac04ee"
    "bba8f9ce0000000049454e44ae426082"
)
_GREY: Final = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb00430050373c463c32504641465a55505f78c882786e6e78f5afb991c8ffffffffffffffffffffffff"
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffc0000b080008000801011100ffc40014000100000000000000000000000000000002ffc4"
    "0014100100000000000000000000000000000000ffda0008010100003f000fffd9"
)
"""A JPEG file of 8 x 8 grey pixels."""
_BMP: Final = bytes.fromhex(
    "424d42000000000000003600000028000000040000000100000001001800000000000c000000c40e0000c40e0000000000000000000028140064503ca08c78dcc8b4"
)
_SIGNATURES: Final = {b"\x89PNG\r\n\x1a\n": "PNG", b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF", b"BM": "BMP"}
_WIDE_MODES: Final = ("I;16", "I;16B", "I")
"""Pillow's names of modes with more than 8 bits a pixel."""
_MODES: Final = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_MOST_COMPRESSION: Final = 9
_PIXELS: Final = (np.arange(18, dtype=np.uint8) * 13).reshape(2, 3, 3)


def _pillow(k: KernelContext) -> Any:
    try:
        from PIL import Image  # noqa: PLC0415 - optional, and needed for files of images only
    except ImportError:
        text = f"{k.op} node '{k.node_name}' needs the package Pillow, which is not installed: pip install pillow"
        raise UnimplementedError(text, op=k.op, node=k.node_name, source=k.source) from None
    return Image


@contextmanager
def _reading(k: KernelContext, kind: str, contents: Any) -> Iterator[None]:
    """Report what Pillow finds wrong with a file of that format as an error of the node."""
    try:
        yield
    except (OSError, EOFError, SyntaxError, ValueError, _pillow(k).DecompressionBombError) as error:
        raise invalid(k, f"Invalid {kind} data, size {len(one_string(contents))}: {error}") from None


def _opened(k: KernelContext, contents: Any) -> Any:
    """The image of a file, of which only the header is read."""
    if contents.size != 1:
        raise invalid(k, f"contents must be scalar, got shape {list(contents.shape)}")
    data = one_string(contents)
    kind = next((kind for start, kind in _SIGNATURES.items() if data.startswith(start)), "")
    if not kind:
        raise invalid(k, f"Unknown image file format. One of JPEG, PNG, GIF, BMP required; the contents begin with {data[:8]!r}")
    with _reading(k, kind, contents):
        return _pillow(k).open(io.BytesIO(data), formats=[kind])


def _bands(k: KernelContext, image: Any, channels: int) -> int:
    """The number of channels of the pixels, for 0 that of the file."""
    if image.mode in _WIDE_MODES:
        return 3 if channels == 3 else 1
    if channels not in (0, 1, 3, 4):
        raise invalid(k, f"channels must be 0, 1, 3 or 4, got {channels}")
    if image.mode == "P" and "transparency" in image.info:
        return channels or 4
    return channels or (3 if image.mode in ("P", "CMYK", "YCbCr") else len(image.getbands()))


def _array(image: Any, bands: int, dtype: np.dtype[Any]) -> Any:
    """The pixels of an image: [rows, columns, bands]."""
    if image.mode in _WIDE_MODES:
        wide = np.asarray(image).astype(np.uint16)[..., None]
        pixels = wide if dtype == np.uint16 else (wide >> 8).astype(np.uint8)
        return np.repeat(pixels, bands, -1)
    pixels = np.asarray(image.convert(_MODES[bands])).reshape(image.height, image.width, bands)
    # A pixel of 8 bits is the higher and the lower half of one of 16 bits.
    return pixels.astype(np.uint16) * np.uint16(257) if dtype == np.uint16 else pixels


def _converted(pixels: Any, dtype: np.dtype[Any]) -> Any:
    return pixels.astype(np.float32) / np.float32(255) if dtype == np.float32 else pixels


def _frames(image: Any) -> Any:
    """The frames of an animation in full: [frames, rows, columns, 3]."""
    frames = []
    for number in range(image.n_frames):
        image.seek(number)
        frames.append(np.asarray(image.convert("RGB")))
    return np.stack(frames)


def _decoded_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 0)
    if c.op == "DecodeGif":
        c.set_output(0, c.make_shape([c.unknown_dim()] * 3 + [3]))
        return
    channels = c.int_attr("channels")
    if channels < 0:
        raise InvalidArgumentError(f"channels must be non-negative, got {channels}")
    if c.op == "DecodeImage" and c.attr("expand_animations"):
        c.set_output(0, c.unknown_shape())
        return
    rows, columns = c.unknown_dim(), c.unknown_dim()
    if c.num_inputs > 1:
        c.with_value(c.dim(c.with_rank(c.input(1), 1), 0), 4)
        window = c.input_tensor(1)
        if window is not None:
            rows, columns = (c.make_dim(int(size)) for size in window[2:])
    c.set_output(0, c.make_shape([rows, columns, channels or c.unknown_dim()]))


def _decode(k: KernelContext) -> Kernel:
    channels = 0 if k.op == "DecodeGif" else required_int(k.attrs, "channels")
    dtype = k.dtype("dtype") if "dtype" in k.attrs else np.dtype(np.uint8)
    animated = k.op == "DecodeGif" or (k.op == "DecodeImage" and bool(k.attr("expand_animations")))
    ratio = required_int(k.attrs, "ratio") if "ratio" in k.attrs else 1

    def decode(contents: Any, *window: Any) -> Any:
        image = _opened(k, contents)
        if image.format == "GIF" and animated:
            with _reading(k, image.format, contents):
                check_allocation((image.n_frames, image.height, image.width, 3), dtype)
                return _converted(_frames(image), dtype)
        if k.op == "DecodeGif":
            raise invalid(k, f"Expected a GIF, got a {image.format}")
        bands = _bands(k, image, channels)
        check_allocation((image.height, image.width, bands), dtype)
        with _reading(k, image.format, contents):
            image.load()
        pixels = _array(image, bands, np.dtype(np.uint16) if dtype == np.uint16 else np.dtype(np.uint8))
        if ratio > 1:
            pixels = np.asarray(image.reduce(ratio).convert(_MODES[pixels.shape[-1]])).reshape(
                -1, -(-image.width // ratio), pixels.shape[-1]
            )
        if window:
            y, x, height, width = (int(value) for value in window[0].tolist())
            if min(y, x) < 0 or min(height, width) <= 0 or y + height > pixels.shape[0] or x + width > pixels.shape[1]:
                raise invalid(k, f"Invalid JPEG data or crop window {window[0].tolist()}")
            pixels = pixels[y : y + height, x : x + width]
        return _converted(pixels, dtype)

    return decode


_BAD: Final = (Example([b"no image"]),)
_CONTENTS: Final = "\n\ncontents: the file, a scalar\nimage: [rows, columns, channels]"
_CHANNELS: Final = "\nchannels: 1 for grey, 3 for colours, 4 with opacity; 0 for those of the file.\n"


def _decoder(name: str, attrs: str, doc: str, output: str = "uint8", args: str = "contents:string", failures: Sequence[Any] = _BAD) -> None:
    crops = "crop_window" in args
    define_op(
        name,
        doc,
        signature=f"{name}{attrs and f'[{attrs}]'}({args}) -> (image:{output})",
        shape=_decoded_shape,
        kernel=_decode,
        gradient=NO_GRADIENT,
        device_types=("CPU",),
        examples=(
            Example(
                [_GREY] if "Jpeg" in name and not crops else [_GREY, [0, 1, 4, 2]] if crops else [_BMP if name == "DecodeBmp" else _PNG]
            ),
        )
        if name != "DecodeGif"
        else (Example([_GIF]),),
        failures=failures,
    )


_GIF: Final = bytes.fromhex("47494638396101000100800000ff00000000ff2c00000000010001000002024401003b")
_JPEG: Final = (
    "channels:int = 0, ratio:int = 1, fancy_upscaling:bool = true, try_recover_truncated:bool = false, acceptable_fraction:float = 1.0, "
    "dct_method:string = ''"
)
_JPEG_DOC: Final = """ratio: reduce the image so many times.
fancy_upscaling: ignored: colours are always interpolated.
try_recover_truncated: ignored: an incomplete file is an error.
acceptable_fraction: ignored.
dct_method: ignored.
"""
_decoder("DecodePng", "channels:int = 0, dtype:{uint8, uint16} = uint8", f"The pixels of a PNG file.{_CONTENTS}{_CHANNELS}", "dtype")
_decoder("DecodeJpeg", _JPEG, f"The pixels of a JPEG file.{_CONTENTS}{_CHANNELS}{_JPEG_DOC}")
_decoder(
    "DecodeAndCropJpeg",
    _JPEG,
    f"The pixels of a part of a JPEG file.{_CONTENTS}\ncrop_window: [4], the first row and column, and the numbers of rows and columns{_CHANNELS}{_JPEG_DOC}",
    args="contents:string, crop_window:int32",
    failures=(Example([b"no image", [0, 0, 1, 1]]),),
)
_decoder("DecodeBmp", "channels:int = 0", f"The pixels of a BMP file.{_CONTENTS}{_CHANNELS}")
_decoder("DecodeGif", "", "The frames of a GIF file.\n\ncontents: the file, a scalar\nimage: [frames, rows, columns, 3]\n")
_decoder(
    "DecodeImage",
    "channels:int = 0, dtype:{uint8, uint16, float} = uint8, expand_animations:bool = true",
    f"The pixels of a PNG, JPEG, GIF or BMP file.{_CONTENTS}, or [frames, rows, columns, 3] for a GIF{_CHANNELS}"
    "expand_animations: return all frames of a GIF, not only the first.\n",
    "dtype",
)


@op
class ExtractJpegShape:
    """The shape of the pixels of a JPEG file, which are not read.

    contents: the file, a scalar
    image_shape: [3], rows, columns and channels
    """

    signature = "ExtractJpegShape[output_type:{int32, int64} = int32](contents:string) -> (image_shape:output_type)"
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([_GREY], outputs=[[8, 8, 1]]),)
    failures = _BAD

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 0)
        c.set_output(0, c.vector(3))

    def kernel(k: KernelContext) -> Kernel:
        dtype = k.dtype("output_type")

        def extract(contents: Any) -> Any:
            image = _opened(k, contents)
            return np.array([image.height, image.width, len(image.getbands())], dtype)

        return extract


def _encode(k: KernelContext, pixels: Any, written: Callable[[Any], bytes]) -> Any:
    if pixels.ndim < 3 or pixels.shape[-1] not in _MODES or not pixels.size:
        raise invalid(k, f"image must be [..., rows, columns, channels] with 1, 2, 3 or 4 channels, got {list(pixels.shape)}")
    return strings([written(one) for one in pixels.reshape(-1, *pixels.shape[-3:])], pixels.shape[:-3])


@op
class EncodePng:
    """The contents of PNG files of images.

    image: [..., rows, columns, channels]
    contents: [...]
    compression: 0 to 9; -1 for the default.
    """

    signature = "EncodePng[compression:int = -1, T:{uint8, uint16} = uint8](image:T) -> (contents:string)"
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([_PIXELS]), Example([np.stack([_PIXELS] * 2)]), Example([_PIXELS.astype(np.uint16) * 257], {"compression": 9}))
    failures = (Example([np.zeros((2, 3, 5), np.uint16)]), Example([_PIXELS], {"compression": 10}))

    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank_at_least(c.input(0), 3)
        c.set_output(0, c.subshape(in_shape, 0, -3) if c.rank_known(in_shape) else c.unknown_shape())

    def kernel(k: KernelContext) -> Kernel:
        compression = required_int(k.attrs, "compression")
        if not -1 <= compression <= _MOST_COMPRESSION:
            raise invalid(k, f"compression should be in [-1,{_MOST_COMPRESSION}], got {compression}")
        return lambda pixels: _encode(k, pixels, lambda one: png_bytes(one, compression))


@op
class EncodeJpeg:
    """The contents of a JPEG file of an image.

    image: [rows, columns, channels], grey or in colours
    format: grayscale or rgb; empty for that of the image.
    quality: 0 to 100.
    progressive: write a file that can be shown before it is complete.
    optimize_size: write a smaller file in more time.
    chroma_downsampling: write colours in half the resolution.
    density_unit: the unit of the densities.
    x_density: dots by unit.
    y_density: dots by unit.
    xmp_metadata: a text to store in the file.
    """

    signature = (
        "EncodeJpeg[format:{'', 'grayscale', 'rgb'} = '', quality:int = 95, progressive:bool = false, optimize_size:bool = false, "
        "chroma_downsampling:bool = true, density_unit:{'in', 'cm'} = 'in', x_density:int = 300, y_density:int = 300, "
        "xmp_metadata:string = ''](image:uint8) -> (contents:string)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([_PIXELS]),)
    failures = (Example([np.zeros((2, 3, 4), np.uint8)]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 3)
        scalar_shape(c)

    def kernel(k: KernelContext) -> Kernel:
        wanted, quality, text = k.attr("format"), required_int(k.attrs, "quality"), k.attr("xmp_metadata")
        scale = 2.54 if k.attr("density_unit") == b"cm" else 1.0
        options: dict[str, Any] = {
            "quality": quality,
            "progressive": bool(k.attr("progressive")),
            "optimize": bool(k.attr("optimize_size")),
            "subsampling": 2 if k.attr("chroma_downsampling") else 0,
            "dpi": tuple(round(float_attr(k, name) * scale) for name in ("x_density", "y_density")),
            **({"xmp": text} if text else {}),
        }

        def written(one: Any) -> bytes:
            out = io.BytesIO()
            _pillow(k).fromarray(one[..., 0] if one.shape[-1] == 1 else one).save(out, "JPEG", **options)
            return out.getvalue()

        def encode(pixels: Any) -> Any:
            channels = pixels.shape[-1] if pixels.ndim == 3 else 0
            if channels not in (1, 3) or wanted not in (b"", {1: b"grayscale", 3: b"rgb"}[channels]):
                raise invalid(k, f"image must be [rows, columns, channels] with 1 or 3 channels as in format, got {list(pixels.shape)}")
            return _encode(k, pixels, written)

        return encode
