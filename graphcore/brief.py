"""Values in a few words, for errors: a large array is never written row after row."""

from __future__ import annotations

import reprlib
from typing import Any, Final

import numpy as np

_MOST_ELEMENTS: Final = 8
_MOST_CHARACTERS: Final = 100


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxdict = self.maxset = self.maxfrozenset = 4
        self.maxstring = self.maxother = self.maxlong = _MOST_CHARACTERS

    def repr_ndarray(self, array: np.ndarray[Any, Any], level: int) -> str:
        """Abbreviate a large array to its dtype and shape."""
        if array.size <= _MOST_ELEMENTS:
            return self.repr_instance(array, level)
        return f"an array of {array.dtype} [{','.join(map(str, array.shape))}]"


_WRITER: Final = _Brief()


def brief(value: object) -> str:
    """`repr(value)` on one line, cut where it is long; a large array by its dtype and shape."""
    return " ".join(_WRITER.repr(value).split())
