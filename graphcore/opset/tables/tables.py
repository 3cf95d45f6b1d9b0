"""The lookup tables of a session. See also `table_uses`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.dtypes import DType, string
from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext, ShapeAndType
from graphcore.inference.shape_fns.elementwise import shape_attr
from graphcore.kernel_context import RefVariable
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.table_values import Table, TableSpec
from graphcore.shapes import Shape, as_shape
from graphcore.traits import declares_traits

_NAMES: Final = "container:string = '', shared_name:string = '', use_node_name_sharing:bool = false, key_dtype:type, value_dtype:type"
_PAIR: Final = {"key_dtype": "string", "value_dtype": "int64"}
_FAILING: Final = """
    key = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 7>]()
    other = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 8>]()
    first = FIFOQueueV2[component_types={{float}}, shared_name="shared"]()
    it = {op}[key_dtype=int64, value_dtype=int64, shared_name="shared"]({args}) @ first
"""
"""A use that fails: the shared name is that of another resource."""
_DOC_OF_NAMES: Final = """
        table_handle: the table
        container: a namespace for `shared_name`.
        shared_name: nodes with the same shared name share a table; empty for a private one.
        use_node_name_sharing: take the node's name for an empty `shared_name`.
        key_dtype: the type of the keys.
        value_dtype: the type of the values."""


class TableReference(RefVariable):
    """The reference to a table, for the older forms of the ops."""

    __slots__ = ("table",)

    def __init__(self, table: Table, container: str) -> None:
        super().__init__(table.name, string, Shape([2]), None, table.op)
        self.table = table
        self.assign(np.array([(container or "localhost").encode(), table.name.encode()], np.object_))


def table_behind(k: KernelContext, handle: Any) -> Table:
    """The table of a handle or reference.

    Raises:
        InvalidArgumentError: it is none of a table.
    """
    table = handle.table if isinstance(handle, TableReference) else handle
    if not isinstance(table, Table):
        raise invalid(k, f"required the handle of a lookup table, got {type(handle).__name__}")
    return table


def _type(k: KernelContext | InferenceContext, attr: str) -> DType:
    value = k.attr(attr)
    if not isinstance(value, DType):
        raise InvalidArgumentError(f"attr '{attr}' must be a type, got {value!r}")
    return value


def _value_shape(k: KernelContext) -> tuple[int, ...]:
    if "value_shape" not in k.attrs:
        return ()
    shape = as_shape(k.attr("value_shape"))
    if not shape.is_fully_defined:
        raise invalid(k, f"value_shape must be fully defined, got {shape}")
    return tuple([size for size in shape.dims or () if size is not None])


@declares_traits(device_types=("CPU",))
def table_kernel(k: KernelContext) -> Kernel:
    """The kernel that finds or makes a table: shared by name, otherwise the node's own."""
    kind, container, shared_name = k.op.removesuffix("V2"), attr_text(k.attr("container")), attr_text(k.attr("shared_name"))
    spec = TableSpec(kind, _type(k, "key_dtype"), _type(k, "value_dtype"), _value_shape(k))
    node, op_name, resources = k.node_name, k.op, k.resources
    name = shared_name or (node if k.attr("use_node_name_sharing") else "")
    key = name or (resources, node)
    as_reference = k.output_types[0].is_ref

    def find(*reserved: Any) -> Any:
        wanted = spec
        if reserved:
            keys = tuple(tuple(value.reshape(-1).tolist()) if value.ndim else value.item() for value in reserved)
            wanted = TableSpec(spec.kind, spec.key_dtype, spec.value_dtype, spec.value_shape, reserved[0].shape, keys)
        shared = resources.shared.find(
            container, key, node, lambda number: Table(name or f"_{number}_{node}", wanted, op_name), lambda table: table.spec == wanted
        )
        if not isinstance(shared, Table) or shared.spec != wanted:
            raise invalid(k, f"'{name}' is shared, and is {shared!r}, not a {kind} of {spec.key_dtype.text} to {spec.value_dtype.text}")
        return TableReference(shared, container) if as_reference else shared

    return find


def _handle_shape(c: InferenceContext) -> None:
    c.set_output(0, c.scalar())
    value = shape_attr(c, "value_shape") if c.op_def.find_attr("value_shape") else c.scalar()
    key = c.with_rank_at_most(c.input(0), 1) if c.num_inputs else c.scalar()
    c.set_output_handle_shapes_and_types(0, [ShapeAndType(key, _type(c, "key_dtype")), ShapeAndType(value, _type(c, "value_dtype"))])


def _reference_shape(c: InferenceContext) -> None:
    c.set_output(0, c.vector(2))


def _table(name: str, summary: str, attrs: str = "", args: str = "", older_args: str | None = None, doc: str = "") -> None:
    """Register the two ops that make a kind of table: with a handle, and with a reference."""
    for version in ("V2", ""):
        inputs = args if version or older_args is None else older_args
        output = "table_handle:resource" if version else "table_handle:Ref(string)"
        reserved = [np.array(-1 - i, np.int64) for i in range(inputs.count(":"))]
        define_op(
            f"{name}{version}",
            f"{summary}{'.' if version else f' ({name}V2 is the newer form).'}\n{doc if version else ''}{_DOC_OF_NAMES}",
            signature=f"{name}{version}[{_NAMES}{attrs}]({inputs}) -> ({output})",
            stateful=True,
            holds_parameters=name != "HashTable",
            shape=_handle_shape if version else _reference_shape,
            kernel=table_kernel,
            gradient=NO_GRADIENT,
            examples=(Example(reserved, {**_PAIR, "key_dtype": "int64"} if reserved else _PAIR),),
            failures=(_FAILING.format(op=f"{name}{version}", args=", ".join(["key", "other"][: len(reserved)])),),
        )


_VALUE_SHAPE: Final = ", value_shape:shape = []"
_table("HashTable", "A table that is given its entries once")
_table("MutableHashTable", "A table with entries that can change")
_table("MutableHashTableOfTensors", "A table with tensors as entries that can change", _VALUE_SHAPE)
_table(
    "MutableDenseHashTable",
    "A table with tensors as entries that can change, in which two keys are reserved",
    f"{_VALUE_SHAPE}, initial_num_buckets:int = 131072, max_load_factor:float = 0.8",
    "empty_key:key_dtype, deleted_key:key_dtype",
    "empty_key:key_dtype",
    """
        empty_key: a key that no entry has""",
)
