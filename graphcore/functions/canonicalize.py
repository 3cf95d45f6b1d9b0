"""The canonical name of an instantiation: equal for equal attrs and options, whatever their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from graphcore.attrs import AttrValue, Func, TensorValue
from graphcore.definitions.value_text import escape_bytes, summarize_attr_value
from graphcore.dtypes import DType
from graphcore.functions.placeholders import given_attr
from graphcore.support.fingerprint64 import fingerprint64
from graphcore.text.values import attr_value_text

EXECUTOR_ATTR: Final = "_executor"
CALL_EXECUTOR_ATTR: Final = "executor_type"
"""The attr by which PartitionedCall and StatefulPartitionedCall name an executor."""
DEFAULT_EXECUTORS: Final = frozenset({"", "DEFAULT"})
"""The names of the executor that runs a function unless another is named."""


class InstantiateOptions(msgspec.Struct, frozen=True):
    """Options of an instantiation.

    Args:
        target: the device or task that runs it.
        state_handle: instantiations with different handles do not share kernels.
        executor_type: the type of the executor that runs it; that of the attr `_executor` by default.
        lib_def: a library for this instantiation only; compared by identity.
        input_devices, output_devices: the devices of arguments and returns.
    """

    target: str = ""
    state_handle: str = ""
    executor_type: str = ""
    lib_def: object | None = None
    input_devices: tuple[str, ...] = ()
    output_devices: tuple[str, ...] = ()


def canonicalize(name: str, attrs: Mapping[str, object], options: InstantiateOptions | None = None) -> str:
    """`Name[k=v,k=v]`: the entries sorted, strings replaced by their fingerprint.

    Args:
        name: the function.
        attrs: its attrs.
        options: further properties that distinguish instantiations.
    """
    chosen = options or InstantiateOptions()
    values = {key: given_attr(value) for key, value in attrs.items()}
    executor = named_executor(values, chosen)
    values.pop(EXECUTOR_ATTR, None)
    entries = [(key, -1, _hashed_text(value)) for key, value in values.items()]
    entries += [("_input_dev", index, _escaped(device)) for index, device in enumerate(chosen.input_devices)]
    entries += [("_output_dev", index, _escaped(device)) for index, device in enumerate(chosen.output_devices)]
    extra = {
        "_target": _escaped(chosen.target),
        "_lib_def": "" if chosen.lib_def is None else str(id(chosen.lib_def)),
        "_state_handle": chosen.state_handle,
        EXECUTOR_ATTR: executor,
    }
    entries += [(key, -1, text) for key, text in extra.items() if text]
    texts = [f"{key}={text}" if index < 0 else f"{key}{index}={text}" for key, index, text in sorted(entries)]
    return f"{name}[{','.join(texts)}]"


def named_executor(attrs: Mapping[str, object], options: InstantiateOptions | None = None) -> str:
    """The executor type of an instantiation: from its options, else from its attr `_executor`, else ""."""
    if options is not None and options.executor_type:
        return options.executor_type
    value = attrs.get(EXECUTOR_ATTR)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


def _hashed_text(value: AttrValue) -> str:
    """Print a value as functions do, with strings hashed and nothing truncated."""
    if isinstance(value, bytes):
        return str(fingerprint64(value))
    if isinstance(value, Func):
        if not value.attr:
            return value.name
        return f"{value.name}[{', '.join(sorted([f'{key}={_hashed_text(item)}' for key, item in value.attr.items()]))}]"
    if isinstance(value, DType | TensorValue) or (isinstance(value, tuple) and any(isinstance(item, _CUT_IN_SUMMARIES) for item in value)):
        return attr_value_text(value)
    return summarize_attr_value(value)


_CUT_IN_SUMMARIES: Final = (DType, bytes, TensorValue, Func)


def _escaped(text: str) -> str:
    return escape_bytes(text.encode(errors="surrogatepass"))
