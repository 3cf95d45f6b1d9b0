"""Einstein summation: products of elements with equal indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.inference.shape_fns.common_shape_fns import einsum_shape
from graphcore.inference.shape_fns.einsum import parse_einsum
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import is_complex, list_to_array, required_int, scalar, vector
from graphcore.opset.framework.kernels import invalid, narrow

_A: Final = [[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]]
_B: Final = [[2.0, 1.0], [-1.0, 0.5], [3.0, -2.0]]


def _equation(attrs: Attrs) -> tuple[list[str], str]:
    value = attrs.get("equation")
    if not isinstance(value, bytes):
        raise InvalidArgumentError(f"Einsum needs attr 'equation', a string; got {value!r}", op="Einsum", attr="equation")
    return parse_einsum(value.decode(errors="backslashreplace").replace(" ", ""))


class _Operand:
    """An intermediate operand: an array with a label for each dimension.

    Dimensions of the ellipsis are labelled 0, 1, ... from the right.
    """

    def __init__(self, array: Any, labels: Sequence[Any]) -> None:
        self.array = array
        self.labels = list(labels)

    def take_diagonals(self, xp: Any) -> None:
        """Reduce repeated labels to diagonals."""
        for label in dict.fromkeys(self.labels):
            while self.labels.count(label) > 1:
                first = self.labels.index(label)
                second = self.labels.index(label, first + 1)
                self.array = xp.diagonal(self.array, 0, first, second)
                self.labels = [kept for i, kept in enumerate(self.labels) if i not in (first, second)] + [label]

    def sum_out(self, xp: Any, kept: set[Any]) -> None:
        """Sum over labels that are not in `keep`."""
        axes = tuple([i for i, label in enumerate(self.labels) if label not in kept])
        if axes:
            self.array = xp.add.reduce(self.array, axes, self.array.dtype)
            self.labels = [label for label in self.labels if label in kept]

    def arranged(self, order: Sequence[Any]) -> Any:
        """The array with its dimensions in this order; missing labels get dimensions of size 1."""
        present = [label for label in order if label in self.labels]
        array = self.array.transpose([self.labels.index(label) for label in present])
        sizes = iter(array.shape)
        return array.reshape([next(sizes) if label in self.labels else 1 for label in order])


def _spelled(k: KernelContext, labels: str, rank: int) -> list[Any]:
    """A label for each of `rank` dimensions."""
    before, ellipsis, after = labels.partition("...")
    free = rank - len(before) - len(after)
    if free < 0 or (free and not ellipsis):
        raise invalid(k, f"an input of rank {rank} does not fit the subscripts '{labels}'")
    return [*before, *range(free - 1, -1, -1), *after]


def _two(xp: Any, x: _Operand, y: _Operand, output: list[Any], dtype: np.dtype[Any]) -> Any:
    """The product of two operands. Shared labels are batch dimensions or contracted, others rows and columns."""
    shared = [label for label in x.labels if label in y.labels]
    batch = [label for label in output if label in shared or isinstance(label, int)]
    summed = [label for label in shared if label not in batch]
    rows = [label for label in x.labels if label not in shared and label not in batch]
    columns = [label for label in y.labels if label not in shared and label not in batch]
    left, right = x.arranged([*batch, *rows, *summed]), y.arranged([*batch, *summed, *columns])
    cut = len(batch)
    inner = xp.broadcast_shapes(left.shape[cut + len(rows) :], right.shape[cut : cut + len(summed)])
    row_sizes, column_sizes = left.shape[cut : cut + len(rows)], right.shape[cut + len(summed) :]
    depth = int(np.prod(inner, dtype=np.int64))
    product = xp.matmul(
        left.reshape((*left.shape[:cut], int(np.prod(row_sizes, dtype=np.int64)), depth)).astype(dtype, copy=False),
        right.reshape((*right.shape[:cut], depth, int(np.prod(column_sizes, dtype=np.int64)))).astype(dtype, copy=False),
    )
    result = product.reshape((*product.shape[:cut], *row_sizes, *column_sizes))
    return result.transpose([[*batch, *rows, *columns].index(label) for label in output])


class _GradientText:
    """The nodes for the gradient of one input of an Einsum, named `d` and the input's number."""

    def __init__(self, attrs: Attrs, index: int) -> None:
        inputs, output = _equation(attrs)
        self.lines: list[str] = []
        self.name = f"d{index}"
        self.source = f"inputs:{index}"
        self.own = inputs[index]
        others = [(i, labels) for i, labels in enumerate(inputs) if i != index]
        self.ellipsis = any("..." in labels for labels in (*inputs, output))
        self.factors = ["dy", *[self._conjugate(attrs, i) for i, _ in others]]
        self.factor_labels = [output, *[labels for _, labels in others]]
        dim_labels = set("".join(self.factor_labels))
        unique = list(dict.fromkeys(self.own.replace("...", "")))
        self.known = "".join(label for label in unique if label in dim_labels)
        self.missing = "".join(label for label in unique if label not in dim_labels)
        self.repeated = len(unique) < len(self.own.replace("...", ""))

    def text(self) -> str:
        """The lines of text.

        Raises:
            UnimplementedError: a label is repeated in an input with an ellipsis.
        """
        if self.repeated and self.ellipsis:
            raise UnimplementedError(
                f"The gradient of Einsum by '{self.own}' is not supported: a label is repeated beside '...'", op="Einsum"
            )
        if not (self.missing or self.ellipsis or self.repeated):
            self._contract(self.name, self.own)
        elif self.repeated:
            self._scatter_diagonals()
        else:
            self._broadcast_back()
        return "".join(f"  {line}\n" for line in self.lines)

    def _conjugate(self, attrs: Attrs, i: int) -> str:
        if not is_complex(attrs):
            return f"inputs:{i}"
        self.lines.append(f"{self.name}_conj = Conj[T=$T](inputs:{i})")
        return f"{self.name}_conj"

    def _contract(self, name: str, result: str) -> None:
        equation = f"{','.join(self.factor_labels)}->{result}"
        self.lines.append(f'{name} = Einsum[N={len(self.factors)}, T=$T, equation="{equation}"]({", ".join(self.factors)})')

    def _rearrange(self, name: str, source: str, equation: str) -> None:
        self.lines.append(f'{name} = Einsum[N=1, T=$T, equation="{equation}"]({source})')

    def _broadcast_back(self) -> None:
        """The gradient with summed labels repeated, and the broadcast ellipsis reduced."""
        name, arranged = self.name, f"{'...' if self.ellipsis else ''}{self.known}{self.missing}"
        self._contract(f"{name}_part", f"{'...' if self.ellipsis else ''}{self.known}")
        part = f"{name}_part"
        if self.missing:
            self.lines.append(f"{name}_last = {scalar('int32', -1)}")
        for label in self.missing:
            self.lines.append(f"{name}_part_{label} = ExpandDims[T=$T]({part}, {name}_last)")
            part = f"{name}_part_{label}"
        self._rearrange(f"{name}_like", self.source, f"{self.own}->{arranged}")
        self.lines += [
            f"{name}_shape = Shape[T=$T]({name}_like)",
            f"{name}_part_shape = Shape[T=$T]({part})",
            f"{name}_whole_shape = BroadcastArgs({name}_shape, {name}_part_shape)",
            f"{name}_whole = BroadcastTo[T=$T]({part}, {name}_whole_shape)",
            f"{name}_axes, {name}_no_axes = BroadcastGradientArgs({name}_shape, {name}_whole_shape)",
            f"{name}_sum = Sum[T=$T]({name}_whole, {name}_axes)",
            f"{name}_arranged = Reshape[T=$T]({name}_sum, {name}_shape)",
        ]
        self._rearrange(name, f"{name}_arranged", f"{arranged}->{self.own}")

    def _scatter_diagonals(self) -> None:
        """Put the gradient of a diagonal onto the diagonal, where indices of the repeated label are equal."""
        name, own = self.name, self.own
        kept = [label for label in dict.fromkeys(own) if label in self.known]
        self._contract(f"{name}_part", "".join(kept))
        self.lines.append(f"{name}_shape = Shape[T=$T]({self.source})")
        ones: list[int] = [at for at, label in enumerate(own) if label not in kept or own.index(label) != at]
        part = f"{name}_part"
        for at in ones:
            self.lines += [f"{name}_at_{at} = {scalar('int32', at)}", f"{name}_part_{at} = ExpandDims[T=$T]({part}, {name}_at_{at})"]
            part = f"{name}_part_{at}"
        self.lines.append(f"{name}_whole_{len(own)} = BroadcastTo[T=$T]({part}, {name}_shape)")
        whole = f"{name}_whole_{len(own)}"
        for at, label in enumerate(own):
            if own.index(label) != at:
                whole = self._only_where_equal(whole, own.index(label), at)
        self.lines.append(f"{name} = Identity[T=$T]({whole})")

    def _only_where_equal(self, whole: str, first: int, second: int) -> str:
        name = f"{self.name}_{first}_{second}"
        rank = len(self.own)
        shapes = [vector("int32", *[-1 if i == at else 1 for i in range(rank)]) for at in (first, second)]
        self.lines += [
            f"{name}_zero = {scalar('int32', 0)}",
            f"{name}_one = {scalar('int32', 1)}",
            f"{name}_at = {scalar('int32', first)}",
            f"{name}_size = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32]({self.name}_shape, {name}_at, {name}_zero)",
            f"{name}_index = Range({name}_zero, {name}_size, {name}_one)",
            f"{name}_rows_shape = {shapes[0]}",
            f"{name}_columns_shape = {shapes[1]}",
            f"{name}_rows = Reshape[T=int32]({name}_index, {name}_rows_shape)",
            f"{name}_columns = Reshape[T=int32]({name}_index, {name}_columns_shape)",
            f"{name}_equal = Equal[T=int32]({name}_rows, {name}_columns)",
            f"{name}_mask = Cast[DstT=$T, SrcT=bool]({name}_equal)",
            f"{name}_kept = Mul[T=$T]({whole}, {name}_mask)",
        ]
        return f"{name}_kept"


def _einsum_grad(attrs: Attrs) -> str:
    count = required_int(attrs, "N")
    types = "T:{complex64, complex128}" if is_complex(attrs) else "T:{half, float, double}"
    body = "".join(_GradientText(attrs, index).text() for index in range(count))
    joined = list_to_array(attrs, [f"d{index}" for index in range(count)])
    return f"[N:int, {types}, equation:string](inputs:N*T, dy:T) -> (dinputs:N*T) {{\n{body}  dinputs = {joined}\n}}"


@op
class Einsum:
    """Products of elements with equal indices, summed over indices missing in the output.

    The equation names the dimensions: `ij,jk->ik` is a matrix product, `ii->` a trace, `...` stands for broadcast dimensions.

    inputs: one or two tensors
    equation: labels of the inputs, an arrow, labels of the output.
    """

    signature = "Einsum[equation:string, N:int, T:type](inputs:N*T) -> (output:T)"
    layer = "product"
    shape = einsum_shape
    cost = "contraction"
    can_fail = False
    gradient = _einsum_grad
    examples = (
        Example([[_A, _B]], {"equation": "ij,jk->ik"}),
        Example([[[_A, _A], [_B, _B]]], {"equation": "bij,bjk->bki"}),
        Example([[[_A], [_B, _B]]], {"equation": "...ij,...jk->...ik"}),
        Example([[[[_A, _A]], [[1.0, 2.0], [3.0, -1.0]]]], {"equation": "abic,db->acdi"}),
        Example([[_A]], {"equation": "ij->j"}),
        Example([[[[1.0, 2.0], [3.0, 4.0]]]], {"equation": "ii->"}),
        Example([[_A, [2.0, 1.0]]], {"equation": "ij,i->i"}),
        Example([[_A]], {"equation": "...j->j..."}),
    )

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")
        inputs, output = _equation(k.attrs)
        wide = np.dtype(np.float32) if narrow(dtype) else dtype

        def einsum(*arrays: Any) -> Any:
            operands = [_Operand(x.astype(wide, copy=False), _spelled(k, labels, x.ndim)) for x, labels in zip(arrays, inputs, strict=True)]
            free = max((label + 1 for operand in operands for label in operand.labels if isinstance(label, int)), default=0)
            target = _spelled(k, output, len(output.replace("...", "")) + (free if "..." in output else 0))
            for operand in operands:
                operand.take_diagonals(xp)
            for i, operand in enumerate(operands):
                operand.sum_out(xp, {*target, *[label for j, other in enumerate(operands) if j != i for label in other.labels]})
            first, *second = operands
            result = _two(xp, first, second[0], target, wide) if second else first.arranged(target)
            return result.astype(dtype, copy=False)

        return einsum
