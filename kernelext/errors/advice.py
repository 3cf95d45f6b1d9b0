"""Advice about an error."""

from __future__ import annotations

from dataclasses import dataclass

from graphcore.graph import Node


@dataclass(frozen=True)
class Advice:
    """One thing to do, requirement and actual value in a few words, and the node that the error is about.

    A suggestion has code in backticks, and `«x:0»` for a tensor or node.
    """

    suggestion: str = ""
    required: str = ""
    came: str = ""
    node: Node | None = None
