"""TensorFlow's V2 checkpoints: an index of tensors by name, and files with their elements."""

from graphcore.checkpoints.bundles import index_path
from graphcore.checkpoints.reading import CheckpointReader
from graphcore.checkpoints.slices import SliceSpec, parse_slice_spec
from graphcore.checkpoints.writing import merge_checkpoints, write_checkpoint

__all__ = ["CheckpointReader", "SliceSpec", "index_path", "merge_checkpoints", "parse_slice_spec", "write_checkpoint"]
