"""Ctrl-C at each place in turn: wherever the interpreter may look whether a key was pressed."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import CodeType, FrameType
from typing import Any

import graphcore

Attempt = tuple[Callable[[], object], Callable[[], object]]
_LOOKS = frozenset({"RESUME", "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD"})
_PACKAGE = graphcore.__file__.removesuffix("__init__.py")


def interrupted_everywhere(
    make: Callable[[], Attempt], files: tuple[str, ...] = ("",), every: int = 1, *, after_calls: bool = False
) -> int:
    """Do work again and again, and press Ctrl-C before its first bytecode, then before its second, until it is done unhurt.

    Args:
        make: gives what is to be done, and what looks afterwards how that has left things.
        files: beginnings of the names of files of the package, within which to interrupt.
        every: come to one place of so many.
        after_calls: come only to where the interpreter has just looked for signals; it does not look everywhere.

    Returns:
        How many places there were.
    """
    place = 0
    while True:
        do, check = make()
        with interrupting(place, files, after_calls=after_calls) as reached, suppress(KeyboardInterrupt):
            do()
        try:
            check()
        except BaseException as error:
            error.add_note(f"interrupted before bytecode {place}, {reached[1]}")
            raise
        if reached[0] <= place:
            return place
        place += every


@contextmanager
def interrupting(place: int, files: tuple[str, ...], *, after_calls: bool = False) -> Iterator[list[Any]]:
    """Raise KeyboardInterrupt before bytecode number `place` that this thread comes to in these files.

    Gives how many it came to, and where that was.
    """
    reached: list[Any] = [0, "nowhere"]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) or not name.removeprefix(_PACKAGE).startswith(files):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode" and _is_place(frame):
            reached[0] += 1
            if reached[0] == place + 1:
                reached[1] = f"{name.removeprefix(_PACKAGE)}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return trace

    def _is_place(frame: FrameType) -> bool:
        before, last[frame] = last.get(frame, -1), frame.f_lasti
        return frame.f_lasti not in _never(frame.f_code) and (not after_calls or before in _looking(frame.f_code))

    last: dict[FrameType, int] = {}
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield reached
    finally:
        sys.settrace(before)


@cache
def _looking(code: CodeType) -> frozenset[int]:
    """What looks for signals when it is done."""
    return frozenset([each.offset for each in dis.get_instructions(code) if each.opname in _LOOKS])


@cache
def _never(code: CodeType) -> frozenset[int]:
    """Where nothing can be raised, as no signal is looked for there, and where nothing could make up for it.

    That is where a `try` begins, and between the end of a `with` block and the call of `__exit__`.
    """
    instructions = list(dis.get_instructions(code))
    found = {each.offset for each in instructions if each.opname == "NOP"}
    for at in range(len(instructions) - 3):
        three = instructions[at : at + 3]
        if not all(each.opname == "LOAD_CONST" and each.argval is None for each in three):
            continue
        after = [each for each in instructions[at + 3 : at + 5] if each.opname in {"PRECALL", "CALL"} and each.arg == 2]
        if after:
            found.update(each.offset for each in [*three, *after])
            # what was returned from within is put aside before
            found.update(each.offset for each in instructions[max(0, at - 1) : at] if each.opname == "SWAP")
    return frozenset(found)
