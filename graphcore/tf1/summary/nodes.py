"""Nodes that make summaries, under TensorFlow 1's names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.definitions.wire.schema import SummaryMetadata
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Tensor, get_default_graph
from graphcore.source import current_run
from graphcore.tf1 import logging
from graphcore.tf1.framework import add_to_collection, constant, convert_to_tensor, get_collection, name_scope
from graphcore.tf1.variables.collections import GraphKeys

__all__ = ["audio", "histogram", "image", "merge", "merge_all", "scalar", "tensor_summary", "text"]

_NOT_IN_TAGS: Final = re.compile(r"[^-/\w.]")


def scalar(name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Tensor:
    """A summary of a scalar.

    Args:
        name: the name of the node, from which its tag is made.
        tensor: a real scalar.
        collections: the collections to put the result into, by default `GraphKeys.SUMMARIES`.
        family: put before the tag, so that TensorBoard shows those of a family together.

    Returns:
        A scalar string tensor: a serialized `Summary`.
    """
    with _scope(name, family) as (tag, scope):
        return _made("ScalarSummary", [constant(tag, name="tags"), tensor], {}, scope, collections)


def histogram(name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Tensor:
    """A summary with a histogram of all values of a tensor; the other arguments are those of `scalar`."""
    with _scope(name, family, "HistogramSummary") as (tag, scope):
        return _made("HistogramSummary", [constant(tag, name="tag"), _typed(values)], {}, scope, collections)


def image(name: str, tensor: Any, max_outputs: int = 3, collections: Sequence[str] | None = None, family: str | None = None) -> Tensor:
    """A summary with images.

    Args:
        name, collections, family: as for `scalar`.
        tensor: [batch, height, width, channels] of 1, 3 or 4 channels. Floats are scaled, each image by itself; bytes are not.
        max_outputs: the most images, from the beginning of the batch.
    """
    with _scope(name, family) as (tag, scope):
        return _made("ImageSummary", [constant(tag, name="tag"), _typed(tensor)], {"max_images": max_outputs}, scope, collections)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary with sound.

    Args:
        name, collections, family: as for `scalar`.
        tensor: [batch, frames] or [batch, frames, channels], from -1 to 1.
        sample_rate: frames a second.
        max_outputs: the most sounds, from the beginning of the batch.
    """
    with _scope(name, family) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, "sample_rate")
        return _made("AudioSummaryV2", [constant(tag, name="tag"), tensor, rate], {"max_outputs": max_outputs}, scope, collections)


def text(name: str, tensor: Any, collections: Sequence[str] | None = None) -> Tensor:
    """A summary with text, which TensorBoard shows as Markdown.

    Args:
        name, collections: as for `scalar`.
        tensor: strings.
    """
    converted = convert_to_tensor(tensor)
    if converted.dtype.base is not dtypes.string:
        raise InvalidArgumentError(
            f"Expected tensor {converted.name} to have dtype string, got {converted.dtype.text}", node=converted.node.name
        )
    metadata = SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, converted, summary_metadata=metadata, collections=collections)


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Sequence[str] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A summary with a whole tensor.

    Args:
        name, collections, family: as for `scalar`.
        tensor: any tensor.
        summary_description: a description, for the plugin that shows it.
        summary_metadata: a `SummaryMetadata`, for this plugin.
        display_name: a name for people.
    """
    metadata = SummaryMetadata()
    if summary_metadata is not None:
        metadata.ParseFromString(summary_metadata.SerializeToString())
    if display_name is not None:
        metadata.display_name = display_name
    if summary_description is not None:
        metadata.summary_description = summary_description
    with _scope(name, family) as (tag, scope):
        serialized = constant(metadata.SerializeToString(deterministic=True), name="serialized_summary_metadata")
        return _made("TensorSummaryV2", [constant(tag, name="tag"), tensor, serialized], {}, scope, collections)


def merge(inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None) -> Tensor:
    """One summary with the values of several.

    Args:
        inputs: serialized summaries.
        collections: the collections to put the result into; none by default.
        name: the name of the node.
    """
    with name_scope(name, "Merge"):
        return _made("MergeSummary", [[_cleaned(summary) for summary in inputs]], {}, name, collections or ())


def _cleaned(summary: Any) -> Any:
    return summary if isinstance(summary, Tensor) else convert_to_tensor(summary, dtypes.string)


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """One summary with the values of all summaries in a collection.

    Args:
        key: the collection.
        scope: take only those with names that begin with it.
        name: the name of the node.

    It follows earlier cells that make other summaries when they run again.

    Returns:
        A scalar string tensor, None if the collection is empty.
    """
    chosen = _Chosen(get_default_graph(), key, scope)
    if not chosen.now():
        return None
    merged: Tensor = chosen.graph.derivations.derive(
        f"the summaries in '{key}'", lambda: merge(chosen.now(), name=name), fingerprint=chosen.names
    )
    return merged


class _Chosen:
    """The summaries in a collection at the time of a call; of earlier cells, those that these make now."""

    def __init__(self, graph: Graph, key: str, scope: str | None) -> None:
        self.graph = graph
        self._key = key
        self._scope = scope
        self._run = current_run.get()
        self._first = frozenset(self._named())

    def _named(self) -> dict[str, Tensor]:
        with self.graph.as_default():
            return {tensor.name: tensor for tensor in get_collection(self._key, self._scope)}

    def now(self) -> list[Tensor]:
        comes_before = self.graph.cells.comes_before
        return [tensor for name, tensor in self._named().items() if name in self._first or comes_before(tensor.node, self._run)]

    def names(self) -> list[str]:
        return [tensor.name for tensor in self.now()]


@contextmanager
def _scope(name: str, family: str | None, default: str | None = None) -> Iterator[tuple[str, str]]:
    """The tag and the name of a summary's node, within its name scope."""
    plain = _clean(name)
    group = None if family is None else _clean(family)
    with name_scope(plain if group is None else f"{group}/{plain}", default) as scope:
        tag = scope.rstrip("/")
        yield tag if group is None else f"{group}/{tag}", scope


def _typed(value: Any) -> Any:
    """A value as a node takes it: an array keeps its type, which the op's default would change."""
    return convert_to_tensor(value) if isinstance(value, np.ndarray) else value


def _clean(name: str) -> str:
    """A name with characters that tags may have."""
    cleaned = _NOT_IN_TAGS.sub("_", name).lstrip("/")
    if cleaned != name:
        logging.info("Summary name %s is illegal; using %s instead.", name, cleaned)
    return cleaned


def _made(op: str, inputs: Sequence[Any], attrs: dict[str, Any], name: str | None, collections: Sequence[str] | None) -> Tensor:
    summary = get_default_graph().apply_op(op, inputs, attrs, name).outputs[0]
    for key in (GraphKeys.SUMMARIES,) if collections is None else collections:
        add_to_collection(key, summary)
    return summary
