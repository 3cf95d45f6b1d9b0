"""Sends and receives between devices, and between client and run."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.errors import InternalError, InvalidArgumentError
from graphcore.inference.shape_fns.common_shape_fns import no_outputs
from graphcore.kernel_context import Channel
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, define_op, no_registered_gradient
from graphcore.rendezvous_key import create_key

_ENDS: Final = "tensor_name:string, send_device:string, send_device_incarnation:int, recv_device:string, client_terminated:bool = false"
_CPU: Final = "/job:localhost/replica:0/task:0/device:CPU:0"
_EDGE: Final = {"tensor_name": "x", "send_device": _CPU, "send_device_incarnation": 1, "recv_device": _CPU}
_X: Final = [[1.0, -2.0], [3.0, 0.5]]


def edge_key(k: KernelContext, frame_iter: tuple[int, int] = (0, 0)) -> str:
    """The rendezvous key for a sending or receiving node, in that frame and iteration."""
    incarnation = k.attr("send_device_incarnation")
    assert isinstance(incarnation, int)
    # A 64-bit number stored as a signed one.
    return create_key(
        attr_text(k.attr("send_device")),
        incarnation % (1 << 64),
        attr_text(k.attr("recv_device")),
        attr_text(k.attr("tensor_name")),
        frame_iter,
    )


def _channel(k: KernelContext) -> Channel:
    channel = k.resources.channel
    if channel is None:
        raise InvalidArgumentError(f"'{k.node_name}' (op {k.op}) needs a rendezvous, and nothing here has one", op=k.op, node=k.node_name)
    return channel


def _send(k: KernelContext) -> Kernel:
    key = edge_key(k)

    def send(tensor: Any) -> None:
        _channel(k).send(key, None, tensor)

    return send


def _unknown(c: InferenceContext) -> None:
    c.set_output(0, c.unknown_shape())


def _recv(k: KernelContext) -> Kernel:
    key, wanted = edge_key(k), k.output_types[0]

    def recv() -> Any:
        value, is_dead = _channel(k).recv(key)
        if is_dead:
            raise InvalidArgumentError(f"'{k.node_name}' (op {k.op}) received a dead value under {key}", op=k.op, node=k.node_name)
        value = np.asarray(value)
        if value.dtype != wanted.as_numpy:
            raise InternalError(
                f"'{k.node_name}' (op {k.op}) expected to receive {wanted.text}, got {value.dtype} under {key}", op=k.op, node=k.node_name
            )
        return value

    return recv


def _send_and_recv(prefix: str, place: str) -> None:
    """Register the ops that send and receive a tensor; `place` is the kind of memory that holds it."""
    ends = """

        tensor: the tensor to send.
        tensor_name: names the edge.
        send_device: the source.
        send_device_incarnation: the incarnation of the sending device.
        recv_device: the target.
        client_terminated: true if one end of the edge is the client.
        """
    define_op(
        f"_{prefix}Send",
        f"Sends a tensor{place and f' in {place}'} from one device to another.{ends}",
        signature=f"_{prefix}Send[T:type, {_ENDS}](tensor:T) -> ()",
        stateful=True,
        shape=no_outputs,
        kernel=_send,
        gradient=no_registered_gradient("a sent value is differentiated where it arrives"),
        examples=(Example([_X], _EDGE),),
    )
    define_op(
        f"_{prefix}Recv",
        f"Waits for a tensor from another device{place and f', into {place}'}.{ends.replace('the tensor to send', 'the sent tensor')}",
        signature=f"_{prefix}Recv[tensor_type:type, {_ENDS}]() -> (tensor:tensor_type)",
        stateful=True,
        distributed_communication=True,
        shape=_unknown,
        kernel=_recv,
        gradient=no_registered_gradient("a received value is differentiated where it was computed"),
        examples=(Example([], {"tensor_type": "float", **_EDGE}),),
    )


_send_and_recv("", "")
_send_and_recv("Host", "host memory")
