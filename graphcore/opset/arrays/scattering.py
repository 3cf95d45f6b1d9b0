"""Updating parts of a tensor, giving a new one, or of a reference variable."""

from __future__ import annotations

from typing import Any, Final

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import tensor_scatter_shape
from graphcore.kernel_context import RefVariable
from graphcore.opset.arrays.gathering import checked_indices, positions
from graphcore.opset.framework.block import Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.kernels import combining_at, invalid
from graphcore.opset.framework.type_sets import INDEX, NUMBER
from graphcore.registry import KernelFactory

_NO_GRADIENT: Final = no_registered_gradient("it changes state; differentiate the value that is scattered instead")
_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5], [4.0, 5.0, 6.0]]
_ROWS: Final = [[10.0, 20.0, 30.0], [0.5, 0.25, 0.125]]
_POLICY: Final = "bad_indices_policy:string = ''"
_TENSOR_ARGS: Final = f"{_POLICY}](tensor:T, indices:Tindices, updates:T) -> (output:T)"
_EXAMPLES: Final = (
    Example([_X, [[0], [2]], _ROWS]),
    Example([_X, [[0, 1], [2, 2], [1, 0]], [7.0, 8.0, -9.0]]),
)


def scattered(k: KernelContext, tensor: Any, indices: Any, updates: Any, combine: str | None) -> Any:
    """Replace or combine (by a ufunc) the elements at the positions in the last dimension of `indices`."""
    depth = indices.shape[-1]
    wanted = indices.shape[:-1] + tensor.shape[depth:]
    if updates.shape != wanted:
        raise invalid(k, f"updates must have shape indices.shape[:-1] + tensor.shape[{depth}:] = {list(wanted)}, got {list(updates.shape)}")
    result = tensor.copy()
    places = positions(k, indices, tensor.shape)
    if combine is None:
        result[places] = updates
    else:
        getattr(k.xp, combine).at(result, places, updates)
    return result


def _tensor_scatter(combine: str | None) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        return lambda tensor, indices, updates: scattered(k, tensor, indices, updates, combine)

    return kernel


def _linear_grad(sign: str) -> str:
    """The gradient of an addition or subtraction at positions."""
    return f"""[T:type, Tindices:{{int32, int64}}](tensor:T, indices:Tindices, updates:T, dy:T) -> (dtensor:T, dindices:Tindices, dupdates:T) {{
      dtensor = Identity[T=$T](dy)
      dindices = ZerosLike[T=$Tindices](indices)
      gathered = GatherNd[Tindices=$Tindices, Tparams=$T](dy, indices)
      dupdates = {sign}[T=$T](gathered)
    }}"""


@op
class TensorScatterUpdate:
    """The tensor with some parts replaced.

    tensor: [sizes...]
    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + tensor.shape[k:]
    """

    signature = f"TensorScatterUpdate[T:type, Tindices:{{int16, int32, int64, uint16}}, {_TENSOR_ARGS}"
    shape = tensor_scatter_shape
    kernel = _tensor_scatter(None)
    gradient = """[T:type, Tindices:{int32, int64}](tensor:T, indices:Tindices, updates:T, dy:T) -> (dtensor:T, dindices:Tindices, dupdates:T) {
      zeros = ZerosLike[T=$T](updates)
      dtensor = TensorScatterUpdate[T=$T, Tindices=$Tindices](dy, indices, zeros)
      dindices = ZerosLike[T=$Tindices](indices)
      dupdates = GatherNd[Tindices=$Tindices, Tparams=$T](dy, indices)
    }"""
    examples = _EXAMPLES


@op
class TensorScatterAdd:
    """The tensor with `updates` added to some parts.

    tensor: [sizes...]
    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + tensor.shape[k:]
    """

    signature = f"TensorScatterAdd[T:type, Tindices:{INDEX}, {_TENSOR_ARGS}"
    shape = tensor_scatter_shape
    kernel = _tensor_scatter("add")
    gradient = _linear_grad("Identity")
    examples = (*_EXAMPLES, Example([[1.0, 2.0], [[0], [0]], [10.0, 20.0]], outputs=[[31.0, 2.0]]))


@op
class TensorScatterSub:
    """The tensor with `updates` subtracted from some parts.

    tensor: [sizes...]
    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + tensor.shape[k:]
    """

    signature = f"TensorScatterSub[T:type, Tindices:{INDEX}, {_TENSOR_ARGS}"
    shape = tensor_scatter_shape
    kernel = _tensor_scatter("subtract")
    gradient = _linear_grad("Neg")
    examples = _EXAMPLES


@op
class ScatterNdNonAliasingAdd:
    """The input with `updates` added to some parts (an older form of TensorScatterAdd).

    input: [sizes...]
    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + input.shape[k:]
    """

    signature = f"ScatterNdNonAliasingAdd[T:{NUMBER[:-1]}, bool}}, Tindices:{INDEX}, {_TENSOR_ARGS.replace('tensor:T', 'input:T')}"
    shape = tensor_scatter_shape
    kernel = _tensor_scatter("add")
    gradient = _linear_grad("Identity")
    examples = _EXAMPLES


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


@op
class TensorScatterMax:
    """The tensor with the larger of the old element and the update in some parts.

    tensor: [sizes...]
    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + tensor.shape[k:]
    """

    signature = f"TensorScatterMax[T:type, Tindices:{INDEX}, {_TENSOR_ARGS}"
    shape = tensor_scatter_shape
    kernel = _tensor_scatter("maximum")
    gradient = _extreme_grad("TensorScatterMax")
    examples = _EXAMPLES


@op
class TensorScatterMin:
    """The tensor with the smaller of the old element and the update in some parts.

    tensor: [sizes...]
    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + tensor.shape[k:]
    """

    signature = f"TensorScatterMin[T:type, Tindices:{INDEX}, {_TENSOR_ARGS}"
    shape = tensor_scatter_shape
    kernel = _tensor_scatter("minimum")
    gradient = _extreme_grad("TensorScatterMin")
    examples = _EXAMPLES


def _rows_shape(c: InferenceContext) -> None:
    variable, indices, updates = c.input(0), c.input(1), c.input(2)
    rest = c.subshape(c.with_rank_at_least(variable, 1), 1)
    if c.rank(updates) != 0:
        c.merge(updates, c.concatenate(indices, rest))
    c.set_output(0, variable)


def _rows_scatter(combine: str | None) -> KernelFactory:
    """Replace or combine rows of a variable; a scalar update applies to all rows."""

    def kernel(k: KernelContext) -> Kernel:
        at = None if combine is None else combining_at(k.xp, combine)

        def scatter(ref: RefVariable, indices: Any, updates: Any) -> RefVariable:
            with ref.lock:
                changed = ref.read().copy()
                checked_indices(k, indices, changed.shape[0])
                if updates.ndim and updates.shape != indices.shape + changed.shape[1:]:
                    raise invalid(k, f"updates must have shape {list(indices.shape + changed.shape[1:])} or [], got {list(updates.shape)}")
                if at is None:
                    changed[indices] = updates
                else:
                    at(changed, indices, updates)
                ref.assign(changed)
            return ref

        return scatter

    return kernel


def _nd_scatter(combine: str | None) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        def scatter(ref: RefVariable, indices: Any, updates: Any) -> RefVariable:
            with ref.lock:
                ref.assign(scattered(k, ref.read(), indices, updates, combine))
            return ref

        return scatter

    return kernel


_REF_ARGS: Final = "(ref:Ref(T), indices:Tindices, updates:T) -> (output_ref:Ref(T))"
_ROW_EXAMPLES: Final = (Example([_X, [0, 2], _ROWS]),)
_FEW: Final = "{half, bfloat16, float, double, int32, int64}"


@op
class ScatterUpdate:
    """Replaces rows of a variable.

    ref: the variable
    indices: the rows, any shape
    updates: indices.shape + the variable's shape[1:], or a scalar
    output_ref: the variable, after the change
    """

    signature = f"ScatterUpdate[T:type, Tindices:{INDEX}, use_locking:bool = true]{_REF_ARGS}"
    shape = _rows_shape
    kernel = _rows_scatter(None)
    gradient = _NO_GRADIENT
    examples = _ROW_EXAMPLES


@op
class ScatterAdd:
    """Adds to rows of a variable.

    ref: the variable
    indices: the rows, any shape
    updates: indices.shape + the variable's shape[1:], or a scalar
    output_ref: the variable, after the change
    """

    signature = f"ScatterAdd[T:{NUMBER}, Tindices:{INDEX}, use_locking:bool = false]{_REF_ARGS}"
    shape = _rows_shape
    kernel = _rows_scatter("add")
    gradient = _NO_GRADIENT
    examples = _ROW_EXAMPLES


@op
class ScatterSub:
    """Subtracts from rows of a variable.

    ref: the variable
    indices: the rows, any shape
    updates: indices.shape + the variable's shape[1:], or a scalar
    output_ref: the variable, after the change
    """

    signature = f"ScatterSub[T:{NUMBER}, Tindices:{INDEX}, use_locking:bool = false]{_REF_ARGS}"
    shape = _rows_shape
    kernel = _rows_scatter("subtract")
    gradient = _NO_GRADIENT
    examples = _ROW_EXAMPLES


@op
class ScatterMul:
    """Multiplies rows of a variable.

    ref: the variable
    indices: the rows, any shape
    updates: indices.shape + the variable's shape[1:], or a scalar
    output_ref: the variable, after the change
    """

    signature = f"ScatterMul[T:{NUMBER}, Tindices:{INDEX}, use_locking:bool = false]{_REF_ARGS}"
    shape = _rows_shape
    kernel = _rows_scatter("multiply")
    gradient = _NO_GRADIENT
    examples = _ROW_EXAMPLES


@op
class ScatterDiv:
    """Divides rows of a variable.

    ref: the variable
    indices: the rows, any shape
    updates: indices.shape + the variable's shape[1:], or a scalar
    output_ref: the variable, after the change
    """

    signature = f"ScatterDiv[T:{NUMBER}, Tindices:{INDEX}, use_locking:bool = false]{_REF_ARGS}"
    shape = _rows_shape
    kernel = _rows_scatter("divide")
    gradient = _NO_GRADIENT
    examples = _ROW_EXAMPLES


@op
class ScatterMin:
    """Takes the minimum of rows of a variable and updates.

    ref: the variable
    indices: the rows, any shape
    updates: indices.shape + the variable's shape[1:], or a scalar
    output_ref: the variable, after the change
    """

    signature = f"ScatterMin[T:{_FEW}, Tindices:{INDEX}, use_locking:bool = false]{_REF_ARGS}"
    shape = _rows_shape
    kernel = _rows_scatter("minimum")
    gradient = _NO_GRADIENT
    examples = _ROW_EXAMPLES


@op
class ScatterMax:
    """Takes the maximum of rows of a variable and updates.

    ref: the variable
    indices: the rows, any shape
    updates: indices.shape + the variable's shape[1:], or a scalar
    output_ref: the variable, after the change
    """

    signature = f"ScatterMax[T:{_FEW}, Tindices:{INDEX}, use_locking:bool = false]{_REF_ARGS}"
    shape = _rows_shape
    kernel = _rows_scatter("maximum")
    gradient = _NO_GRADIENT
    examples = _ROW_EXAMPLES


@op
class ScatterNdUpdate:
    """Replaces parts of a variable.

    ref: the variable
    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + the variable's shape[k:]
    output_ref: the variable, after the change
    """

    signature = f"ScatterNdUpdate[T:type, Tindices:{INDEX}, use_locking:bool = true, {_POLICY}]{_REF_ARGS}"
    shape = tensor_scatter_shape
    kernel = _nd_scatter(None)
    gradient = _NO_GRADIENT
    examples = _EXAMPLES


@op
class ScatterNdAdd:
    """Adds to parts of a variable.

    ref: the variable
    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + the variable's shape[k:]
    output_ref: the variable, after the change
    """

    signature = f"ScatterNdAdd[T:{NUMBER}, Tindices:{INDEX}, use_locking:bool = false, {_POLICY}]{_REF_ARGS}"
    shape = tensor_scatter_shape
    kernel = _nd_scatter("add")
    gradient = _NO_GRADIENT
    examples = _EXAMPLES


@op
class ScatterNdSub:
    """Subtracts from parts of a variable.

    ref: the variable
    indices: [..., k], each row a position in the first k dimensions
    updates: indices.shape[:-1] + the variable's shape[k:]
    output_ref: the variable, after the change
    """

    signature = f"ScatterNdSub[T:{NUMBER}, Tindices:{INDEX}, use_locking:bool = false, {_POLICY}]{_REF_ARGS}"
    shape = tensor_scatter_shape
    kernel = _nd_scatter("subtract")
    gradient = _NO_GRADIENT
    examples = _EXAMPLES
