"""The devices of replicas, and the places of their parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphcore.brief import brief
from graphcore.device_spec import DeviceSpec
from graphcore.dtypes import as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.graph import get_default_graph
from graphcore.graph.model.device_functions import NewOperation, parsed_device
from graphcore.placement.device import Device
from graphcore.shapes import as_shape


def as_devices(argument: str, devices: Any) -> list[Device]:
    """The devices of an argument: names, `gc.Device` objects, or a set of these.

    A name leaves the speeds of its device unknown.

    Raises:
        InvalidArgumentError: there is none, or something else; `argument` names it.
    """
    if isinstance(devices, str | Device) or not isinstance(devices, Iterable):
        raise InvalidArgumentError(f"{argument}: required a list of devices, such as ['/cpu:0', '/cpu:1'], got {brief(devices)}")
    listed = list(devices)
    if not listed:
        raise InvalidArgumentError(f"{argument}: required at least one device, got none").advise(
            "List the devices that are to compute, such as `['/cpu:0', '/cpu:1']`, or take those of a cluster, `cluster.devices`.",
            required="a device",
            came="an empty list",
        )
    for item in listed:
        if not isinstance(item, str | Device):
            raise InvalidArgumentError(f"{argument}: required names of devices or gc.Device, got {brief(item)}")
    return [item if isinstance(item, Device) else _named(argument, item) for item in listed]


def _named(argument: str, name: str) -> Device:
    try:
        return Device(parsed_device(name).to_string())
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{argument}: required names of devices such as '/cpu:0', got '{name}': {error.message}") from None


class ParameterPlaces:
    """A device function: variables and their reads on some devices, and other nodes on a worker.

    Each variable goes to the device that has the fewest bytes of variables so far, and keeps a device requested for itself.

    Args:
        parameters: the devices for variables.

    Attributes:
        worker: the device for the other nodes.
    """

    def __init__(self, parameters: Sequence[Device]) -> None:
        self._parameters = [device.spec for device in parameters]
        self._bytes = [0] * len(parameters)
        self.worker = DeviceSpec()

    def __call__(self, node: NewOperation) -> DeviceSpec:
        """The device of a new node."""
        if node.device:
            return parsed_device(node.device).merge_unset(self.worker)
        traits = get_default_graph().look_up(node.type).traits
        if traits.reads_variable:
            return parsed_device(node.inputs[0].node.device or self.worker)
        if traits.role != "variable":
            return self.worker
        place = self._bytes.index(min(self._bytes))
        self._bytes[place] += max(1, as_shape(node.get_attr("shape")).num_elements) * as_dtype(node.get_attr("dtype")).size
        return self._parameters[place]
