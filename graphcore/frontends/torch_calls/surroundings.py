"""Surroundings that a trace leaves as they were: generators of random numbers, PyTorch's log."""

from __future__ import annotations

import logging
import random
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from graphcore.support.gc_pause import paused_collector

torch: Any = import_module("torch")
_LOGGER: Final = "torch._subclasses.fake_tensor"
_ROOT: Final = Path(__file__).parents[3]
_STANDARD: Final = (
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib")},
    *[str(_ROOT / package) for package in ("graphcore", "widgets", "kernelext")],
)
_INSTALLED: Final = ("site-packages", "dist-packages", "<frozen", "<string>")


@contextmanager
def untouched() -> Iterator[None]:
    """Set back at the end what a trace changes around it, and keep PyTorch's log quiet on the way."""
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        stack.enter_context(_kept_random_states())
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield


class _OfOtherThreads(logging.Filter):
    """Lets pass what other threads say."""

    def __init__(self) -> None:
        super().__init__()
        self._own = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._own


@contextmanager
def _quiet() -> Iterator[None]:
    logger, others = logging.getLogger(_LOGGER), _OfOtherThreads()
    logger.addFilter(others)
    try:
        yield
    finally:
        logger.removeFilter(others)


@contextmanager
def _kept_random_states() -> Iterator[None]:
    """Set the generators of Python, NumPy and PyTorch back at the end.

    While another thread of the user's runs, its draws must not come twice: then the generators stay where they are.
    """
    numpy: Any = sys.modules.get("numpy")
    python, drawn = random.getstate(), None if numpy is None else numpy.random.get_state()
    own = torch.get_rng_state()
    others = _others_run()
    try:
        yield
    finally:
        if not (others or _others_run()):
            random.setstate(python)
            if numpy is not None:
                numpy.random.set_state(drawn)
        if _is_seeded(own):
            torch.set_rng_state(own)


def _is_seeded(before: Any) -> bool:
    """True iff the generator of PyTorch has been seeded since. Fake tensors draw nothing from it."""
    now = torch.get_rng_state()
    if torch.equal(now, before):
        return False
    fresh = torch.Generator()
    fresh.manual_seed(torch.initial_seed())
    return bool(torch.equal(now, fresh.get_state()))


def _others_run() -> bool:
    """True iff another thread runs code that is of no library."""
    own = threading.get_ident()
    with paused_collector():  # in Python 3.11 a collection within this call may wait for the lock that the call holds, for ever
        frames = sys._current_frames()
    return any(_is_of_user(frame) for thread, frame in frames.items() if thread != own)


def _is_of_user(frame: Any) -> bool:
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_STANDARD) and not any(word in file for word in _INSTALLED):
            return True
        frame = frame.f_back
    return False
