"""Random values for the round trips of the text form."""

from __future__ import annotations

import math
from ctypes import c_float
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

import graphcore.dtypes as dt
from graphcore.attrs import NO_VALUE, Func, Placeholder, TensorValue, attr_kind
from graphcore.definitions import ArgDef, AttrDef, FunctionDef, NodeDef, OpDef, OpDeprecation
from graphcore.shapes import Shape

NUMBERS: Final = [dtype for dtype in dt.ALL_TYPES if dtype.as_numpy is not None and dtype is not dt.string and dtype.size]
SPEC_TYPES: Final = [dtype for dtype in dt.ALL_TYPES if "_" not in dtype.text]
"""The types that an attr spec can name: its words have no underscore."""
names = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_./\-]{0,6}", fullmatch=True),
    st.sampled_from(["return", "float", "device", "x", ""]),
    st.text(max_size=4),
)
words = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
floats = st.floats(width=32).map(lambda value: math.nan if math.isnan(value) else c_float(value).value)
integers = st.integers(-(2**63), 2**63 - 1)
dtypes = st.sampled_from([*dt.ALL_TYPES, dt.float32.ref])
shapes = st.one_of(st.just(Shape(None)), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=3).map(Shape))


@st.composite
def tensors(draw: st.DrawFn) -> TensorValue:
    """A small tensor of any type, with any bits."""
    sizes = draw(st.lists(st.integers(0, 3), max_size=3))
    count = math.prod(sizes)
    dtype = draw(st.sampled_from([*NUMBERS, dt.string]))
    if dtype is dt.string:
        array = np.empty(count, dtype=object)
        array[:] = draw(st.lists(st.binary(max_size=5) | st.text(max_size=3).map(str.encode), min_size=count, max_size=count))
        return TensorValue(array.reshape(sizes), dtype)
    assert dtype.as_numpy is not None
    values = np.frombuffer(draw(st.binary(min_size=count * dtype.size, max_size=count * dtype.size)), dtype=dtype.as_numpy)
    if dtype.text in {"bool", "int4", "uint4", "int2", "uint2", "float4_e2m1fn"}:
        values = values.view(np.uint8).astype(np.int64).__mod__(2).astype(dtype.as_numpy)
    if dtype.is_floating or dtype.is_complex:
        values = np.where(np.isnan(values), np.zeros_like(values), values)
    return TensorValue(values.reshape(sizes), dtype)


def _list_of(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=4).map(tuple)


scalars: Final = st.one_of(
    integers, floats, st.booleans(), st.binary(max_size=6), dtypes, shapes, tensors(), names.map(Placeholder), st.just(NO_VALUE)
)
lists: Final = st.one_of(
    *[_list_of(items) for items in (integers, floats, st.booleans(), st.binary(max_size=90), dtypes, shapes, tensors())]
)


def _funcs(attrs: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    one = st.builds(Func, names, st.dictionaries(names, attrs, max_size=2))
    return st.one_of(one, _list_of(one))


def _is_clear(value: object) -> bool:
    """False for the shapes that look like lists, which only an OpDef resolves."""
    if isinstance(value, Shape):
        return value.dims is None or None in value.dims or len(value.dims) > 1
    if isinstance(value, Func):
        return all(map(_is_clear, value.attr.values()))
    return not isinstance(value, tuple) or all(isinstance(item, Shape) or _is_clear(item) for item in value)


simple_values: Final = st.one_of(scalars, lists)
values: Final = st.one_of(simple_values, st.recursive(simple_values.filter(_is_clear), _funcs, max_leaves=4))
clear_values: Final = values.filter(_is_clear)


@st.composite
def attr_defs(draw: st.DrawFn, name: str) -> AttrDef:
    """An attr of any kind, with consistent allowed values, minimum and default."""
    kind = draw(
        st.sampled_from(["int", "float", "bool", "string", "type", "shape", "tensor", "func", "list(int)", "list(type)", "list(shape)"])
    )
    fields: dict[str, Any] = {}
    if kind in {"int", "list(int)", "list(type)"} and draw(st.booleans()):
        fields = {"has_minimum": True, "minimum": draw(st.integers(-(2**63), 2**63 - 1))}
    if kind in {"type", "list(type)"} and draw(st.booleans()):
        fields["allowed_values"] = tuple(draw(st.lists(st.sampled_from(SPEC_TYPES), min_size=1, max_size=3, unique=True)))
    if kind == "string" and draw(st.booleans()):
        fields["allowed_values"] = tuple(draw(st.lists(st.binary(max_size=4), min_size=1, max_size=3)))
    if draw(st.booleans()):
        fields["default_value"] = draw(_default_of(kind))
    return AttrDef(name=name, type=kind, **fields)


def _default_of(kind: str) -> st.SearchStrategy[Any]:
    items = {
        "int": integers,
        "float": floats,
        "bool": st.booleans(),
        "string": st.binary(max_size=5),
        "type": st.sampled_from(dt.ALL_TYPES),
        "shape": shapes,
        "tensor": tensors(),
        "func": st.builds(Func, names, st.dictionaries(names, clear_values, max_size=2)),
    }
    return _list_of(items[kind[5:-1]]) if kind.startswith("list(") else items[kind]


@st.composite
def signatures(draw: st.DrawFn, name: st.SearchStrategy[str] = names) -> OpDef:
    """A signature with arguments that refer to its attrs in every way."""
    taken = draw(st.lists(words.filter(_names_no_type), min_size=0, max_size=8, unique=True))
    count = draw(st.integers(0, len(taken)))
    attrs = [draw(attr_defs(attr_name)) for attr_name in taken[:count]]
    args = []
    for arg_name in taken[count:]:
        attr = draw(st.sampled_from(attrs)) if attrs else None
        fields: dict[str, Any] = {"type": draw(st.sampled_from(dt.ALL_TYPES))}
        if attr is not None and attr.type == "type":
            fields = {"type_attr": attr.name}
        if attr is not None and attr.type == "list(type)":
            fields = {"type_list_attr": attr.name}
        if attr is not None and attr.type == "int":
            fields["number_attr"] = attr.name
        args.append(ArgDef(name=arg_name, is_ref=draw(st.booleans()), **fields))
    lengths = {arg.number_attr or arg.type_list_attr for arg in args}
    attrs = [_with_minimum(attr) if attr.name in lengths else attr for attr in attrs]
    split = draw(st.integers(0, len(args)))
    deprecation = draw(st.none() | st.builds(OpDeprecation, st.integers(0, 99), st.text(max_size=5)))
    flags: dict[str, Any] = {
        flag: draw(st.booleans()) for flag in ("is_commutative", "is_aggregate", "is_stateful", "allows_uninitialized_input")
    }
    return OpDef(
        name=draw(name), input_arg=tuple(args[:split]), output_arg=tuple(args[split:]), attr=tuple(attrs), deprecation=deprecation, **flags
    )


def _names_no_type(name: str) -> bool:
    return dt.dtype_by_name(name) is None


def _with_minimum(attr: AttrDef) -> AttrDef:
    if attr.has_minimum:
        return attr
    fields = {field: getattr(attr, field) for field in attr.__struct_fields__}
    return AttrDef(**{**fields, "has_minimum": True, "minimum": 1})


nodes: Final = st.builds(
    lambda name, op, data, control, device, attr, originals: NodeDef(
        name, op, (*[item for item in data if not item.startswith("^")], *[f"^{item}" for item in control]), device, attr, originals
    ),
    names,
    st.from_regex(r"Op[0-9]", fullmatch=True) | names,
    st.lists(names, max_size=3),
    st.lists(names, max_size=2),
    st.sampled_from(["", "/device:CPU:0", "/cpu:1", "/job:w/task:1/device:GPU:*", "nonsense"]) | st.text(max_size=4),
    st.dictionaries(names, values, max_size=3),
    st.just(()),
)


@st.composite
def functions(draw: st.DrawFn) -> FunctionDef:
    """A function with all features, valid or not."""
    signature = draw(signatures())
    control_ret = draw(st.dictionaries(names, names, max_size=2))
    control_output = tuple(control_ret) if draw(st.booleans()) else tuple(draw(st.lists(names, max_size=2)))
    fields = {field: getattr(signature, field) for field in signature.__struct_fields__}
    return FunctionDef(
        signature=OpDef(**{**fields, "control_output": control_output}),
        node_def=tuple(draw(st.lists(nodes, max_size=3))),
        ret=draw(st.dictionaries(names, names, max_size=2)),
        control_ret=control_ret,
        attr=draw(st.dictionaries(names, clear_values, max_size=2)),
        arg_attr={
            index: draw(st.dictionaries(names, clear_values, max_size=2)) for index in range(draw(st.integers(0, len(signature.input_arg))))
        },
    )


def ops_of(function: FunctionDef) -> dict[str, OpDef]:
    """OpDefs that give the kind of each attr of the body, if the body's nodes agree."""
    kinds: dict[str, dict[str, set[str]]] = {}
    for node in function.node_def:
        for name, value in node.attr.items():
            kinds.setdefault(node.op, {}).setdefault(name, set()).add(attr_kind(value))
    return {
        op: OpDef(name=op, attr=tuple([AttrDef(name=name, type=next(iter(found))) for name, found in attrs.items()]))
        for op, attrs in kinds.items()
        if all(len(found) == 1 for found in attrs.values())
    }
