"""GraphDef versions: compatibility checks, and merging of versions."""

from __future__ import annotations

from typing import Final

from graphcore.definitions import PRODUCER_VERSION, VersionDef
from graphcore.errors import GraphError, InvalidArgumentError

MIN_PRODUCER: Final = 0
"""Graphs of producers older than this are not understood."""
FORWARD_COMPATIBILITY: Final = 21
"""A graph whose producer is at most this much newer should be understood all the same."""


def check_versions(versions: VersionDef) -> None:
    """Check that GraphDefs of these versions may be read.

    Raises:
        InvalidArgumentError: the producer is too old, or this version is excluded.
    """
    if versions.producer < MIN_PRODUCER:
        raise InvalidArgumentError(
            f"GraphDef producer version {versions.producer} below min producer {MIN_PRODUCER} supported here. Please regenerate your graph."
        )
    if versions.min_consumer > PRODUCER_VERSION:
        raise InvalidArgumentError(
            f"GraphDef min consumer version {versions.min_consumer} above current version {PRODUCER_VERSION}. "
            "Please use a newer version of graphloupe."
        )
    if PRODUCER_VERSION in versions.bad_consumers:
        raise InvalidArgumentError(
            f"GraphDef disallows consumer version {PRODUCER_VERSION}. Please use another version of graphloupe: who made the graph knows "
            "that this one would misread it."
        )


def merge_versions(present: VersionDef, imported: VersionDef) -> VersionDef:
    """The versions of a graph after an import: the older producer, and the stricter consumer limits."""
    bad = sorted({*present.bad_consumers, *imported.bad_consumers}) if imported.bad_consumers else present.bad_consumers
    return VersionDef(min(present.producer, imported.producer), max(present.min_consumer, imported.min_consumer), tuple(bad))


def explain_newer_producer(error: GraphError, versions: VersionDef) -> None:
    """Add to `error` that the graph comes from a much newer producer, if it does."""
    if versions.producer <= PRODUCER_VERSION + FORWARD_COMPATIBILITY:
        return
    error.message = (
        f"Converting GraphDef to Graph has failed with an error: '{error.message}' GraphDef version {PRODUCER_VERSION} is the newest known "
        f"here, and the GraphDef was made at version {versions.producer}. The difference is larger than the forward compatibility guarantee, "
        "and might be the root cause for failing to import the GraphDef."
    )
    error.args = (error.message,)
