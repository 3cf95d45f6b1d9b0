"""Nodes of ONNX models run by the kernels of onnxruntime, one at a time."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

_OWN: Final = frozenset({"Constant", "Identity", "If", "Loop", "Scan", "SequenceMap", "Dropout"})
"""Ops that the evaluator runs itself: they have bodies, or compute nothing."""
_WIDE_WORDS: Final = (
    "Conv ConvTranspose MatMul Gemm Einsum LSTM GRU RNN Attention MultiHeadAttention GroupQueryAttention QLinearConv QLinearMatMul ConvInteger "
    "MatMulInteger MatMulNBits FusedConv FusedMatMul FusedGemm"
)
_WIDE: Final = frozenset(_WIDE_WORDS.split())
"""Ops whose kernels use all processors."""
_SILENT: Final = 4
_MOST_KERNELS: Final = 5000


def kernels() -> Kernels | None:
    """The kernels of onnxruntime, None where it is not installed."""
    try:
        return Kernels(import_module("onnxruntime"))
    except ImportError:
        return None


class Kernels:
    """Sessions of one node each, kept by op, attributes and types.

    No file is written, and nothing is optimised: a node gives what the same node gives in a session without optimisations.

    Args:
        runtime: the module `onnxruntime`.
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._sessions: dict[object, Any] = {}

    def run(self, node: Any, inputs: Sequence[Any], opsets: Mapping[str, int]) -> list[Any] | None:
        """The outputs of a node, those that it does not give as None.

        Args:
            node: the `NodeProto`.
            inputs: its inputs, None for one that is left out.
            opsets: the versions of the domains.

        Returns:
            Its outputs; None if onnxruntime has no kernel for it, or refuses these inputs.
        """
        if node.op_type in _OWN or not node.input or not all(value is None or _is_plain(value) for value in inputs):
            return None
        taken = {f"i{place}": value for place, value in enumerate(inputs) if value is not None}
        session = self._session(node, inputs, opsets)
        if session is None:
            return None
        try:
            results = iter(session.run(None, taken))
        except Exception:  # noqa: BLE001 - it raises classes of its own; the evaluator then says what is wrong with the inputs
            return None
        return [next(results) if name else None for name in node.output]

    def _session(self, node: Any, inputs: Sequence[Any], opsets: Mapping[str, int]) -> Any:
        types = tuple([None if value is None else value.dtype.str for value in inputs])
        attributes = tuple([attribute.SerializeToString(deterministic=True) for attribute in node.attribute])
        key = node.domain, node.op_type, attributes, types, tuple([bool(name) for name in node.output]), opsets.get(node.domain)
        if key not in self._sessions and len(self._sessions) < _MOST_KERNELS:
            self._sessions[key] = self._made(node, inputs, opsets)
        return self._sessions.get(key)

    def _made(self, node: Any, inputs: Sequence[Any], opsets: Mapping[str, int]) -> Any:
        """The session of a model of one node, None if it is refused."""
        onnx: Any = sys.modules["onnx"]
        helper = onnx.helper
        try:
            lone = onnx.NodeProto()
            lone.CopyFrom(node)
            del lone.input[:], lone.output[:]
            lone.input.extend([f"i{place}" if value is not None else "" for place, value in enumerate(inputs)])
            lone.output.extend([f"o{place}" if name else "" for place, name in enumerate(node.output)])
            taken = [
                helper.make_tensor_value_info(f"i{place}", helper.np_dtype_to_tensor_dtype(value.dtype), None)
                for place, value in enumerate(inputs)
                if value is not None
            ]
            made = [onnx.ValueInfoProto(name=name) for name in lone.output if name]
            versions = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
            model = helper.make_model(helper.make_graph([lone], "node", taken, made), opset_imports=versions, ir_version=10)
            return self._runtime.InferenceSession(
                model.SerializeToString(), self._options(node.op_type), providers=["CPUExecutionProvider"]
            )
        except Exception:  # noqa: BLE001 - it raises classes of its own for each kind of refusal
            return None

    def _options(self, op: str) -> Any:
        options = self._runtime.SessionOptions()
        options.graph_optimization_level = self._runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = _SILENT
        options.inter_op_num_threads = 1
        if op not in _WIDE:
            options.intra_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return options


def _is_plain(value: object) -> bool:
    """True for an array of a type that NumPy itself has."""
    return isinstance(value, np.ndarray) and value.dtype.isbuiltin == 1 and value.dtype.kind in "biuf"
