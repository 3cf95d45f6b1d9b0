"""The state of a view, as notebooks and pages store it."""

from __future__ import annotations

import json
import random
from typing import Any, Final

import msgspec

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from tests.support.fuzzing.messages import damaged_json
from tests.support.fuzzing.target import Target, maybe_damaged
from widgets import GraphView

_STATES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {
        "opened": ["a", "a/b"],
        "closed": ["c"],
        "mode": "auto",
        "mirror": False,
        "lens": "",
        "renderer": "canvas",
        "camera": None,
        "selection": "a/b/x",
    },
    {"opened": ["a" * 5000, "\ud800", "a\0b", "/" * 50], "lens": "cost"},
)


def make(rng: random.Random) -> bytes:
    """A state, damaged."""
    text = json.dumps(rng.choice(_STATES))
    return damaged_json(text, rng).encode() if text != "{}" and rng.random() < 0.8 else maybe_damaged(text.encode(), rng)


def check(data: bytes) -> None:
    """Restore the state and draw."""
    try:
        stored = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(str(error)) from None
    with gc.Graph().as_default() as graph:
        with gc.name_scope("a"), gc.name_scope("b"):
            gc.constant(1, name="x")
        gc.constant(1, name="c/d")
    view = GraphView(graph)
    view.state = stored
    msgspec.json.encode(view.state)


STATES: Final = Target(make, check)
