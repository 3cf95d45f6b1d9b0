"""The rendezvous of a step on one task, which passes values for other tasks on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphcore.rendezvous_key import RendezvousKey
from graphcore.runtime.cluster.messages import checked_to_travel
from graphcore.runtime.core.rendezvous import Rendezvous, RendezvousArgs

Forward = Callable[[str, str, Any, bool], None]
"""Takes the receiving device, the key, the value, and True if it is dead; never blocks."""


class StepChannel(Rendezvous):
    """The rendezvous of one step on one task.

    Args:
        device: the device of the task.
        forward: passes a value on to the task of another device.
    """

    def __init__(self, device: str, forward: Forward) -> None:
        super().__init__()
        self._device = device
        self._forward = forward

    def send(self, key: str | RendezvousKey, args: RendezvousArgs | None, value: Any, is_dead: bool = False) -> None:
        """Give `value` to its receiver, here or on another task. Never blocks.

        Raises:
            UnimplementedError: it cannot leave its task.
            GraphError: the status the rendezvous was aborted with.
        """
        text = str(key)
        receiver = text.split(";", 3)[2]
        if receiver == self._device:
            super().send(key, args, value, is_dead)
        else:
            self._forward(receiver, text, checked_to_travel(value, f"The value for {receiver}"), is_dead)

    def deliver(self, key: str, value: Any, is_dead: bool) -> None:
        """Take a value from another task.

        Raises:
            GraphError: the status the rendezvous was aborted with.
        """
        super().send(key, None, value, is_dead)
