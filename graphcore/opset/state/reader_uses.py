"""Ops that use readers: they read records of files, and wait for files if necessary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.dtypes import string
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import no_outputs
from graphcore.kernel_context import Pending
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import invalid, on_host, one_int, unimplemented
from graphcore.opset.numerics.dataset_values import as_array
from graphcore.opset.numerics.queue_values import Queue
from graphcore.opset.numerics.reader_values import Read, Reader, ReaderState, Record
from graphcore.opset.state.queue_uses import queue_behind
from graphcore.opset.state.readers import NO_GRADIENT_OF_READERS, reader_behind
from graphcore.registry import KernelFactory, ShapeFn

_READER: Final = [0.0]
_FILES: Final = np.array([b"a", b"b", b"c"], object)
_FAILING: Final = f"""
    handle = {{make}}[dtype=string, shape=[2]]()
    n = {scalar("int64", 2)}
    state = Const[dtype=string, value=Tensor<type: string shape: [] values: a>]()
    it = {{op}}({{args}})
"""
"""A use that fails: the handle is that of a variable."""


# ---- kernels ---------------------------------------------------------------------------------------------------------


def _files(k: KernelContext, handle: Any) -> Queue:
    queue = queue_behind(k, handle)
    types = queue.spec.dtypes
    if types != (string,):
        raise invalid(k, f"Expected a queue with a single string component, got one of {', '.join([dtype.text for dtype in types])}")
    return queue


def _one(records: Sequence[Record]) -> tuple[Any, Any]:
    ((key, value),) = records
    return as_array(key, string), as_array(value, string)


def _columns(records: Sequence[Record]) -> tuple[Any, Any]:
    columns = np.empty((2, len(records)), object)
    for i, record in enumerate(records):
        columns[:, i] = record
    return columns[0].copy(), columns[1].copy()


def _read(k: KernelContext) -> Kernel:
    def read(reader: Any, queue: Any) -> Pending:
        return Read(reader_behind(k, reader), _files(k, queue), 1, _one)

    return read


def _read_up_to(k: KernelContext) -> Kernel:
    def read(reader: Any, queue: Any, count: Any) -> Pending:
        most = one_int(k, count)
        if most < 0:
            raise invalid(k, f"num_records must be >= 0, got {most}")
        return Read(reader_behind(k, reader), _files(k, queue), most, _columns)

    return read


def _records_produced(k: KernelContext) -> Kernel:
    return lambda reader: np.int64(reader_behind(k, reader).state.produced)


def _units_completed(k: KernelContext) -> Kernel:
    return lambda reader: np.int64(reader_behind(k, reader).state.finished)


def _reset(k: KernelContext) -> Kernel:
    def reset(reader: Any) -> None:
        reader_behind(k, reader).restore(ReaderState())

    return reset


def _message() -> Any:
    """A message for the state of a reader."""
    from graphcore.definitions.wire.schema import ReaderBaseState  # noqa: PLC0415 - it loads protobuf, which most sessions never need

    return ReaderBaseState()


def _serializable(k: KernelContext, handle: Any) -> Reader:
    """The reader, whose place is between two files.

    Raises:
        UnimplementedError: it is one that may be within a file.
    """
    reader = reader_behind(k, handle)
    if not reader.spec.is_one_record_a_file:
        raise unimplemented(k, f"the state of a {reader.spec.kind}; those of IdentityReader and WholeFileReader can be saved")
    return reader


def _serialize(k: KernelContext) -> Kernel:
    def serialize(handle: Any) -> Any:
        state, message = _serializable(k, handle).state, _message()
        message.work_started, message.work_finished, message.num_records_produced = state.started, state.finished, state.produced
        message.current_work = state.file
        return as_array(message.SerializeToString(), string)

    return serialize


def _restore(k: KernelContext) -> Kernel:
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - most sessions never need it

    def restore(handle: Any, state: Any) -> None:
        reader, message = _serializable(k, handle), _message()
        try:
            message.ParseFromString(on_host(state).item())
        except DecodeError:
            raise invalid(k, f"Could not parse state for {reader.name}") from None
        started, finished, produced = message.work_started, message.work_finished, message.num_records_produced
        if min(started, finished, produced) < 0:
            raise invalid(k, f"Unexpected negative value in the state for {reader.name}")
        if started != finished:
            raise invalid(k, f"Inconsistent work started vs. finished in the state for {reader.name}: {started} vs. {finished}")
        reader.restore(ReaderState(started, finished, produced, message.current_work))

    return restore


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _check_handles(c: InferenceContext, count: int) -> None:
    """Check that the first `count` inputs are handles, or references of two strings."""
    for i in range(count):
        if c.op_def.input_arg[i].is_ref:
            c.with_value(c.dim(c.with_rank(c.input(i), 1), 0), 2)
        else:
            c.with_rank(c.input(i), 0)


def _scalars(handles: int) -> ShapeFn:
    def shape(c: InferenceContext) -> None:
        _check_handles(c, handles)
        for i in range(c.num_outputs):
            c.set_output(i, c.scalar())

    return shape


def _up_to_shape(c: InferenceContext) -> None:
    for i in range(2):
        c.with_rank(c.input(i), 1 if c.op_def.input_arg[i].is_ref else 0)
    c.with_rank(c.input(2), 0)
    for i in range(2):
        c.set_output(i, c.vector(c.unknown_dim()))


def _restore_shape(c: InferenceContext) -> None:
    _check_handles(c, 1)
    c.with_rank(c.input(1), 0)
    no_outputs(c)


# ---- ops -------------------------------------------------------------------------------------------------------------


def _use(
    name: str,
    summary: str,
    kernel: KernelFactory,
    shape: ShapeFn,
    outputs: str,
    more: str = "",
    more_inputs: Sequence[Any] = (),
    args: str = "handle",
    doc: str = "",
) -> None:
    """Register the two ops for one use: of a handle, and of a reference.

    Args:
        name: the name without `V2`.
        summary: the first sentence of the docs.
        kernel, shape: of the block.
        outputs: of the signature.
        more: the further inputs of the signature; `HANDLE` stands for the type of a handle.
        more_inputs: their values in the example.
        args: the inputs in the use that fails.
        doc: the docs of the further inputs.
    """
    for version in ("V2", ""):
        inputs = f"reader_handle:HANDLE{more}".replace("HANDLE", "resource" if version else "Ref(string)")
        define_op(
            f"{name}{version}",
            f"{summary}{'.' if version else f' ({name}V2 is the newer form).'}\n\nreader_handle: the reader\n{doc}",
            signature=f"{name}{version}({inputs}) -> ({outputs})",
            stateful=bool(version),
            waits="HANDLE" in more,
            shape=shape,
            kernel=kernel,
            device_types=("CPU",),
            gradient=NO_GRADIENT_OF_READERS if version else NO_GRADIENT,
            examples=(Example([_READER, *more_inputs]),),
            failures=(_FAILING.format(make="VarHandleOp" if version else "Variable", op=f"{name}{version}", args=args),),
        )


_QUEUE: Final = ", queue_handle:HANDLE"
_use(
    "ReaderRead",
    "Reads the next record; a file that is at its end is followed by the next of the queue",
    _read,
    _scalars(2),
    "key:string, value:string",
    _QUEUE,
    [_FILES],
    "handle, handle",
    "queue_handle: a queue of the names of files\nkey: the file, and the place in it\nvalue: the record\n",
)
_use(
    "ReaderReadUpTo",
    "Reads up to `num_records` records; fewer at the end of a file",
    _read_up_to,
    _up_to_shape,
    "keys:string, values:string",
    f"{_QUEUE}, num_records:int64",
    [_FILES, np.array(2, np.int64)],
    "handle, handle, n",
    "queue_handle: a queue of the names of files\nnum_records: a scalar\nkeys: [n]\nvalues: [n]\n",
)
_use("ReaderNumRecordsProduced", "The number of records read so far", _records_produced, _scalars(1), "records_produced:int64")
_use("ReaderNumWorkUnitsCompleted", "The number of files read to their ends", _units_completed, _scalars(1), "units_completed:int64")
_use("ReaderReset", "Sets a reader back to its initial state", _reset, _scalars(1), "")
_use("ReaderSerializeState", "The state of a reader of whole files, or of an IdentityReader", _serialize, _scalars(1), "state:string")
_use(
    "ReaderRestoreState",
    "Sets the state of a reader of whole files, or of an IdentityReader",
    _restore,
    _restore_shape,
    "",
    ", state:string",
    [np.array(b"\x08\x01\x10\x01", object)],
    "handle, state",
    "state: what ReaderSerializeState gave\n",
)
