"""Updating parts of a tensor, giving a new one."""

from __future__ import annotations

from typing import Any, Final

from graphcore.inference.shape_fns.common_shape_fns import tensor_scatter_shape
from graphcore.opset.arrays.gathering import positions
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.kernels import combining_at, invalid
from graphcore.opset.framework.type_sets import INDEX, NUMBER

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5], [4.0, 5.0, 6.0]]
_ROWS: Final = [[10.0, 20.0, 30.0], [0.5, 0.25, 0.125]]
PART_EXAMPLES: Final = (
    Example([_X, [[0], [2]], _ROWS]),
    Example([_X, [[0, 1], [2, 2], [1, 0]], [7.0, 8.0, -9.0]]),
)


def scattered(k: KernelContext, tensor: Any, indices: Any, updates: Any, combine: str | None) -> Any:
    """Replace or combine (by a ufunc) the elements at the positions in the last dimension of `indices`.

    The difference of truth values is true where they differ.
    """
    depth = indices.shape[-1]
    wanted = indices.shape[:-1] + tensor.shape[depth:]
    if updates.shape != wanted:
        raise invalid(k, f"updates must have shape indices.shape[:-1] + tensor.shape[{depth}:] = {list(wanted)}, got {list(updates.shape)}")
    result = tensor.copy()
    places = positions(k, indices, tensor.shape)
    if combine is None:
        result[places] = updates
    else:
        if combine == "subtract" and tensor.dtype.kind == "b":
            combine = "bitwise_xor"
        combining_at(k.xp, combine)(result, places, updates)
    return result


def _tensor_op(
    name: str,
    combine: str | None,
    summary: str,
    gradient: str,
    *,
    types: str = "type",
    index_types: str = INDEX,
    tensor: str = "tensor",
    examples: tuple[Example, ...] = PART_EXAMPLES,
) -> None:
    """Register an op that gives a tensor with some parts updated.

    Args:
        name: the name of the op.
        combine: the ufunc for parts and updates, None to replace the parts.
        summary: the first sentence of the docs.
        gradient: the text of the gradient.
        types: the types of the tensor.
        index_types: the types of the indices.
        tensor: the name of the first input.
        examples: the examples.
    """

    def kernel(k: KernelContext) -> Kernel:
        return lambda tensor, indices, updates: scattered(k, tensor, indices, updates, combine)

    define_op(
        name,
        f"""{summary}

        {tensor}: [sizes...]
        indices: [..., k], each row a position in the first k dimensions
        updates: indices.shape[:-1] + {tensor}.shape[k:]
        """,
        pure=True,
        signature=f"{name}[T:{types}, Tindices:{index_types}, bad_indices_policy:string = '']({tensor}:T, indices:Tindices, updates:T) -> (output:T)",
        shape=tensor_scatter_shape,
        kernel=kernel,
        gradient=gradient,
        examples=examples,
        failures=(Example([_X, [[99], [0]], _ROWS]),),
    )


def _linear_grad(sign: str) -> str:
    """The gradient of an addition or subtraction at positions."""
    return f"""[T:type, Tindices:{{int32, int64}}](tensor:T, indices:Tindices, updates:T, dy:T) -> (dtensor:T, dindices:Tindices, dupdates:T) {{
      dtensor = Identity[T=$T](dy)
      dindices = ZerosLike[T=$Tindices](indices)
      gathered = GatherNd[Tindices=$Tindices, Tparams=$T](dy, indices)
      dupdates = {sign}[T=$T](gathered)
    }}"""


def _extreme_grad(name: str) -> str:
    """Share the gradient evenly between the old element and the updates that equal the result."""
    return f"""[T:{{half, float, double}}, Tindices:{{int32, int64}}](tensor:T, indices:Tindices, updates:T, dy:T) -> (dtensor:T, dindices:Tindices, dupdates:T) {{
      y = {name}[T=$T, Tindices=$Tindices](tensor, indices, updates)
      old_wins = Equal[T=$T](tensor, y)
      old_wins_T = Cast[DstT=$T, SrcT=bool](old_wins)
      y_there = GatherNd[Tindices=$Tindices, Tparams=$T](y, indices)
      new_wins = Equal[T=$T](updates, y_there)
      new_wins_T = Cast[DstT=$T, SrcT=bool](new_wins)
      winners = TensorScatterAdd[T=$T, Tindices=$Tindices](old_wins_T, indices, new_wins_T)
      share = Div[T=$T](dy, winners)
      dtensor = Mul[T=$T](share, old_wins_T)
      dindices = ZerosLike[T=$Tindices](indices)
      share_there = GatherNd[Tindices=$Tindices, Tparams=$T](share, indices)
      dupdates = Mul[T=$T](share_there, new_wins_T)
    }}"""


_tensor_op(
    "TensorScatterUpdate",
    None,
    "The tensor with some parts replaced.",
    """[T:type, Tindices:{int32, int64}](tensor:T, indices:Tindices, updates:T, dy:T) -> (dtensor:T, dindices:Tindices, dupdates:T) {
      zeros = ZerosLike[T=$T](updates)
      dtensor = TensorScatterUpdate[T=$T, Tindices=$Tindices](dy, indices, zeros)
      dindices = ZerosLike[T=$Tindices](indices)
      dupdates = GatherNd[Tindices=$Tindices, Tparams=$T](dy, indices)
    }""",
    index_types="{int16, int32, int64, uint16}",
)
_tensor_op(
    "TensorScatterAdd",
    "add",
    "The tensor with `updates` added to some parts.",
    _linear_grad("Identity"),
    examples=(*PART_EXAMPLES, Example([[1.0, 2.0], [[0], [0]], [10.0, 20.0]], outputs=[[31.0, 2.0]])),
)
_tensor_op("TensorScatterSub", "subtract", "The tensor with `updates` subtracted from some parts.", _linear_grad("Neg"))
_tensor_op(
    "ScatterNdNonAliasingAdd",
    "add",
    "The input with `updates` added to some parts (an older form of TensorScatterAdd).",
    _linear_grad("Identity"),
    types=f"{NUMBER[:-1]}, bool}}",
    tensor="input",
)
_tensor_op(
    "TensorScatterMax",
    "maximum",
    "The tensor with the larger of the old element and the update in some parts.",
    _extreme_grad("TensorScatterMax"),
)
_tensor_op(
    "TensorScatterMin",
    "minimum",
    "The tensor with the smaller of the old element and the update in some parts.",
    _extreme_grad("TensorScatterMin"),
)
