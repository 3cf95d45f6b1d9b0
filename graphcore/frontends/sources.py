"""Sources: files and objects, the frontends that read them, and the choice of one."""

from __future__ import annotations

import os
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from graphcore.brief import brief
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.frontend import HEAD_BYTES, Frontend, Source
from graphcore.frontends.looks import looks_like
from graphcore.support.files import checked_path, is_file, is_folder, open_file

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from graphcore.frontends.foreign import ForeignGraph

ENTRY_POINTS: Final = "graphloupe.frontends"
"""The group of entry points by which other packages add frontends."""
MAX_MEMBERS: Final = 100_000
"""The most members of an archive that are looked at."""

_MODULES: Final = (
    "onnx_model",
    "torch_program",
    "torch_script",
    "torch_weights",
    "tflite_model",
    "torch_call",
    "jax_call",
    "torch_objects",
    "keras_config",
    "jaxpr",
    "openvino_model",
    "hlo_text",
    "mlir_module",
    "weight_files",
    "coreml_model",
    "graph_objects",
)
"""The frontends of this package: modules beside this one, in the order in which they are asked."""
_TENSORFLOW: Final = "TensorFlow graph (GraphDef .pb, .pbtxt, .json; MetaGraphDef .meta; SavedModel folder; gzipped ones; TensorBoard event file or log folder)"


def frontends() -> Iterator[Frontend]:
    """Import and yield the frontends of this package one by one, then those of other packages."""
    package = __name__.rpartition(".")[0]
    for name in _MODULES:
        yield cast("Frontend", import_module(f"{package}.{name}"))
    yield from frontends_of_other_packages()


@cache
def frontends_of_other_packages() -> tuple[Frontend, ...]:
    """The frontends of other packages, by name.

    One that cannot be imported is left out, and said on the error stream.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - it loads a mail library, which only few sources need

    return tuple(_loaded(sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)))


def _loaded(points: Iterable[EntryPoint]) -> Iterator[Frontend]:
    for point in points:
        try:
            yield point.load()
        except Exception as error:  # noqa: BLE001 - another package must not keep this one from opening files
            sys.stderr.write(f"note: the frontend '{point.name}' ({point.value}) cannot be imported: {error}\n")


def kinds() -> tuple[str, ...]:
    """The kinds of sources that can be opened, in words."""
    return (_TENSORFLOW, *[frontend.KIND for frontend in frontends()])


def source_of(path_or_value: object) -> Source:
    """The source for a path or an object, with what frontends see of it.

    A text that names no file but holds a line break or a brace is an object, as DOT text is.

    Raises:
        NotFoundError: there is no such file.
        GraphError: the file cannot be read.
    """
    if not isinstance(path_or_value, str | os.PathLike) or (isinstance(path_or_value, str) and _is_text(path_or_value)):
        return Source(value=path_or_value)
    path = checked_path(path_or_value)
    if is_folder(path):
        return Source(path=path)
    with open_file(path) as file:
        head = file.read(HEAD_BYTES)
    plain = _gunzipped(head)
    if plain is not None:
        return Source(path=path, head=plain, is_gzipped=True)
    return Source(path=path, head=head, members=_members(path) if head.startswith(b"PK") else ())


def _is_text(path_or_text: str) -> bool:
    return ("\n" in path_or_text or "{" in path_or_text) and not is_file(path_or_text)


def _gunzipped(head: bytes) -> bytes | None:
    """The first bytes of what is gzipped; None if the file is not gzipped."""
    if not head.startswith(b"\x1f\x8b"):
        return None
    try:
        return zlib.decompressobj(31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return None


def _members(path: Path) -> tuple[str, ...]:
    """The names of the members of a zip archive; none if it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple([info.filename for info in archive.infolist()[:MAX_MEMBERS]])
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return ()


def frontend_for(source: Source) -> Frontend | None:
    """The frontend that reads a source, None if there is none."""
    return next((frontend for frontend in frontends() if frontend.sniff(source)), None)


def open_source(path_or_value: object) -> ForeignGraph:
    """Read a file or an object of another framework.

    Args:
        path_or_value: a path, or an object.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: no frontend reads this kind. The message says what it looks like, and what can be opened.
        GraphError: it is damaged, exceeds a limit, or a library is missing.
    """
    source = source_of(path_or_value)
    frontend = frontend_for(source)
    if frontend is None:
        raise unknown_kind(source)
    return read_by(frontend, source)


def read_by(frontend: Frontend, source: Source) -> ForeignGraph:
    """Read a source by a frontend. An error names the file."""
    try:
        return frontend.read(source)
    except GraphError as error:
        if source.path is not None and source.path.name not in error.message:
            error.message = f"{error.message} (in {named(source)})"
            error.args = (error.message,)
        raise
    except RecursionError:
        raise InvalidArgumentError(f"Cannot read {named(source)}: it is nested too deeply") from None
    except MemoryError:
        raise InvalidArgumentError(f"Cannot read {named(source)}: there is not enough memory for it") from None


def unknown_kind(source: Source) -> InvalidArgumentError:
    """The error for a source that no frontend reads."""
    openable = "; ".join(kinds())
    return InvalidArgumentError(f"Cannot open {named(source)}: it looks like {looks_like(source)}. What can be opened: {openable}")


def named(source: Source) -> str:
    """A source in words: the file's name, or the type of the object."""
    if source.path is not None:
        return brief(source.path.name) if not source.path.name.isprintable() else f"'{source.path.name}'"
    kind = type(source.value)
    return f"an object of type {kind.__module__}.{kind.__qualname__}"
