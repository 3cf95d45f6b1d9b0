"""Buckets of strings by hash."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op, op
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.string_hashes import fingerprint, keyed, older

_X: Final = np.array([[b"Hello", b"TensorFlow"], [b"", bytes(range(70))]], object)


def _buckets(x: Any, hashed: Any, count: int) -> Any:
    return np.array([hashed(value) % count for value in x.reshape(-1).tolist()], np.int64).reshape(x.shape)


def _hashing(name: str, arg: str, hashed: Any, summary: str) -> None:
    def kernel(k: KernelContext) -> Kernel:
        count = required_int(k.attrs, "num_buckets")
        return lambda x: _buckets(x, hashed, count)

    define_op(
        name,
        f"""{summary}

        num_buckets: the number of buckets.
        """,
        pure=True,
        signature=f"{name}[num_buckets:int >= 1]({arg}:string) -> (output:int64)",
        shape=unchanged_shape,
        kernel=kernel,
        gradient=NO_GRADIENT,
        device_types=("CPU",),
        can_fail=False,
        examples=(Example([_X], {"num_buckets": 1000}),),
    )


_hashing("StringToHashBucketFast", "input", fingerprint, "A bucket for each string, by a fast hash.")
_hashing("StringToHashBucket", "string_tensor", older, "A bucket for each string, by the hash of older graphs.")


@op
class StringToHashBucketStrong:
    """A bucket for each string, by a hash with a key, for which equal buckets cannot be provoked.

    num_buckets: the number of buckets.
    key: two numbers.
    """

    pure = True
    signature = "StringToHashBucketStrong[num_buckets:int >= 1, key:list(int)](input:string) -> (output:int64)"
    shape = unchanged_shape
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (Example([_X], {"num_buckets": 1000, "key": [3, -5]}),)
    failures = (Example([_X], {"num_buckets": 1000, "key": [3]}),)

    def kernel(k: KernelContext) -> Kernel:
        count, key = required_int(k.attrs, "num_buckets"), k.attr("key")
        if not isinstance(key, tuple) or len(key) != 2:
            raise invalid(k, "Key must have 2 elements")
        first, second = (int(str(part)) & (1 << 64) - 1 for part in key)
        return lambda x: _buckets(x, lambda value: keyed(value, (first, second)), count)
