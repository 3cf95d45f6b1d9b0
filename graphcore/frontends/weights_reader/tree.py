"""The tree of tensors that a file of weights shows."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, ModuleCall, Port, WeightRef
from graphcore.frontends.words import dtype_of, shaped
from graphcore.shapes import MAX_RANK
from graphcore.support.files import file_errors, open_file
from graphcore.support.memory_limits import check_claim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from graphcore.attrs import Array

MAX_FACTS: Final = 60
_MAX_TEXT: Final = 200
_MAX_SCOPES: Final = 20
_MAX_SIZE: Final = 2**63
_BUFFERS: Final = ("running_mean", "running_var", "num_batches_tracked", "moving_mean", "moving_variance")
_UNITS: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def tensor_tree(
    kind: str,
    prefix: str,
    tensors: Mapping[str, WeightRef],
    facts: Mapping[str, str],
    notes: Sequence[str] = (),
    *,
    producer: str = "",
    name: str = "",
) -> ForeignGraph:
    """A graph of tensors without edges, in scopes by the parts of their names between dots or slashes.

    Args:
        kind: the kind of file in words.
        prefix: the domain of the ops: `safetensors` for `safetensors.Tensor`.
        tensors: the tensors by name.
        facts, notes, producer, name: those of the graph. Counts of tensors, elements and bytes come first.
    """
    nodes = []
    for path, weight in tensors.items():
        port = Port(path[:_MAX_TEXT], weight.dtype, weight.shape)
        role = "buffer" if path.endswith(_BUFFERS) else "parameter"
        nodes.append(ForeignNode(path, f"{prefix}.Tensor", outputs=(port,), weight=weight, kind=role, modules=_scopes(path)))
    sizes = [weight.nbytes for weight in tensors.values()]
    counted = {"tensors": f"{len(nodes):,}", "elements": f"{sum([prod(weight.shape) for weight in tensors.values()]):,}"}
    if sizes and min(sizes) >= 0:
        counted["size"] = bytes_text(sum(sizes))
    shown = {key[:_MAX_TEXT]: value[:_MAX_TEXT] for key, value in list(facts.items())[:MAX_FACTS]}
    said = ["The file holds tensors and no graph.", *notes]
    if len(facts) > len(shown):
        said.append(f"{len(facts) - len(shown):,} further values of the file are not shown.")
    main = ForeignFunction("main", nodes=nodes)
    return ForeignGraph(kind, main, producer, name, facts={**counted, **shown}, notes=said, has_graph=False)


def _scopes(path: str) -> tuple[ModuleCall, ...]:
    """The scopes by which a tensor is named: modules for dots, scopes for slashes."""
    if "/" in path:
        return tuple([ModuleCall(part) for part in path.split("/")[:-1][:_MAX_SCOPES] if part])
    parts = path.split(".")[:-1][:_MAX_SCOPES]
    return tuple([ModuleCall(".".join(parts[: count + 1])) for count in range(len(parts))])


def bytes_text(size: int) -> str:
    """A number of bytes in words: `1.50 GiB`."""
    unit, word = next(((unit, word) for unit, word in _UNITS if size >= unit), (1, "bytes"))
    return f"{size:,} bytes" if unit == 1 else f"{size / unit:.2f} {word}"


def checked_sizes(sizes: Sequence[object], what: str) -> tuple[int, ...]:
    """Sizes of a tensor.

    Raises:
        InvalidArgumentError: one is no size, or they are too many or too large.
    """
    checked = tuple([size for size in sizes if type(size) is int and 0 <= size < _MAX_SIZE])
    if len(checked) != len(sizes) or len(checked) > MAX_RANK or prod(checked) >= _MAX_SIZE:
        raise InvalidArgumentError(f"{what} has no valid shape: {str(list(sizes[:8]))[:_MAX_TEXT]}")
    return checked


def bytes_at(path: Path, start: int, size: int, what: str) -> bytes:
    """The bytes of a tensor in a file.

    Raises:
        GraphError: they are not in the file, or do not fit into memory.
    """
    check_claim(size, what)
    with open_file(path) as file, file_errors(path):
        file.seek(start)
        data = file.read(size)
    if len(data) != size:
        raise InvalidArgumentError(f"'{path.name}' ends before the bytes of {what}: required {start:,} to {start + size:,}")
    return data


def elements_at(path: Path, start: int, size: int, what: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """The elements of a tensor in a file.

    Raises:
        GraphError: they are not in the file, have no type of NumPy, or do not fit into memory.
    """
    import numpy as np  # noqa: PLC0415 - its name is needed here only

    kind = dtype_of(dtype).as_numpy
    if kind is None or kind.hasobject:
        raise InvalidArgumentError(f"{what} has type {dtype}, whose elements NumPy cannot hold")
    if prod(shape) * kind.itemsize != size:
        raise InvalidArgumentError(f"{what} of type {dtype} and shape {list(shape)} has {size:,} bytes")
    return shaped(np.frombuffer(bytes_at(path, start, size, what), kind), shape, what)


def file_label(path: Path) -> str:
    """A file's name without its endings, as the name of what it holds."""
    return re.sub(r"(\.safetensors|\.index|\.json|\.gguf|\.npz|\.npy)+$", "", path.name)
