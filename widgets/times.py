"""The times of a recorded run by node, stored in pages."""

from __future__ import annotations

import msgspec


class RunTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The times of all nodes that ran, as columns of equal length; see `graphcore.runtime.NodeTime`.

    The name of a node is its entry in `prefixes`, "" or the open calls around it (`loop:body/`), followed by that in `names`. Times are in
    nanoseconds, `sizes` in bytes. `devices` are the busy devices in words, and `on` has the total time on each of them, by node, if there are several.
    `length` is that of the step, and `whole` is the time that shares refer to: the same, or the time of all devices together if there are several.
    """

    clock: str
    length: int = 0
    whole: int = 0
    devices: list[str] = []
    prefixes: list[str] = []
    places: list[int] = []
    names: list[str] = []
    runs: list[int] = []
    own: list[int] = []
    total: list[int] = []
    lasting: list[int] = []
    shortest: list[int] = []
    longest: list[int] = []
    sizes: list[int] = []
    threads: list[int] = []
    on: list[list[int]] = []
