"""Bands of diagonals of matrices: extracting and setting them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import ints, invalid, one_int
from graphcore.traits import FailsOn

_ALIGN: Final = "align:{'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'"
_X: Final = [[1.0, 2.0, 3.0, 9.0], [4.0, 5.0, 6.0, 8.0], [7.0, 8.0, 9.0, 7.0]]
_BAND: Final = [[0.0, 8.0, 9.0], [1.0, 2.0, 3.0], [4.0, 5.0, 0.0]]


def band_of(value: Any) -> tuple[int, int]:
    """The first and last diagonal in `k`: one number, or two.

    Raises:
        InvalidArgumentError: neither, or the first is above the last.
    """
    numbers = ints(value)
    if len(numbers) not in (1, 2) or value.ndim > 1:
        raise InvalidArgumentError(f"diag_index must be a scalar or a vector of 1 or 2 elements, received shape {list(value.shape)}")
    if numbers[0] > numbers[-1]:
        raise InvalidArgumentError(
            f"lower_diag_index must not be larger than upper_diag_index, received: {numbers[0]} is larger than {numbers[-1]}"
        )
    return numbers[0], numbers[-1]


def longest(rows: int, columns: int, lower: int, upper: int) -> int:
    """The length of the longest diagonal of a band.

    Raises:
        InvalidArgumentError: the band is not inside the matrix.
    """
    inside = (-rows < lower < columns or lower == 0) and (-rows < upper < columns or upper == 0)
    if not inside:
        raise InvalidArgumentError(f"diagonals from {lower} to {upper} are out of bounds of a matrix of {rows} rows and {columns} columns")
    return min(rows + min(upper, 0), columns - max(lower, 0))


class Band:
    """The positions of a band's elements in matrices of one size.

    Matrix element (row, column) is element (line, place) of the band.
    """

    def __init__(self, rows: int, columns: int, band: tuple[int, int], align: bytes) -> None:
        self.lower, self.upper = band
        self.length = longest(rows, columns, *band)
        super_left, sub_left = align.startswith(b"LEFT"), align.endswith(b"LEFT")
        lines = np.arange(self.upper, self.lower - 1, -1)
        lengths = np.minimum(rows + np.minimum(lines, 0), columns - np.maximum(lines, 0))
        left = np.where(lines > 0, super_left, np.where(lines < 0, sub_left, super_left or sub_left))
        offset = np.where(left, 0, self.length - lengths)[:, None]
        places = np.arange(self.length)[None, :] - offset
        self.filled = (places >= 0) & (places < lengths[:, None])
        self.row = (places - np.minimum(lines, 0)[:, None])[self.filled]
        self.column = (places + np.maximum(lines, 0)[:, None])[self.filled]

    def flat(self, xp: Any, batch: tuple[int, ...], diagonal: Any) -> Any:
        """A diagonal input as [batch..., filled elements]."""
        return diagonal.reshape(*batch, *self.filled.shape)[..., xp.asarray(self.filled)]

    def shape(self, batch: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a diagonal output: a single diagonal has no dimension of its own."""
        return (*batch, self.length) if self.lower == self.upper else (*batch, *self.filled.shape)


def _align(k: KernelContext) -> bytes:
    value = k.attrs.get("align", b"LEFT_LEFT")
    assert isinstance(value, bytes)
    return value


def _known_band(c: InferenceContext, index: int) -> tuple[int, int] | None:
    c.with_rank_at_most(c.input(index), 1)
    value = c.input_tensor(index)
    return None if value is None else band_of(value)


def _part_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(2), 0)
    in_shape, band = c.with_rank_at_least(c.input(0), 2), _known_band(c, 1)
    c.with_rank(c.input(2), 0)
    if in_shape.dims is None or band is None:
        c.set_output(0, c.unknown_shape())
        return
    rows, columns = c.value(c.dim(in_shape, -2)), c.value(c.dim(in_shape, -1))
    length = c.unknown_dim() if rows < 0 or columns < 0 else c.make_dim(longest(rows, columns, *band))
    lines = [] if band[0] == band[1] else [c.make_dim(band[1] - band[0] + 1)]
    c.set_output(0, c.make_shape([*in_shape.dims[:-2], *lines, length]))


def _part(k: KernelContext) -> Kernel:
    xp, align = k.xp, _align(k)

    def part(x: Any, diagonals: Any, padding: Any) -> Any:
        if x.ndim < 2:
            raise invalid(k, f"input must be at least 2-dimensional, received shape: {list(x.shape)}")
        band = Band(x.shape[-2], x.shape[-1], band_of(diagonals), align)
        result = xp.full((*x.shape[:-2], *band.filled.shape), padding, x.dtype)
        result[..., xp.asarray(band.filled)] = x[..., xp.asarray(band.row), xp.asarray(band.column)]
        return result.reshape(band.shape(x.shape[:-2]))

    return part


def _part_gradient(version: str, options: str) -> str:
    return f"""[T:type{", align:string" if options else ""}](x:T, k:int32, padding:T, dy:T) -> (dx:T, dk:int32, dpadding:T) {{
      zeros = ZerosLike[T=$T](x)
      dx = MatrixSetDiag{version}[T=$T{options}](zeros, dy, k)
      zero = ZerosLike[T=$T](padding)
      taken = MatrixDiagPart{version}[T=$T{options}](dx, k, zero)
      left = Sub[T=$T](dy, taken)
      rank = Rank[T=$T](dy)
      first = {scalar("int32", 0)}
      step = {scalar("int32", 1)}
      axes = Range(first, rank, step)
      dpadding = Sum[T=$T](left, axes)
      dk = ZerosLike[T=int32](k)
    }}"""


_PART_EXAMPLES: Final = (
    Example([_X, 0, 0.0], outputs=[[1.0, 5.0, 9.0]]),
    Example([_X, [-1, 1], 0.5]),
    Example([[_X, _X], [1, 2], 0.5]),
    Example([_X, -2, 0.0], outputs=[[7.0]]),
)


@op
class MatrixDiagPartV2:
    """A band of diagonals of the matrices in the last two dimensions, padded on the right.

    input: [..., m, n]
    k: the diagonal, or the first and last one of a band; positive ones are above the main one
    diagonal: [..., diagonals, longest], from the last one to the first; without the dimension of diagonals for a single one
    """

    pure = True
    signature = "MatrixDiagPartV2[T:type](input:T, k:int32, padding_value:T) -> (diagonal:T)"
    shape = _part_shape
    can_fail = FailsOn(values=("k",))
    kernel = _part
    gradient = _part_gradient("V2", "")
    examples = _PART_EXAMPLES
    failures = (Example([np.zeros((0, 4), np.float32), [-1, 1], 0.5]),)


@op
class MatrixDiagPartV3:
    """A band of diagonals of the matrices in the last two dimensions, padded with `padding_value`.

    input: [..., m, n]
    k: the diagonal, or the first and last one of a band; positive ones are above the main one
    diagonal: [..., diagonals, longest], from the last one to the first; without the dimension of diagonals for a single one
    align: the alignment of shorter diagonals: first those above the main one, then those below.
    """

    pure = True
    signature = f"MatrixDiagPartV3[T:type, {_ALIGN}](input:T, k:int32, padding_value:T) -> (diagonal:T)"
    shape = _part_shape
    can_fail = FailsOn(values=("k",))
    kernel = _part
    gradient = _part_gradient("V3", ", align=$align")
    examples = (*_PART_EXAMPLES, Example([_X, [-2, 2], 0.5], {"align": "LEFT_RIGHT"}))
    failures = (Example([_X, [99, 99], 0.5], {"align": "LEFT_RIGHT"}),)


def _set_shape(c: InferenceContext) -> None:
    in_shape, diagonal, band = c.with_rank_at_least(c.input(0), 2), c.with_rank_at_least(c.input(1), 1), _known_band(c, 2)
    if in_shape.dims is not None and diagonal.dims is not None and band is not None:
        rows, columns = c.value(c.dim(in_shape, -2)), c.value(c.dim(in_shape, -1))
        length = c.unknown_dim() if rows < 0 or columns < 0 else c.make_dim(longest(rows, columns, *band))
        lines = [] if band[0] == band[1] else [c.make_dim(band[1] - band[0] + 1)]
        c.merge(c.make_shape([*in_shape.dims[:-2], *lines, length]), diagonal)
    if in_shape.dims is None and diagonal.dims is not None and (band is not None or len(diagonal.dims) == 1):
        batch = c.subshape(diagonal, 0, -1 if band is None or band[0] == band[1] else -2)
        in_shape = c.concatenate(batch, c.matrix(c.unknown_dim(), c.unknown_dim()))
    c.set_output(0, in_shape)


def _set(k: KernelContext) -> Kernel:
    xp, align = k.xp, _align(k)

    def put(x: Any, diagonal: Any, diagonals: Any) -> Any:
        if x.ndim < 2:
            raise invalid(k, f"input must be at least 2-dimensional, received shape: {list(x.shape)}")
        band = Band(x.shape[-2], x.shape[-1], band_of(diagonals), align)
        if diagonal.shape != band.shape(x.shape[:-2]):
            raise invalid(k, f"the diagonal must have shape {list(band.shape(x.shape[:-2]))}, got {list(diagonal.shape)}")
        result = x.copy()
        result[..., xp.asarray(band.row), xp.asarray(band.column)] = band.flat(xp, x.shape[:-2], diagonal)
        return result

    return put


def _set_gradient(version: str, options: str) -> str:
    return f"""[T:type{", align:string" if options else ""}](x:T, diagonal:T, k:int32, dy:T) -> (dx:T, ddiagonal:T, dk:int32) {{
      zeros = ZerosLike[T=$T](diagonal)
      dx = MatrixSetDiag{version}[T=$T{options}](dy, zeros, k)
      zero = Const[dtype=float, value=Tensor<type: float shape: [] values: 0>]()
      padding = Cast[SrcT=float, DstT=$T](zero)
      ddiagonal = MatrixDiagPart{version}[T=$T{options}](dy, k, padding)
      dk = ZerosLike[T=int32](k)
    }}"""


_SET_EXAMPLES: Final = (Example([_X, [-1.0, -2.0, -3.0], 0]), Example([_X, [-1.0, -2.0], -1]), Example([_X, _BAND, [-1, 1]]))


@op
class MatrixSetDiagV2:
    """The input with another band of diagonals in the matrices of its last two dimensions.

    input: [..., m, n]
    diagonal: in the form of MatrixDiagPartV2
    k: the diagonal, or the first and last one of a band
    """

    pure = True
    signature = "MatrixSetDiagV2[T:type](input:T, diagonal:T, k:int32) -> (output:T)"
    shape = _set_shape
    can_fail = FailsOn(values=("k",))
    kernel = _set
    gradient = _set_gradient("V2", "")
    examples = _SET_EXAMPLES
    failures = (Example([np.zeros((3, 0), np.float32), [-1.0, -2.0, -3.0], 0]),)


@op
class MatrixSetDiagV3:
    """The input with another band of diagonals in the matrices of its last two dimensions.

    input: [..., m, n]
    diagonal: in the form of MatrixDiagPartV3
    k: the diagonal, or the first and last one of a band
    align: the alignment of shorter diagonals: first those above the main one, then those below.
    """

    pure = True
    signature = f"MatrixSetDiagV3[T:type, {_ALIGN}](input:T, diagonal:T, k:int32) -> (output:T)"
    shape = _set_shape
    can_fail = FailsOn(values=("k",))
    kernel = _set
    gradient = _set_gradient("V3", ", align=$align")
    examples = (*_SET_EXAMPLES, Example([_X, _BAND, [-1, 1]], {"align": "LEFT_RIGHT"}))
    failures = (Example([np.zeros((3, 0), np.float32), [-1.0, -2.0, -3.0], 0]),)


def sides(length: int, band: tuple[int, int], rows: int, columns: int) -> tuple[int, int]:
    """The size of the matrices for a band; -1 in the attrs stands for the smallest one.

    Raises:
        InvalidArgumentError: the band does not fit.
    """
    least_rows, least_columns = length - min(band[1], 0), length + max(band[0], 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows, columns = least_rows if rows == -1 else rows, least_columns if columns == -1 else columns
    if rows < least_rows:
        raise InvalidArgumentError("The number of rows is too small.")
    if columns < least_columns:
        raise InvalidArgumentError("The number of columns is too small.")
    if rows != least_rows and columns != least_columns:
        raise InvalidArgumentError("The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal.")
    return rows, columns


def _matrix_shape(c: InferenceContext) -> None:
    for index in (2, 3, 4):
        c.with_rank(c.input(index), 0)
    diagonal, band = c.with_rank_at_least(c.input(0), 1), _known_band(c, 1)
    for index in (2, 3, 4):
        c.with_rank(c.input(index), 0)
    sides_given = [c.input_tensor(index) for index in (2, 3)]
    if diagonal.dims is None or band is None:
        c.set_output(0, c.unknown_shape())
        return
    if band[0] != band[1]:
        c.with_value(c.dim(c.with_rank_at_least(diagonal, 2), -2), band[1] - band[0] + 1)
    batch = diagonal.dims[: -1 if band[0] == band[1] else -2]
    length = c.value(c.dim(diagonal, -1))
    if length < 0 or sides_given[0] is None or sides_given[1] is None:
        c.set_output(0, c.make_shape([*batch, c.unknown_dim(), c.unknown_dim()]))
        return
    c.set_output(0, c.make_shape([*batch, *map(c.make_dim, sides(length, band, int(sides_given[0]), int(sides_given[1])))]))


def _matrix(k: KernelContext) -> Kernel:
    xp, align = k.xp, _align(k)

    def matrix(diagonal: Any, diagonals: Any, num_rows: Any, num_cols: Any, padding: Any) -> Any:
        lower, upper = band_of(diagonals)
        lines = 1 if lower == upper else 2
        if diagonal.ndim < lines or (lines == 2 and diagonal.shape[-2] != upper - lower + 1):
            raise invalid(k, f"diagonals from {lower} to {upper} do not fit a diagonal of shape {list(diagonal.shape)}")
        rows, columns = sides(diagonal.shape[-1], (lower, upper), one_int(k, num_rows), one_int(k, num_cols))
        band, batch = Band(rows, columns, (lower, upper), align), diagonal.shape[: diagonal.ndim - lines]
        result = xp.full((*batch, rows, columns), padding, diagonal.dtype)
        result[..., xp.asarray(band.row), xp.asarray(band.column)] = band.flat(xp, batch, diagonal)
        return result

    return matrix


def _matrix_gradient(version: str, options: str) -> str:
    return f"""[T:type{", align:string" if options else ""}](diagonal:T, k:int32, num_rows:int32, num_cols:int32, padding:T, dy:T) ->
        (ddiagonal:T, dk:int32, drows:int32, dcols:int32, dpadding:T) {{
      zero = ZerosLike[T=$T](padding)
      ddiagonal = MatrixDiagPart{version}[T=$T{options}](dy, k, zero)
      zeros = ZerosLike[T=$T](ddiagonal)
      outside = MatrixSetDiag{version}[T=$T{options}](dy, zeros, k)
      rank = Rank[T=$T](dy)
      first = {scalar("int32", 0)}
      step = {scalar("int32", 1)}
      axes = Range(first, rank, step)
      dpadding = Sum[T=$T](outside, axes)
      dk = ZerosLike[T=int32](k)
      drows = ZerosLike[T=int32](num_rows)
      dcols = ZerosLike[T=int32](num_cols)
    }}"""


_MATRIX_EXAMPLES: Final = (
    Example([[1.0, 2.0, 3.0], 0, -1, -1, 0.0]),
    Example([[[1.0, 2.0], [3.0, 4.0]], 1, 3, 3, 0.5]),
    Example([_BAND, [-1, 1], 3, 4, 0.5]),
)


@op
class MatrixDiagV2:
    """Matrices of `padding_value` with a band of diagonals.

    diagonal: in the form of MatrixDiagPartV2
    k: the diagonal, or the first and last one of a band
    num_rows: -1 for as many as needed
    num_cols: -1 for as many as needed
    """

    pure = True
    signature = "MatrixDiagV2[T:type](diagonal:T, k:int32, num_rows:int32, num_cols:int32, padding_value:T) -> (output:T)"
    shape = _matrix_shape
    can_fail = FailsOn(values=("k", "num_rows", "num_cols"))
    kernel = _matrix
    gradient = _matrix_gradient("V2", "")
    examples = _MATRIX_EXAMPLES
    failures = (Example([[1.0, 2.0, 3.0], 0, 0, -1, 0.0]),)


@op
class MatrixDiagV3:
    """Matrices of `padding_value` with a band of diagonals.

    diagonal: in the form of MatrixDiagPartV3
    k: the diagonal, or the first and last one of a band
    num_rows: -1 for as many as needed
    num_cols: -1 for as many as needed
    align: the alignment of shorter diagonals: first those above the main one, then those below.
    """

    pure = True
    signature = f"MatrixDiagV3[T:type, {_ALIGN}](diagonal:T, k:int32, num_rows:int32, num_cols:int32, padding_value:T) -> (output:T)"
    shape = _matrix_shape
    can_fail = FailsOn(values=("k", "num_rows", "num_cols"))
    kernel = _matrix
    gradient = _matrix_gradient("V3", ", align=$align")
    examples = (*_MATRIX_EXAMPLES, Example([_BAND, [-1, 1], -1, -1, 0.5], {"align": "LEFT_RIGHT"}))
    failures = (Example([[1.0, 2.0, 3.0], 0, 0, -1, 0.0]),)
