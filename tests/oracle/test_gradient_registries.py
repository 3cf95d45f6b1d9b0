"""The ops that have gradients, here and in TensorFlow's Python."""

from __future__ import annotations

from typing import Final

import graphcore as gc
from tests.oracle.conftest import Oracle

SIDE: Final = "tests.oracle.sides.op_side"
_IN_FRAMES: Final = "the backward pass goes through loops and branches itself"
# Ops that have a gradient here and none in TensorFlow, with reasons; TensorFlow raises.
MORE_HERE: Final = {
    **dict.fromkeys(
        [
            "BatchNormWithGlobalNormalizationGrad",
            "CropAndResizeGradImage",
            "IRFFT3D",
            "LRNGrad",
            "MaxPoolGradGradV2",
            "RFFT3D",
            "ResizeBicubicGrad",
            "ResizeNearestNeighborGrad",
            "SoftsignGrad",
            "SparseSegmentMeanGrad",
            "SparseSegmentSqrtNGrad",
            "SparseSegmentSumGrad",
        ],
        "a linear op, or a second derivative",
    ),
    **dict.fromkeys(["CrossEntropy", "MapAccumulate", "_ArrayToList", "_ListToArray"], "TensorFlow's registry of functions has it"),
    **dict.fromkeys(["DeepCopy", "Snapshot"], "passes its input on"),
    **dict.fromkeys(["PartitionedCall", "StatefulPartitionedCall"], "TensorFlow's Python finds it in the function"),
    "ResizeBilinearGrad": "a linear op; TensorFlow says that it is not differentiable",
}
# Ops that have a gradient in TensorFlow and none here.
MORE_THERE: Final = {
    **dict.fromkeys(
        [*(f"{ref}{op}" for ref in ("", "Ref") for op in ("Enter", "Exit", "Merge", "NextIteration", "Switch")), "LoopCond"], _IN_FRAMES
    ),
    **dict.fromkeys(["OptionalFromValue", "OptionalGetValue"], "an optional is no tensor here"),
    **dict.fromkeys(["SparseDenseCwiseAdd", "SparseSparseMaximum", "SparseSparseMinimum"], "TensorFlow's raises NotImplementedError"),
    "MatrixSolveLs": "TensorFlow's needs shapes that are known; gc.matrix_solve_ls composes it of ops with gradients",
    "SparseDenseCwiseDiv": "that of SparseDenseCwiseMul is here",
    "RaggedTensorToTensor": "TensorFlow's is built of ops on ragged tensors",
}
# Ops at which gradients stop on both sides, though TensorFlow's says so by a function that gives None.
STOP_BY_A_FUNCTION: Final = {"ArgMax", "ArgMin", "Ceil", "Floor", "FloorDiv", "Rint", "Round", "TruncateDiv"}


def kinds(oracle: Oracle) -> dict[str, tuple[str, str]]:
    """For each op "function", "stop" or "none", here and there."""
    names = [entry.op_def.name for entry in gc.op_registry]
    theirs = oracle.call(f"{SIDE}:gradient_kinds", names)
    return {name: (gc.op_registry.look_up(name).gradient_kind, theirs[name]) for name in names}


def test_an_op_has_a_gradient_here_if_it_has_one_in_tensorflow(oracle: Oracle) -> None:
    missing = {name for name, (ours, theirs) in kinds(oracle).items() if theirs == "function" and ours != "function"}
    assert missing - STOP_BY_A_FUNCTION == set(MORE_THERE)


def test_the_gradients_that_tensorflow_lacks_are_those_listed(oracle: Oracle) -> None:
    more = {name for name, (ours, theirs) in kinds(oracle).items() if ours == "function" and theirs != "function"}
    assert more == set(MORE_HERE)


def test_gradients_stop_where_tensorflow_says_that_an_op_is_not_differentiable(oracle: Oracle) -> None:
    refused = {name for name, (ours, theirs) in kinds(oracle).items() if theirs == "stop" and ours == "none"}
    assert not refused
