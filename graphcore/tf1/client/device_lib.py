"""`device_lib` of TensorFlow 1: the devices of this process."""

from __future__ import annotations

from typing import Any

from graphcore.graph import Graph
from graphcore.runtime import Session

__all__ = ["list_local_devices"]


def list_local_devices(session_config: Any = None) -> list[Any]:
    """The devices that a session has, each with `name`, `device_type` and `memory_limit`."""
    with Session(Graph(), config=session_config) as session:
        return list(session.list_devices())
