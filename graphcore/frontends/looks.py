"""Descriptions of bytes in words, for errors about sources of an unknown kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from graphcore.frontends.frontend import Source

_BEGINNINGS: Final = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF document"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"\x7fELF", "a program for Linux"),
    (b"MZ", "a program for Windows"),
    (b"BZh", "data compressed by bzip2"),
    (b"\xfd7zXZ", "data compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "data compressed by zstandard"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"GGUF", "a GGUF file of weights"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"SQLite format 3", "a SQLite database"),
    (b"ML\xefR", "MLIR bytecode"),
    (b"PAR1", "a Parquet table"),
    (b"BC\xc0\xde", "LLVM bytecode"),
)
_ELEMENTS: Final = re.compile(r"(.+\.onnx)[._]data(?:_\d+)?")
_PICKLE: Final = tuple(b"\x80" + bytes([version]) for version in range(2, 6))


def is_recognised(source: Source) -> bool:
    """True iff the bytes are surely those of another kind of file than a graph of TensorFlow."""
    head = source.head
    is_marked = any(head.startswith(beginning) for beginning, _ in _BEGINNINGS) or head.startswith(_PICKLE) or head[257:262] == b"ustar"
    return is_marked or bool(source.members) or head[4:8] == b"ftyp" or _model_beside(source) != ""


def _model_beside(source: Source) -> str:
    """The name of the ONNX model whose elements a file holds, "" for other files."""
    match = None if source.path is None else _ELEMENTS.fullmatch(source.path.name)
    return "" if match is None else match[1]


def looks_like(source: Source) -> str:
    """A source in words: `a zip archive with data.pkl, version`, `text that begins with ...`."""
    if source.path is None:
        return f"an object of a class that no reader knows, {type(source.value).__module__}.{type(source.value).__qualname__}"
    if model := _model_beside(source):
        return f"the elements of the tensors of an ONNX model: open {model[:100]!r} beside it"
    head = source.head
    zipped = " after gunzipping" if source.is_gzipped else ""
    if source.members:
        first = ", ".join(source.members[:3])
        return f"a zip archive with {first}" + (f" and {len(source.members) - 3:,} more members" if len(source.members) > 3 else "")
    if not head:
        return "a folder without a known model" if source.path.is_dir() else "an empty file"
    if head[257:262] == b"ustar":
        return "a tar archive"
    if head.startswith(_PICKLE):
        return "a Python pickle, which is never opened, since unpickling runs code" + zipped
    kind = next((words for beginning, words in _BEGINNINGS if head.startswith(beginning)), "")
    if kind:
        return kind + zipped
    if head[4:8] == b"ftyp":
        return "a video"
    text = _text(head)
    if text is not None:
        return f"text that begins with {_first_words(text)!r}{zipped}"
    return f"binary data that begins with the bytes {head[:12].hex(' ')}{zipped}"


def _text(head: bytes) -> str | None:
    if any(code < 32 and code not in b"\t\n\v\f\r" for code in head):
        return None
    try:
        return head.decode()
    except UnicodeDecodeError as error:
        return head[: error.start].decode() if error.start >= len(head) - 3 else None


def _first_words(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= 60 else f"{line[:60]}…"
