"""The parsers of serialized `tf.train.Example` messages."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, op
from graphcore.opset.framework.listed_attrs import listed
from graphcore.shapes import Shape

_TYPES: Final = "list({float, int64, string}) >= 0"
_RECORDS: Final = np.array(
    [
        bytes.fromhex("0a2d0a0c0a016e12071a050a030304050a0a0a017712050a030a01610a110a0178120c120a0a080000c03f000000c0"),
        bytes.fromhex("0a1f0a0a0a016e12051a030a01070a110a0178120c120a0a080000003f00008040"),
    ],
    object,
)
"""Examples with two floats x, several integers n, and in the first a string w."""
_NONE: Final = np.array([], object)
_WORD: Final = np.array(b"none", object)
_FLOATS: Final = np.array([], np.float32)
_SHAPES: Final = (Shape([2]), Shape([]), Shape([None]))
_DENSE: Final = [_FLOATS, _WORD, np.array(-1, np.int64)]


def _values() -> Any:
    """Import the parsers lazily: they load protobuf."""
    from graphcore.opset.io import example_values  # noqa: PLC0415 - it loads protobuf, which most sessions never need

    return example_values


def _parsed_shape(c: InferenceContext) -> None:
    """The shapes of all outputs: those of the dense features are known, with the batch in front."""
    batch = c.with_rank(c.input(0), 0 if c.op == "ParseSingleExample" else 1)
    single = c.rank(batch) == 0
    types, shapes = listed(c, "sparse_types", DType), listed(c, "dense_shapes", Shape)
    count = c.int_attr("num_sparse" if single else "Nsparse")
    keys = len(listed(c, "sparse_keys", bytes)) if single else count
    if not count == keys == len(types):
        raise InvalidArgumentError(f"num_sparse ({count}) must match the size of sparse_keys ({keys}) and sparse_types ({len(types)})")
    dense = [len(listed(c, "Tdense", DType)), len(listed(c, "dense_keys", bytes)) if single else c.int_attr("Ndense")]
    if dense != [len(shapes)] * 2:
        raise InvalidArgumentError(f"dense_shapes ({len(shapes)}) must match the size of Tdense ({dense[0]}) and dense_keys ({dense[1]})")
    for number, shape in enumerate(shapes):
        if shape.dims is None or None in shape.dims[1:]:
            raise InvalidArgumentError(f"dense_shapes[{number}] has unknown rank or unknown inner dimensions: {shape}")
    if not single:
        c.with_rank(c.input(1), 1)
    rank = 1 if single else 2
    for i in range(count):
        c.set_output(i, c.matrix(c.unknown_dim(), rank))
        c.set_output(count + i, c.vector(c.unknown_dim()))
        c.set_output(2 * count + i, c.vector(rank))
    for i, shape in enumerate(shapes):
        c.set_output(3 * count + i, c.concatenate(batch, c.make_shape_from_shape(shape)))


@op
class ParseExample:
    """The features of serialized `tf.train.Example` messages, as sparse matrices and dense tensors.

    serialized: [n], the messages
    names: [n], names of the messages for errors; [0] for none
    sparse_keys: the names of the sparse features, scalars
    dense_keys: the names of the dense features, scalars
    dense_defaults: the values of messages without a feature; empty where each message must have it; a scalar, the padding, where the first size varies
    sparse_indices: [values, 2], the message and the place in it
    sparse_values: [values]
    sparse_shapes: [2], the number of messages and the most values
    dense_values: [n, ...], the values in the shape of the feature
    dense_shapes: the shapes of the dense features; the first size may be unknown.
    """

    signature = (
        f"ParseExample[Nsparse:int >= 0, Ndense:int >= 0, sparse_types:{_TYPES}, Tdense:{_TYPES}, dense_shapes:list(shape) >= 0]"
        "(serialized:string, names:string, sparse_keys:Nsparse*string, dense_keys:Ndense*string, dense_defaults:Tdense) -> "
        "(sparse_indices:Nsparse*int64, sparse_values:sparse_types, sparse_shapes:Nsparse*int64, dense_values:Tdense)"
    )
    shape = _parsed_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example(
            [_RECORDS, _NONE, [b"w"], [b"x", b"v", b"n"], _DENSE],
            {"sparse_types": ["string"], "dense_shapes": _SHAPES},
            outputs=[[[0, 0]], [b"a"], [2, 1], [[1.5, -2.0], [0.5, 4.0]], [b"none"] * 2, [[3, 4, 5], [7, -1, -1]]],
        ),
        Example([_RECORDS, _NONE, [b"w", b"x"], [], []], {"sparse_types": ["string", "float"], "dense_shapes": ()}),
    )
    failures = (
        Example([_RECORDS, _NONE, [], [b"y"], [_FLOATS]], {"sparse_types": [], "dense_shapes": (Shape([2]),)}),
        Example([_RECORDS, _NONE, [b"x"], [], []], {"sparse_types": ["int64"], "dense_shapes": ()}),
        Example([_RECORDS, _NONE, [b"x"], [b"x"], [_FLOATS]], {"sparse_types": ["float"], "dense_shapes": (Shape([2]),)}),
    )

    def kernel(k: KernelContext) -> Kernel:
        parser: Kernel = _values().parse_batch(k)
        return parser


@op
class ParseSingleExample:
    """The features of one serialized `tf.train.Example` message: sparse vectors and dense tensors.

    serialized: the message, a scalar
    dense_defaults: the values of a message without a feature; empty where it must have it; a scalar where the first size varies
    sparse_indices: [values, 1]
    sparse_values: [values]
    sparse_shapes: [1], the number of values
    dense_values: the shape of the feature
    num_sparse: the number of sparse features.
    sparse_keys: their names.
    dense_keys: the names of the dense features.
    dense_shapes: their shapes; the first size may be unknown.
    """

    signature = (
        "ParseSingleExample[num_sparse:int >= 0, sparse_keys:list(string) >= 0, dense_keys:list(string) >= 0, "
        f"sparse_types:{_TYPES}, Tdense:{_TYPES}, dense_shapes:list(shape) >= 0](serialized:string, dense_defaults:Tdense) -> "
        "(sparse_indices:num_sparse*int64, sparse_values:sparse_types, sparse_shapes:num_sparse*int64, dense_values:Tdense)"
    )
    shape = _parsed_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example(
            [_RECORDS[0], _DENSE],
            {"num_sparse": 1, "sparse_keys": ["w"], "sparse_types": ["string"], "dense_keys": ["x", "v", "n"], "dense_shapes": _SHAPES},
            outputs=[[[0]], [b"a"], [1], [1.5, -2.0], b"none", [3, 4, 5]],
        ),
        Example(
            [_RECORDS[1], _DENSE[1:2]],
            {"num_sparse": 1, "sparse_keys": ["w"], "sparse_types": ["string"], "dense_keys": ["v"], "dense_shapes": (Shape([]),)},
        ),
    )
    failures = (
        Example(
            [_RECORDS[0], [_FLOATS]],
            {"num_sparse": 0, "sparse_keys": [], "sparse_types": [], "dense_keys": ["x"], "dense_shapes": (Shape([3]),)},
        ),
    )

    def kernel(k: KernelContext) -> Kernel:
        parser: Kernel = _values().parse_single(k)
        return parser
