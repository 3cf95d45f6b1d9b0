"""Remarks: what is allowed, and perhaps not what was meant.

A notebook collects them and shows them under the cell; elsewhere each goes to the logger `graphcore` once.
"""

from __future__ import annotations

import logging
from typing import Final

_MOST: Final = 1000
"""The most remarks that are remembered."""
_logger: Final = logging.getLogger("graphcore")
_said: Final[dict[str, None]] = {}


class _Collected:
    """The remarks of the running cell, in order and once each; None outside of notebooks."""

    def __init__(self) -> None:
        self.texts: dict[str, None] | None = None


_collected: Final = _Collected()


def remark(text: str) -> None:
    """Say `text` to the user."""
    if _collected.texts is not None:
        _collected.texts[text] = None
        return
    if text not in _said and len(_said) < _MOST:
        _said[text] = None
        _logger.warning(text)


def collect_remarks() -> None:
    """Begin to collect remarks."""
    _collected.texts = {}


def collected_remarks() -> list[str]:
    """The remarks since `collect_remarks`, which are no longer collected."""
    texts, _collected.texts = list(_collected.texts or ()), None
    return texts
