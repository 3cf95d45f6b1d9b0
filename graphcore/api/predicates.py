"""The tensors by which branches and loops choose: scalars."""

from __future__ import annotations

from graphcore.api.structures import describe
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Tensor
from graphcore.shapes import Shape


def scalar_choice(graph: Graph, tensor: Tensor, what: str, name: str) -> Tensor:
    """The tensor that chooses a branch or ends a loop, checked at run time if its rank is unknown.

    Args:
        graph: the graph of the node that takes it.
        tensor: the tensor.
        what: its description in errors.
        name: the name of the branch or loop.

    Raises:
        InvalidArgumentError: it is no scalar.
    """
    rank = tensor.shape.rank
    if rank == 0:
        return tensor
    if rank is None:
        return graph.apply_op("EnsureShape", [tensor], {"shape": Shape([])}, f"{name.rpartition('/')[2]}_is_scalar").outputs[0]
    raise InvalidArgumentError(
        f"{what} must be a scalar: Shape must be rank 0 but is rank {rank}, got {describe(tensor)}", node=name, source=tensor.node.source
    ).advise(
        "Choose by one value: reduce it, as in `gc.reduce_all(...)`. To choose for each element, use `gc.where`.",
        required="a scalar",
        came=f"{tensor.dtype.base.text} {tensor.shape}",
    )
