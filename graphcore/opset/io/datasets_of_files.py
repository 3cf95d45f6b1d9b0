"""Datasets of the records and lines of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from graphcore.dtypes import string
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.block import Example, Kernel
from graphcore.opset.framework.kernels import invalid, on_host
from graphcore.opset.io.dataset_blocks import METADATA, dataset_op, number
from graphcore.opset.numerics.dataset_values import Dataset, Element, as_array
from graphcore.opset.numerics.file_records import fixed_records, lines
from graphcore.support.records import COMPRESSIONS, read_records

_NAMES: Final = np.array([b"no such folder/file"], object)
_NONE: Final = np.array(b"", object)
_LZ: Final = """
    names = Const[dtype=string, value=Tensor<type: string shape: [1] values: "file">]()
    packed = Const[dtype=string, value=Tensor<type: string shape: [] values: "LZ">]()
    size = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()
"""
_Records = Callable[[str, str], Iterator[bytes]]


def _dataset(names: Any, records: Callable[[str], Iterator[bytes]]) -> Dataset:
    paths = [os.fsdecode(name) for name in on_host(names).reshape(-1).tolist()]

    def iterate() -> Iterator[Element]:
        for path in paths:
            for record in records(path):
                yield (as_array(record, string),)

    return Dataset((string,), iterate)


def _reading(records: _Records) -> Callable[[KernelContext], Kernel]:
    def kernel(k: KernelContext) -> Kernel:
        def make(names: Any, compression: Any, _buffer: Any) -> Dataset:
            packed = _compression(k, compression)
            return _dataset(names, lambda path: records(path, packed))

        return make

    return kernel


def _compression(k: KernelContext, value: Any) -> str:
    name: str = on_host(value).item().decode()
    if name not in COMPRESSIONS:
        raise invalid(k, f"Unsupported compression_type: {name}.")
    return name


def _fixed(k: KernelContext) -> Kernel:
    def make(names: Any, header: Any, record: Any, footer: Any, _buffer: Any, compression: Any = None) -> Dataset:
        before, size, after = (
            number(k, header, "header_bytes", 0),
            number(k, record, "record_bytes", 1),
            number(k, footer, "footer_bytes", 0),
        )
        packed = "" if compression is None else _compression(k, compression)
        return _dataset(names, lambda path: fixed_records(path, before, size, after, 0, packed))

    return make


_SIGNATURE: Final = f"[{METADATA}](filenames:string, compression_type:string, buffer_size:int64)"
_DOC: Final = "filenames: the names of the files\ncompression_type: empty, ZLIB or GZIP\nbuffer_size: has no effect"
for _name, _what, _records in (
    ("TFRecordDataset", "The records of files in TensorFlow's form, one after another.", read_records),
    ("TextLineDataset", "The lines of text files, without their ends.", lines),
):
    dataset_op(
        _name,
        f"{_what}\n\n{_DOC}",
        _SIGNATURE,
        _reading(_records),
        (Example([_NAMES, _NONE, 0]),),
        (f"{_LZ}\nit = {_name}(names, packed, size)",),
        stateful=True,
    )
_SIZES: Final = "header_bytes:int64, record_bytes:int64, footer_bytes:int64, buffer_size:int64"
_FIXED_DOC: Final = (
    "The records of files that all have one size.\n\nfilenames: the names of the files\nrecord_bytes: the size of a record\n"
    "header_bytes: the bytes to leave out at the beginning\nfooter_bytes: the bytes to leave out at the end\nbuffer_size: has no effect"
)
dataset_op(
    "FixedLengthRecordDataset",
    _FIXED_DOC,
    f"[{METADATA}](filenames:string, {_SIZES})",
    _fixed,
    (Example([_NAMES, 0, 4, 0, 0]),),
    (f"{_LZ}\nit = FixedLengthRecordDataset(names, size, size, size, size)",),
    stateful=True,
)
dataset_op(
    "FixedLengthRecordDatasetV2",
    f"{_FIXED_DOC}\ncompression_type: empty, ZLIB or GZIP",
    f"[{METADATA}](filenames:string, {_SIZES}, compression_type:string)",
    _fixed,
    (Example([_NAMES, 0, 4, 0, 0, _NONE]),),
    (f"{_LZ}\nit = FixedLengthRecordDatasetV2(names, size, size, size, size, packed)",),
    stateful=True,
)
