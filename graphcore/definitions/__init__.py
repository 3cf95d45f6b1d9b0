"""Definitions of ops, nodes, functions and graphs: values, their builders and validators."""

from graphcore.definitions.types import (
    PRODUCER_VERSION,
    ArgDef,
    AttrDef,
    FunctionDef,
    FunctionDefLibrary,
    GradientDef,
    GraphDef,
    NodeDef,
    OpDef,
    OpDeprecation,
    VersionDef,
)

__all__ = [
    "PRODUCER_VERSION",
    "ArgDef",
    "AttrDef",
    "FunctionDef",
    "FunctionDefLibrary",
    "GradientDef",
    "GraphDef",
    "NodeDef",
    "OpDef",
    "OpDeprecation",
    "VersionDef",
]
