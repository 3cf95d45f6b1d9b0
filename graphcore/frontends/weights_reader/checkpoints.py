"""TensorFlow's checkpoints: the index of the tensors; the elements lie in files beside it."""

from __future__ import annotations

import os
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Final

from graphcore.checkpoints import CheckpointReader
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignGraph, WeightRef
from graphcore.frontends.weights_reader.tree import tensor_tree
from graphcore.support.files import file_errors, is_file, open_file

if TYPE_CHECKING:
    from pathlib import Path

    from graphcore.frontends.frontend import Source

_ENDING: Final = ".index"
_MARK: Final = bytes.fromhex("57fb808b247547db")
"""The last bytes of a sorted table."""
_OF_OBJECTS: Final = "/.ATTRIBUTES/VARIABLE_VALUE"
_OBJECTS: Final = "_CHECKPOINTABLE_OBJECT_GRAPH"


def is_checkpoint(source: Source) -> bool:
    """True iff the source is the index of a checkpoint: a sorted table whose first key is empty."""
    path = source.path
    if path is None or source.is_gzipped or source.head[:2] != b"\0\0" or not is_file(path):
        return False
    with open_file(path) as file, file_errors(path):
        file.seek(max(os.fstat(file.fileno()).st_size - len(_MARK), 0))
        return file.read() == _MARK


def read_checkpoint(source: Source) -> ForeignGraph:
    """Read the index of a checkpoint.

    Raises:
        GraphError: it is damaged, or has another name than `PREFIX.index`.
    """
    path = source.path
    assert path is not None  # files only are sniffed
    if path.suffix != _ENDING:
        raise InvalidArgumentError(f"'{path.name}' is the index of a checkpoint; required a name that ends in '{_ENDING}'")
    prefix = str(path)[: -len(_ENDING)]
    reader = CheckpointReader(prefix)
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    has_data = _has_data(path)
    weights: dict[str, WeightRef] = {}
    for name in sorted(shapes):
        if name == _OBJECTS:
            continue
        dtype, shape = dtypes[name], tuple(shapes[name])
        numpy = dtype.as_numpy
        size = -1 if numpy is None or numpy.hasobject else prod(shape) * numpy.itemsize
        weights[name.removesuffix(_OF_OBJECTS)] = WeightRef(dtype.text, shape, size, partial(reader.get_tensor, name) if has_data else None)
    notes = [] if has_data else [f"The elements are not there: required '{path.stem}.data-00000-of-00001' beside the index."]
    return tensor_tree("TensorFlow checkpoint", "tf", weights, {}, notes, producer="TensorFlow", name=path.stem)


def _has_data(path: Path) -> bool:
    try:
        return any(name.startswith(f"{path.stem}.data-") for name in os.listdir(path.parent))  # noqa: PTH208 - names only
    except OSError:
        return False
