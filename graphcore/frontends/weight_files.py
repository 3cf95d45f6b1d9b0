"""Files of weights without a graph: safetensors, GGUF, NumPy's arrays, TensorFlow's checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphcore.frontends.weights_reader.checkpoints import is_checkpoint, read_checkpoint
from graphcore.frontends.weights_reader.gguf import MAGIC as GGUF
from graphcore.frontends.weights_reader.gguf import read_gguf
from graphcore.frontends.weights_reader.numpy_arrays import ENDING, read_arrays
from graphcore.frontends.weights_reader.numpy_arrays import MAGIC as NUMPY
from graphcore.frontends.weights_reader.safetensors import is_safetensors, read_safetensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source

KIND: Final = "weights without a graph (.safetensors, also by .index.json; .gguf; .npz, .npy; a TensorFlow checkpoint's .index)"


def sniff(source: Source) -> bool:
    """True iff the source is a file of weights that is read here."""
    return _reader(source) is not None


def read(source: Source) -> ForeignGraph:
    """Read the names, types and shapes of the tensors.

    Raises:
        GraphError: the file is damaged, exceeds a limit, or a library is missing.
    """
    reader = _reader(source)
    assert reader is not None  # as sniffed
    return reader(source)


def _reader(source: Source) -> Callable[[Source], ForeignGraph] | None:
    if source.path is None:
        return None
    if source.members:
        return read_arrays if all(name.endswith(ENDING) for name in source.members) else None
    if source.head.startswith(GGUF):
        return read_gguf
    if source.head.startswith(NUMPY) and not source.is_gzipped:
        return read_arrays
    if is_safetensors(source):
        return read_safetensors
    return read_checkpoint if is_checkpoint(source) else None
