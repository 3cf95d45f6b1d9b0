"""Nodes, functions and graphs between values and messages."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from graphcore.attrs import AttrValue
from graphcore.definitions.types import FunctionDef, FunctionDefLibrary, GradientDef, GraphDef, NodeDef, OpDef, VersionDef
from graphcore.definitions.wire.ops import read_op_def, write_op_def
from graphcore.definitions.wire.rest import has_unknown_fields, read_each, rest_of, without
from graphcore.definitions.wire.values import read_attrs, write_attrs
from graphcore.dtypes import DType

_NODE_FIELDS: Final = frozenset({"name", "op", "input", "device", "attr", "experimental_debug_info"})
_FUNCTION_FIELDS: Final = frozenset({"signature", "node_def", "ret", "control_ret", "attr", "arg_attr"})
_LIBRARY_FIELDS: Final = frozenset({"function", "gradient"})
_SHARED: Final = frozenset({bool, int, bytes, DType})
"""The types of values of attrs that are shared: of equal ones none is different from another, as -0.0 is from 0.0."""
_Shared: TypeAlias = "dict[tuple[object, ...], dict[str, AttrValue]]"
_NO_NODE: Final = NodeDef("", "")
_NO_SIGNATURE: Final = OpDef(name="")
_NO_LIBRARY: Final = FunctionDefLibrary()
_NO_VERSIONS: Final = VersionDef()


def read_node_def(message: Any, has_unknown: bool = False, shared: _Shared | None = None) -> NodeDef:
    """The NodeDef in a NodeDef message.

    Args:
        message: the message.
        has_unknown: True if unknown fields may be present; they are kept.
        shared: the attrs of other nodes, of which equal ones are taken; None for attrs that belong to this node alone.

    Raises:
        InvalidArgumentError: a shape in an attr is invalid.
    """
    name = message.name
    if not name and not message.ByteSize():  # as a hostile file has millions of them
        return _NO_NODE
    names: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    rest = b""
    if message.HasField("experimental_debug_info"):
        names = tuple(message.experimental_debug_info.original_node_names)
        functions = tuple(message.experimental_debug_info.original_func_names)
    if has_unknown or message.HasField("experimental_type"):
        rest = rest_of(message, _NODE_FIELDS, has_unknown=has_unknown)
    attr = read_attrs(message.attr, has_unknown)
    if shared is not None:
        attr = _shared(attr, shared)
    return NodeDef(name, message.op, tuple(message.input[:]), message.device, attr, names, functions, rest)


def _shared(attr: dict[str, AttrValue], shared: _Shared) -> dict[str, AttrValue]:
    """Equal attrs among the shared ones, or these, which become one of them."""
    values = tuple(attr.values())
    kinds = tuple(map(type, values))  # 1 is no True
    return shared.setdefault((tuple(attr), kinds, values), attr) if _SHARED.issuperset(kinds) else attr


def write_node_def(node_def: NodeDef, message: Any) -> None:
    """Set a NodeDef message."""
    if node_def.other_fields:
        message.MergeFromString(node_def.other_fields)
    message.name = node_def.name
    message.op = node_def.op
    message.input.extend(node_def.input)
    message.device = node_def.device
    write_attrs(node_def.attr, message.attr)
    if node_def.original_node_names or node_def.original_func_names:
        message.experimental_debug_info.original_node_names.extend(node_def.original_node_names)
        message.experimental_debug_info.original_func_names.extend(node_def.original_func_names)


def read_function_def(message: Any, *, has_unknown: bool = False) -> FunctionDef:
    """The FunctionDef in a FunctionDef message.

    Raises:
        InvalidArgumentError: a shape in an attr is invalid.
    """
    set_fields = {field.name: value for field, value in message.ListFields()}
    complete = set_fields.keys() <= _FUNCTION_FIELDS and not (has_unknown and has_unknown_fields(message))
    signature = read_op_def(set_fields["signature"], has_unknown=has_unknown) if "signature" in set_fields else _NO_SIGNATURE
    nodes, arg_attr = set_fields.get("node_def", ()), set_fields.get("arg_attr", {})
    return FunctionDef(
        signature=signature,
        node_def=tuple([read_node_def(node, has_unknown) for node in nodes]),
        ret=_in_order(set_fields.get("ret", {}), [arg.name for arg in signature.output_arg]),
        control_ret=_in_order(set_fields.get("control_ret", {}), signature.control_output),
        attr=read_attrs(set_fields.get("attr", {}), has_unknown),
        arg_attr={index: read_attrs(attrs.attr, has_unknown) for index, attrs in sorted(arg_attr.items())},
        other_fields=b"" if complete else without(message, _FUNCTION_FIELDS),
    )


def _in_order(entries: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The entries of a map, in the order of `names` and then of the alphabet.

    Protobuf gives them in another order in each process.
    """
    places = {name: place for place, name in enumerate(names)}
    return dict(sorted(entries.items(), key=lambda entry: (places.get(entry[0], len(places)), entry[0])))


def write_function_def(function: FunctionDef, message: Any) -> None:
    """Set a FunctionDef message."""
    message.MergeFromString(function.other_fields)
    message.signature.SetInParent()
    write_op_def(function.signature, message.signature)
    for node_def in function.node_def:
        write_node_def(node_def, message.node_def.add())
    message.ret.update(function.ret)
    message.control_ret.update(function.control_ret)
    write_attrs(function.attr, message.attr)
    for index, attrs in function.arg_attr.items():
        message.arg_attr[index].SetInParent()
        write_attrs(attrs, message.arg_attr[index].attr)


def _read_library(message: Any, has_unknown: bool) -> FunctionDefLibrary:
    return FunctionDefLibrary(
        function=tuple(read_each(message.function, functools.partial(read_function_def, has_unknown=has_unknown))),
        gradient=tuple([GradientDef(entry.function_name, entry.gradient_func) for entry in message.gradient]),
        other_fields=rest_of(message, _LIBRARY_FIELDS, has_unknown=has_unknown),
    )


def _write_library(library: FunctionDefLibrary, message: Any) -> None:
    message.MergeFromString(library.other_fields)
    for function in library.function:
        write_function_def(function, message.function.add())
    for entry in library.gradient:
        message.gradient.add(function_name=entry.function_name, gradient_func=entry.gradient_func)


def _read_versions(message: Any) -> VersionDef:
    versions = message.versions
    if not message.HasField("versions") and message.version:
        # Very old graphs have only this number.
        return VersionDef(producer=message.version)
    return VersionDef(versions.producer, versions.min_consumer, tuple(versions.bad_consumers))


def read_graph_def(message: Any, *, has_unknown: bool = False, shares_attrs: bool = False) -> GraphDef:
    """The GraphDef in a GraphDef message.

    Args:
        message: the message.
        has_unknown: True if unknown fields may be present; they are kept.
        shares_attrs: nodes with equal attrs have one dict of them, which must not be changed.

    Raises:
        InvalidArgumentError: a shape in an attr is invalid.
    """
    library = _read_library(message.library, has_unknown)
    versions = _read_versions(message)
    # An empty library or version would not be written back, so its presence is kept with the other fields.
    empty = {"library"} if library == _NO_LIBRARY else set()
    empty |= {"versions"} if versions == _NO_VERSIONS else set()
    shared: _Shared | None = {} if shares_attrs else None
    return GraphDef(
        node=tuple([read_node_def(node, has_unknown, shared) for node in message.node]),
        versions=versions,
        library=library,
        other_fields=rest_of(message, frozenset({"node", "library", "versions"} - empty), has_unknown=has_unknown),
    )


def write_graph_def(graph_def: GraphDef, message: Any) -> None:
    """Set a GraphDef message."""
    message.MergeFromString(graph_def.other_fields)
    for node_def in graph_def.node:
        write_node_def(node_def, message.node.add())
    if graph_def.versions != _NO_VERSIONS and graph_def.versions != VersionDef(producer=message.version):
        versions = message.versions
        versions.SetInParent()
        versions.producer = graph_def.versions.producer
        versions.min_consumer = graph_def.versions.min_consumer
        versions.bad_consumers.extend(graph_def.versions.bad_consumers)
    if graph_def.library != _NO_LIBRARY:
        message.library.SetInParent()
        _write_library(graph_def.library, message.library)
