"""TensorFlow's V2 checkpoints: an index of tensors by name, and files with their elements."""

from graphcore.checkpoints.bundles import data_files, index_path
from graphcore.checkpoints.merging import merge_checkpoints
from graphcore.checkpoints.reading import CheckpointReader
from graphcore.checkpoints.slices import SliceSpec, parse_slice_spec
from graphcore.checkpoints.writing import write_checkpoint

__all__ = ["CheckpointReader", "SliceSpec", "data_files", "index_path", "merge_checkpoints", "parse_slice_spec", "write_checkpoint"]
