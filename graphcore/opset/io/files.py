"""Files as strings, their names, and numbers in strings of bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphcore.dtypes import string
from graphcore.errors import GraphError, NotFoundError
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import scalar_shape
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, no_registered_gradient, op
from graphcore.opset.framework.kernels import invalid, on_host
from graphcore.opset.numerics.dataset_values import as_array
from graphcore.opset.numerics.string_arrays import bytes_of_parts
from graphcore.support.files import file_errors, matching

_NO_FILE: Final = np.array(b"no such folder/file", object)


@op
class ReadFile:
    """The contents of a file.

    filename: its name, a scalar
    """

    signature = "ReadFile(filename:string) -> (contents:string)"
    device_types = ("CPU",)
    gradient = no_registered_gradient("it reads a file")
    examples = (Example([_NO_FILE]),)
    failures = (Example([_NO_FILE]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank(c.input(0), 0)
        scalar_shape(c)

    def kernel(k: KernelContext) -> Kernel:
        def read(filename: Any) -> Any:
            path = os.fsdecode(on_host(filename).item())
            try:
                with file_errors(path):
                    return as_array(Path(path).read_bytes(), string)
            except NotFoundError:
                raise NotFoundError(f"{path}; No such file or directory", op=k.op, node=k.node_name, source=k.source) from None
            except GraphError as error:
                raise error.with_node(k.node_name, op=k.op, source=k.source) from error.__cause__

        return read


@op
class MatchingFiles:
    """The sorted names of the files that match patterns.

    pattern: patterns with `*`, `?` and `[...]`, a scalar or a vector
    """

    signature = "MatchingFiles(pattern:string) -> (filenames:string)"
    device_types = ("CPU",)
    can_fail = False
    gradient = no_registered_gradient("it looks at the files")
    examples = (Example([_NO_FILE]),)

    def shape(c: InferenceContext) -> None:
        c.with_rank_at_most(c.input(0), 1)
        c.set_output(0, c.vector(c.unknown_dim()))

    def kernel(k: KernelContext) -> Kernel:
        def find(pattern: Any) -> Any:
            patterns = [os.fsdecode(path) for path in on_host(pattern).reshape(-1).tolist()]
            names = [os.fsencode(name) for pattern in patterns for name in matching(pattern)]
            name_array = np.empty(len(names), object)
            name_array[:] = sorted(names)
            return name_array

        return find


@op
class DecodeRaw:
    """The numbers in strings of bytes, along a new last dimension.

    bytes: strings of one length
    out_type: the type of the numbers.
    little_endian: their small end comes first.
    """

    pure = True
    most_bytes = bytes_of_parts
    signature = (
        "DecodeRaw[out_type:{half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}, "
        "little_endian:bool = true](bytes:string) -> (output:out_type)"
    )
    device_types = ("CPU",)
    gradient = NO_GRADIENT
    examples = (
        Example([np.array([b"\x01\x00\x02\x00", b"\x03\x00\x04\x01"], object)], {"out_type": "int16"}, outputs=[[[1, 2], [3, 260]]]),
        Example([np.array(b"\x00\x01\x00\x02", object)], {"out_type": "int16", "little_endian": False}, outputs=[[1, 2]]),
    )
    failures = (Example([np.array([b"abc"], object)], {"out_type": "int16"}),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.concatenate(c.input(0), c.vector(c.unknown_dim())))

    def kernel(k: KernelContext) -> Kernel:
        dtype, is_little = k.dtype("out_type"), bool(k.attr("little_endian"))

        def decode(strings: Any) -> Any:
            array = on_host(strings)
            texts = array.reshape(-1).tolist()
            lengths = {len(text) for text in texts}
            if len(lengths) > 1:
                raise invalid(k, f"DecodeRaw requires input strings to all be the same size, got the sizes {sorted(lengths)}")
            length = lengths.pop() if lengths else 0
            if length % dtype.itemsize:
                raise invalid(k, f"Input to DecodeRaw has length {length} that is not a multiple of {dtype.itemsize}, the size of {dtype}")
            numbers = np.frombuffer(b"".join(texts), dtype)
            # Each part of a complex number is turned by itself.
            size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
            if not is_little and size > 1:
                numbers = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, size)[:, ::-1]).reshape(-1).view(dtype)
            return numbers.reshape(*array.shape, length // dtype.itemsize).copy()

        return decode
