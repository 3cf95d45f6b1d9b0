"""`tf.summary`: summaries of tensors, and writers of event files, which TensorBoard opens."""

from graphcore.tf1.summary.messages import (
    Event,
    SessionLog,
    Summary,
    SummaryDescription,
    TaggedRunMetadata,
    get_summary_description,
    summary_iterator,
)
from graphcore.tf1.summary.nodes import audio, histogram, image, merge, merge_all, scalar, tensor_summary, text
from graphcore.tf1.summary.writers import FileWriter, FileWriterCache

__all__ = [
    "Event",
    "FileWriter",
    "FileWriterCache",
    "SessionLog",
    "Summary",
    "SummaryDescription",
    "TaggedRunMetadata",
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "summary_iterator",
    "tensor_summary",
    "text",
]
