"""Ops that fill lookup tables, and look keys up in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.inference import InferenceContext, ShapeHandle
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.table_values import LINE_NUMBER, WHOLE_LINE, Table, columns_of_file
from graphcore.opset.tables.tables import table_behind
from graphcore.registry import KernelFactory, ShapeFn

_KEYS: Final = np.array([b"a", b"b"], object)
_VALUES: Final = np.array([1, 2], np.int64)


def _check_handle(c: InferenceContext) -> None:
    if c.op_def.input_arg[0].is_ref:
        c.with_value(c.dim(c.with_rank(c.input(0), 1), 0), 2)
    else:
        c.with_rank(c.input(0), 0)


def _found_shape(c: InferenceContext, keys: ShapeHandle) -> ShapeHandle:
    """The shape of the values of keys: what precedes the shape of one key, and the shape of one value."""
    data = c.input_handle_shapes_and_types(0)
    if data is None or len(data) != 2:
        return c.unknown_shape()
    one_key, one_value = data[0].shape, data[1].shape
    if not c.rank_known(keys) or not c.rank_known(one_key):
        return c.unknown_shape()
    before = c.rank(keys) - c.rank(one_key)
    if before < 0:
        raise InvalidArgumentError(f"Expected keys of at least rank {c.rank(one_key)}, got {keys}")
    c.merge(c.subshape(keys, before), one_key)
    return c.concatenate(c.subshape(keys, 0, before), one_value)


def _find_shape(c: InferenceContext) -> None:
    _check_handle(c)
    if c.op_def.input_arg[0].is_ref:
        c.with_rank_at_most(c.input(2), 1)
    c.set_output(0, _found_shape(c, c.input(1)))


def _size_shape(c: InferenceContext) -> None:
    _check_handle(c)
    c.set_output(0, c.scalar())


def _export_shape(c: InferenceContext) -> None:
    _check_handle(c)
    data = c.input_handle_shapes_and_types(0)
    count = c.vector(c.unknown_dim())
    for i in range(2):
        c.set_output(i, c.unknown_shape() if data is None or len(data) != 2 else c.concatenate(count, data[i].shape))


def _fill_shape(c: InferenceContext) -> None:
    _check_handle(c)


def _import_shape(c: InferenceContext) -> None:
    _check_handle(c)
    if not c.op_def.input_arg[0].is_ref:
        keys, values = c.with_rank(c.input(1), 1), c.with_rank_at_least(c.input(2), 1)
        c.merge_dim(c.dim(keys, 0), c.dim(values, 0))


def _remove_shape(c: InferenceContext) -> None:
    _check_handle(c)
    c.with_rank_at_least(c.input(1), 1)


def _initialize_shape(c: InferenceContext) -> None:
    _check_handle(c)
    c.merge(c.with_rank(c.input(1), 1), c.input(2))


def _file_shape(c: InferenceContext) -> None:
    _check_handle(c)
    c.with_rank(c.input(1), 0)


def _typed(k: KernelContext, handle: Any) -> Table:
    """The table, after a check of its types against those of the op."""
    table = table_behind(k, handle)
    table_types = (
        [k.attrs.get(name) for name in ("Tin", "Tkey", "Tkeys") if name in k.attrs],
        [k.attrs.get(name) for name in ("Tout", "Tval", "Tvalues") if name in k.attrs],
    )
    for what, types, wanted in zip(("Key", "Value"), table_types, (table.spec.key_dtype, table.spec.value_dtype), strict=True):
        if types and types[0] is not wanted:
            name = types[0].text if isinstance(types[0], DType) else "no type"
            raise invalid(k, f"{what} must be type {wanted.text} but got {name}")
    return table


def _find(k: KernelContext) -> Kernel:
    return lambda handle, keys, default: _typed(k, handle).find(keys, default)


def _size(k: KernelContext) -> Kernel:
    return lambda handle: np.array(table_behind(k, handle).size(), np.int64)


def _export(k: KernelContext) -> Kernel:
    return lambda handle: _typed(k, handle).export()


def _insert(*, replace: bool) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        def insert(handle: Any, keys: Any, values: Any) -> None:
            _typed(k, handle).insert(keys, values, replace=replace)

        return insert

    return kernel


def _remove(k: KernelContext) -> Kernel:
    def remove(handle: Any, keys: Any) -> None:
        _typed(k, handle).remove(keys)

    return remove


def _initialize(k: KernelContext) -> Kernel:
    def initialize(handle: Any, keys: Any, values: Any) -> None:
        if keys.ndim != 1 or keys.shape != values.shape:
            raise invalid(k, f"Keys and values must be vectors of one size, got {list(keys.shape)} and {list(values.shape)}")
        _typed(k, handle).initialize(keys.tolist(), values.tolist())

    return initialize


def _initialize_from_file(k: KernelContext) -> Kernel:
    numbers = {name: required_int(k.attrs, name) for name in ("key_index", "value_index", "vocab_size", "offset")}
    delimiter = k.attr("delimiter")
    if not isinstance(delimiter, bytes) or len(delimiter) != 1:
        raise invalid(k, f"delimiter should be only 1 char, got {delimiter!r}")

    def initialize(handle: Any, filename: Any) -> None:
        if filename.size != 1:
            raise invalid(k, f"filename should be a single string, but got {list(filename.shape)}")
        table, path = table_behind(k, handle), os.fsdecode(filename.item())
        wanted = (numbers["key_index"], table.spec.key_dtype), (numbers["value_index"], table.spec.value_dtype)
        for what, (column, dtype) in zip(("Key", "Value"), wanted, strict=True):
            if column == LINE_NUMBER and dtype.text not in ("int64", "int32"):
                raise invalid(k, f"{what} index for line number requires {what.lower()} dtype of int64, got {dtype.text}")
            if column == WHOLE_LINE and dtype.text != "string":
                raise invalid(k, f"{what} index for whole line requires {what.lower()} dtype of string, got {dtype.text}")
        try:
            keys, values = columns_of_file(path, wanted, numbers["vocab_size"], delimiter, numbers["offset"])
        except NotFoundError as error:
            text = f"{k.op} node '{k.node_name}': {error.message}"
            raise NotFoundError(text, op=k.op, node=k.node_name, source=k.source) from None
        except InvalidArgumentError as error:
            raise invalid(k, error.message) from None
        table.initialize(keys, values)

    return initialize


_HANDLE: Final = [0.0]
_FAILING: Final = """
    handle = {make}[dtype=string, shape=[2]]()
    keys = Const[dtype=string, value=Tensor<type: string shape: [2] values: a b>]()
    one = Const[dtype=string, value=Tensor<type: string shape: [] values: a>]()
    values = Const[dtype=int64, value=Tensor<type: int64 shape: [2] values: 1 2>]()
    default = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()
    it = {op}{attrs}({args})
"""
"""A use that fails: the handle is that of a variable."""


_OF_STRINGS: Final = {"Tin": "string", "Tout": "int64"}


def _failing(name: str, attrs: Mapping[str, Any], args: str) -> str:
    attr_texts = ", ".join(f"{key}={value}" for key, value in attrs.items())
    make = "VarHandleOp" if name.endswith("V2") else "Variable"
    return _FAILING.format(make=make, op=name, attrs=f"[{attr_texts}]" if attr_texts else "", args=", ".join(["handle", *args.split()]))


def _use(
    name: str,
    summary: str,
    attrs: str,
    args: str,
    kernel: KernelFactory,
    shape: ShapeFn,
    inputs: list[Any],
    failing: str = "",
    **parts: Any,
) -> None:
    """Register the two ops for one use: of a handle, and of a reference.

    Args:
        name: the name without `V2`.
        summary: the first sentence of the docs.
        attrs, args: of the signature.
        kernel, shape: of the block.
        inputs: of the example, after the handle.
        failing: the names of the nodes of `_FAILING` that the failing use takes.
        parts: further docs (`doc`), outputs of the signature (`outputs`), attrs of the example (`chosen`) and of the failing use (`types`).
    """
    for version in ("V2", ""):
        doc = f"{summary}{'.' if version else f' ({name}V2 is the newer form).'}\n\n{parts.get('doc', '')}"
        handle = "table_handle:resource" if version else "table_handle:Ref(string)"
        define_op(
            f"{name}{version}",
            doc,
            signature=f"{name}{version}{attrs and f'[{attrs}]'}({handle}{args})" + f" -> ({parts.get('outputs', '')})",
            stateful=bool(version),
            shape=shape,
            kernel=kernel,
            gradient=NO_GRADIENT,
            device_types=("CPU",),
            examples=(Example([_HANDLE, *inputs], parts.get("chosen", {})),),
            failures=(_failing(f"{name}{version}", {**parts.get("chosen", {}), **parts.get("types", {})}, failing),),
        )


_use(
    "LookupTableFind",
    "The values of keys",
    "Tin:type, Tout:type",
    ", keys:Tin, default_value:Tout",
    _find,
    _find_shape,
    [_KEYS, np.int64(-1)],
    "keys default",
    types=_OF_STRINGS,
    outputs="values:Tout",
    doc="keys: any shape\ndefault_value: the value of a key without entry\n",
)
_use("LookupTableSize", "The number of entries", "", "", _size, _size_shape, [], outputs="size:int64")
_use(
    "LookupTableExport",
    "All keys and all values",
    "Tkeys:type, Tvalues:type",
    "",
    _export,
    _export_shape,
    [],
    outputs="keys:Tkeys, values:Tvalues",
    chosen={"Tkeys": "string", "Tvalues": "int64"},
)
_FILLING: Final = ("Tin:type, Tout:type", ", keys:Tin, values:Tout")
_use(
    "LookupTableInsert",
    "Adds entries, in place of those with the same keys",
    *_FILLING,
    _insert(replace=False),
    _fill_shape,
    [_KEYS, _VALUES],
    "keys values",
    types=_OF_STRINGS,
)
_use(
    "LookupTableImport",
    "Replaces all entries",
    *_FILLING,
    _insert(replace=True),
    _import_shape,
    [_KEYS, _VALUES],
    "keys values",
    types=_OF_STRINGS,
)
_use(
    "InitializeTable",
    "Gives a table its entries",
    "Tkey:type, Tval:type",
    ", keys:Tkey, values:Tval",
    _initialize,
    _initialize_shape,
    [_KEYS, _VALUES],
    "keys values",
    types={"Tkey": "string", "Tval": "int64"},
    doc="keys: [n]\nvalues: [n]\n",
)
_use(
    "InitializeTableFromTextFile",
    "Gives a table its entries from the lines of a text file",
    "key_index:int >= -2, value_index:int >= -2, vocab_size:int >= -1 = -1, delimiter:string = '\\t', offset:int = 0",
    ", filename:string",
    _initialize_from_file,
    _file_shape,
    [b"no such file"],
    "one",
    chosen={"key_index": -2, "value_index": -1},
    doc="""filename: a scalar
key_index: the column of the keys; -1 for the number of the line, -2 for the whole line.
value_index: the column of the values, likewise.
vocab_size: the number of lines; -1 for all.
delimiter: the character between columns.
offset: the number of lines to leave out at the beginning.
""",
)
define_op(
    "LookupTableRemoveV2",
    "Removes the entries of keys, as far as there are any.",
    signature="LookupTableRemoveV2[Tin:type](table_handle:resource, keys:Tin) -> ()",
    stateful=True,
    shape=_remove_shape,
    kernel=_remove,
    gradient=NO_GRADIENT,
    device_types=("CPU",),
    examples=(Example([_HANDLE, _KEYS]),),
    failures=(_failing("LookupTableRemoveV2", {"Tin": "string"}, "keys"),),
)
