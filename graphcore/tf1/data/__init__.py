"""`tf.data`: datasets of elements that are made one after another, and iterators over them."""

from graphcore.tf1.data.datasets import Dataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from graphcore.tf1.data.iterators import Iterator, make_initializable_iterator, make_one_shot_iterator
from graphcore.tf1.data.structures import get_output_classes, get_output_shapes, get_output_types

__all__ = [
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]
