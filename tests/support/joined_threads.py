"""Graphs whose threads must have ended with the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import graphcore


@contextmanager
def graph_without_threads_left() -> Iterator[graphcore.Graph]:
    """A fresh default graph; afterwards all threads that were begun in the block have ended."""
    before = set(threading.enumerate())
    with graphcore.Graph().as_default() as graph:
        yield graph
    _join(set(threading.enumerate()) - before)


def _join(threads: set[threading.Thread]) -> None:
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive(), f"{thread.name} runs on"
