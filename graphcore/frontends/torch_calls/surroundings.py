"""Surroundings that a trace leaves as they were: generators, PyTorch's settings and log."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, Final

from graphcore.frontends.function_values import values_used_by
from graphcore.support.random_states import kept_generators

torch: Any = import_module("torch")
_LOGGER: Final = "torch._subclasses.fake_tensor"
_SETTINGS: Final = (
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    (torch.get_num_threads, torch.set_num_threads),
)


@contextmanager
def untouched(function: object) -> Iterator[None]:
    """Set back at the end what a trace changes around a function, and keep PyTorch's log quiet."""
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        stack.enter_context(kept_settings())
        stack.enter_context(_kept_random_states(function))
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
def _kept_random_states(function: object) -> Iterator[None]:
    """Set generators back at the end, and what a function changes around it."""
    own = torch.get_rng_state()
    try:
        with kept_generators([function, *values_used_by(function)]):
            yield
    finally:
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


@contextmanager
def kept_settings() -> Iterator[None]:
    """Set PyTorch's settings for the whole process back at the end."""
    before = [read() for read, _ in _SETTINGS]
    try:
        yield
    finally:
        for (read, write), value in zip(_SETTINGS, before, strict=True):
            if read() != value:
                write(value)
