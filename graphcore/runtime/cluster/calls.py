"""Calls of actors over Dask's comms."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from distributed.protocol import to_serialize

UNREACHABLE: Final = (OSError, KeyError)
"""The errors of a call whose worker is gone, or has been started again and does not know the actor."""


def event_loop(loop: Any) -> asyncio.AbstractEventLoop:
    """The event loop below one of Dask's."""
    inner: asyncio.AbstractEventLoop = loop.asyncio_loop
    return inner


async def call_actor(rpc: Any, address: str, key: str, method: str, *arguments: Any) -> Any:
    """Call a method of an actor.

    Args:
        rpc: the connections of the caller.
        address, key: the worker of the actor, and its key there.

    Raises:
        OSError, KeyError: see `UNREACHABLE`.
        Exception: an error of the method.
    """
    args = [to_serialize(argument) for argument in arguments]
    try:
        reply = await rpc(address).actor_execute(actor=key, function=method, args=args, kwargs={})
    except RuntimeError as error:  # a worker that has lost its scheduler closes its connections; errors of methods come in replies
        raise ConnectionError(str(error)) from error
    if reply["status"] != "OK":
        raise reply["exception"]
    return reply["result"]
