"""The generators of random numbers of a process, kept as they are while something is looked at."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from graphcore.support.kept_objects import ways_back
from graphcore.support.other_threads import others_run


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Set the generators of Python, NumPy and PyTorch back at the end. Neither library is imported."""
    python = random.getstate()
    numpy: Any = sys.modules.get("numpy")
    torch: Any = sys.modules.get("torch")
    drawn = numpy.random.get_state() if hasattr(numpy, "random") else None
    own = torch.get_rng_state() if hasattr(torch, "get_rng_state") else None
    on_gpus = torch.cuda.get_rng_state_all() if own is not None and torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        random.setstate(python)
        if drawn is not None:
            numpy.random.set_state(drawn)
        if own is not None:
            torch.set_rng_state(own)
        if on_gpus is not None:
            torch.cuda.set_rng_state_all(on_gpus)


@contextmanager
def kept_generators(values: Iterable[object] = ()) -> Iterator[None]:
    """Set the generators of Python and NumPy back at the end, and what is among some values.

    Among these are generators, lists and objects. While another thread of the user's runs, its draws must not come twice: then all stay as they are.
    """
    numpy: Any = sys.modules.get("numpy")
    values = list(values)
    ways: list[Callable[[], object]] = [
        partial(random.setstate, random.getstate()),
        *filter(None, map(way_back, values)),
        *ways_back(values),
    ]
    if hasattr(numpy, "random"):
        ways.append(partial(numpy.random.set_state, numpy.random.get_state()))
    others = others_run()
    try:
        yield
    finally:
        if not (others or others_run()):
            for way in ways:
                way()


def way_back(value: Any) -> Callable[[], object] | None:
    """A function that sets a generator back to its state of now, None for another value."""
    if isinstance(value, random.Random):
        return partial(value.setstate, value.getstate())
    module = type(value).__module__.partition(".")[0]
    if module == "numpy" and hasattr(value, "bit_generator"):
        return partial(setattr, value.bit_generator, "state", value.bit_generator.state)
    if module == "numpy" and isinstance(value, sys.modules["numpy"].random.RandomState):
        return partial(value.set_state, value.get_state())
    if module == "torch" and type(value).__name__ == "Generator":
        return partial(value.set_state, value.get_state())
    return None
