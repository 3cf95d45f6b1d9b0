"""The readers of a session, which give the records of files named in a queue. See also `reader_uses`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.dtypes import string
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import scalar_shape
from graphcore.kernel_context import RefVariable
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op, no_registered_gradient
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.reader_values import Reader, ReaderSpec
from graphcore.shapes import Shape
from graphcore.support.records import COMPRESSIONS
from graphcore.traits import declares_traits

NO_GRADIENT_OF_READERS: Final = no_registered_gradient("it reads files")
_LEAST: Final = {"skip_header_lines": 0, "header_bytes": 0, "record_bytes": 1, "footer_bytes": 0, "hop_bytes": 0}
_SHARED: Final = 'queue = FIFOQueueV2[component_types={{float}}, shared_name="a"]()\nit = {op}[shared_name="a"]() @ queue'
"""A use that fails: the shared name is that of another resource."""
_DOC_OF_NAMES: Final = """
container: a namespace for `shared_name`.
shared_name: nodes with the same shared name share a reader; empty for a private one."""


class ReaderReference(RefVariable):
    """The reference to a reader, for the older forms of the ops."""

    __slots__ = ("reader",)

    def __init__(self, reader: Reader, container: str) -> None:
        super().__init__(reader.name, string, Shape([2]), None, reader.op)
        self.reader = reader
        self.assign(np.array([(container or "localhost").encode(), reader.name.encode()], np.object_))


def reader_behind(k: KernelContext, handle: Any) -> Reader:
    """The reader of a handle or reference.

    Raises:
        InvalidArgumentError: it is none of a reader.
    """
    reader = handle.reader if isinstance(handle, ReaderReference) else handle
    if not isinstance(reader, Reader):
        raise invalid(k, f"required the handle of a reader, got {type(reader).__name__}")
    return reader


def _spec(k: KernelContext) -> ReaderSpec:
    """The declaration of a node.

    Raises:
        InvalidArgumentError: it is invalid.
    """
    numbers = {name: required_int(k.attrs, name) for name in _LEAST if name in k.attrs}
    for name, value in numbers.items():
        if value < _LEAST[name]:
            raise invalid(k, f"{name} must be >= {_LEAST[name]} not {value}")
    compression = attr_text(k.attrs.get("compression_type")) or attr_text(k.attrs.get("encoding"))
    if compression not in COMPRESSIONS:
        raise invalid(k, f"Unsupported compression: {compression}; required one of '', 'ZLIB', 'GZIP'")
    return ReaderSpec(k.op.removesuffix("V2"), tuple(numbers.values()), compression)


@declares_traits(device_types=("CPU",))
def reader_kernel(k: KernelContext) -> Kernel:
    """The kernel that finds or makes a reader: shared by name, otherwise the node's own."""
    spec, container, shared_name = _spec(k), attr_text(k.attrs.get("container")), attr_text(k.attrs.get("shared_name"))
    node, op_name, resources, as_reference = k.node_name, k.op, k.resources, k.output_types[0].is_ref
    key = shared_name or (resources, node)

    def find() -> Any:
        reader = resources.shared.find(
            container,
            key,
            node,
            lambda number: Reader(shared_name or f"_{number}_{node}", spec, op_name),
            lambda reader: reader.spec == spec,
        )
        if not isinstance(reader, Reader) or reader.spec != spec:
            raise invalid(k, f"'{shared_name}' is shared, and is {reader!r}, not such a reader")
        return ReaderReference(reader, container) if as_reference else reader

    return find


def _reference_shape(c: InferenceContext) -> None:
    c.set_output(0, c.vector(2))


def _reader(
    kind: str,
    summary: str,
    own: str = "",
    doc: str = "",
    *,
    newest: str = "",
    after: str = "",
    attrs: dict[str, Any] | None = None,
    failing: dict[str, Any] | None = None,
    is_removed: bool = True,
) -> None:
    """Register the two ops that make a kind of reader: with a handle, and with a reference.

    Args:
        kind: the older op.
        summary: the first sentence of the docs.
        own, after, newest: the attrs before and after the common ones, and those of the newer op.
        doc: the docs of the attrs.
        attrs: those of the example.
        failing: those of an example that fails.
        is_removed: True if the older op is not in new graphs any more.
    """
    for version in ("V2", ""):
        name = f"{kind}{version}"
        names = f"{own}container:string = '', shared_name:string = ''{after}{newest if version else ''}"
        lines = f"reader_handle: the reader\n{doc}{_DOC_OF_NAMES}"
        removed = "" if version or not is_removed else f' @deprecated(26, "Use {kind}V2")'
        define_op(
            name,
            f"{summary}.\n\n{lines}" if version else f"{summary} ({kind}V2 is the newer form).",
            signature=f"{name}[{names}]() -> (reader_handle:{'resource' if version else 'Ref(string)'}){removed}",
            stateful=True,
            shape=scalar_shape if version else _reference_shape,
            kernel=reader_kernel,
            gradient=NO_GRADIENT_OF_READERS if version else NO_GRADIENT,
            examples=(Example([], attrs or {}),),
            failures=(Example([], {**(attrs or {}), **failing}) if failing else _SHARED.format(op=name),),
        )


_reader(
    "TextLineReader",
    "A reader of the lines of text files; a key is the file and the number of the line, from 1",
    "skip_header_lines:int = 0, ",
    "skip_header_lines: the number of lines to leave out at the beginning of each file.",
    failing={"skip_header_lines": -1},
)
_reader("WholeFileReader", "A reader of whole files; a key is the file", is_removed=False)
_reader(
    "FixedLengthRecordReader",
    "A reader of records that all have one size; a key is the file and the number of the record, from 0",
    "header_bytes:int = 0, record_bytes:int, footer_bytes:int = 0, hop_bytes:int = 0, ",
    "header_bytes: the bytes to leave out at the beginning of each file.\nrecord_bytes: the size of a record.\n"
    "footer_bytes: the bytes to leave out at the end; an incomplete last record is left out too.\n"
    "hop_bytes: the bytes from one record to the next; 0 for the size of a record.\nencoding: empty, ZLIB or GZIP.",
    newest=", encoding:string = ''",
    attrs={"record_bytes": 4},
    failing={"record_bytes": 0},
)
_reader(
    "TFRecordReader",
    "A reader of TFRecord files; a key is the file and the place of the record in bytes",
    doc="compression_type: empty, ZLIB or GZIP.",
    after=", compression_type:string = ''",
    failing={"compression_type": b"LZ"},
)
_reader("IdentityReader", "A reader that gives the strings of the queue themselves, as keys and as values")
