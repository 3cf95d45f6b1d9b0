"""Graphviz on DOT text, for tests."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

from py_mini_racer import JSPromise, MiniRacer

from widgets.render.engine import STATIC


@cache
def _engine() -> MiniRacer:
    context = MiniRacer()
    context.eval(gzip.decompress((STATIC / "graphviz.js.gz").read_bytes()).decode())
    return context


def placed(dot: str) -> Any:
    """Graphviz's JSON for a graph."""
    promise = _engine().eval(f"graphloupeGraphviz.layout({json.dumps(dot)})")
    assert isinstance(promise, JSPromise)
    return json.loads(str(promise.get()))
