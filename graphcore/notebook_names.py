"""The names that complete after `gc.`: those that users of notebooks write. All others are found in their modules, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_SHOWN: Final = """
AdamOptimizer CostModel DType Device DeviceSet DeviceSpec Function FunctionDef FunctionDefHelper FunctionLibraryDefinition FunctionLibraryRuntime
Graph GraphDef GraphError GraphRunner GradientDescentOptimizer InferenceContext MomentumOptimizer Node NodeDef NodeDefBuilder NodeBuilder OpDef OpDefBuilder Optimizer Placer RunMetadata
RunOptions Session SessionOptions Shape ShapeRefiner Tensor Variable GraphKeys DirectSession bfloat16 bool_ complex64 complex128 double
float16 float32 float64 half int8 int16 int32 int64 qint8 qint16 qint32 quint8 quint16 resource string uint8 uint16 uint32 uint64
variant __version__ package_version debug_string eliminate_common_subexpressions errors explain_placement fold_constants function_defs_equal
get_default_graph get_default_session gpu_devices instantiate_function lower_functional_ops op_registry optimize_graph parse_function
partition_graph predict_scaling predict_step prediction_error propose_placement register_device_type register_kernel register_op
register_op_gradient register_op_no_gradient relu reset_default_graph restore_variables save_variables simulated_devices symbolic_gradient what_if
"""
SHOWN: Final = frozenset(_SHOWN.split())
"""Names of the top level that are neither TensorFlow 1's nor of `graphcore.api`."""
RESULTS: Final = frozenset(
    {
        "BackwardNode",
        "GradientCheck",
        "GradientCut",
        "GradientExplanation",
        "GradientPart",
        "GradientStep",
        "GradientSum",
        "InputCheck",
        "Instantiation",
        "register_op_list",
    }
)
"""Names of `graphcore.api` that functions return: users get these objects, and do not write their classes' names."""


def written(names: Iterable[str], own: Iterable[str], api: Iterable[str]) -> list[str]:
    """The names to complete.

    Args:
        names: all names of TensorFlow 1.
        own: all other names of the top level.
        api: the names of `graphcore.api`.
    """
    return sorted({*names, *(SHOWN & {*own}), *api} - RESULTS)
