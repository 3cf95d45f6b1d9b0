"""The generators of random numbers of a process, kept as they are while something is looked at."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
