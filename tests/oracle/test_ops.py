"""Every registered op against TensorFlow's: signature, results of examples, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

import graphcore as gc
from graphcore.definitions import OpDef
from graphcore.definitions.wire import op_list_from_bytes
from graphcore.registry import OpRegistration
from tests.oracle.cases.op_examples import OpExample, all_examples
from tests.oracle.conftest import Oracle
from tests.support.remote import RemoteError

Array = npt.NDArray[Any]
SIDE = "tests.oracle.sides.op_side"
TOLERANCE = {"half": 2e-3, "bfloat16": 2e-2, "float": 2e-5, "double": 1e-10, "complex64": 2e-5, "complex128": 1e-10}

# Ops missing in TensorFlow 2.21, each with the reason for having it.
OURS_ONLY = {
    "CrossEntropy": "TensorFlow's registry of function gradients names it; SoftmaxCrossEntropyWithLogits is its present name",
    "MapAccumulate": "TensorFlow's registry of function gradients names it",
    "MapAccumulateGrad": "TensorFlow's registry of function gradients names it",
    "PlaceholderV2": "old graphs have it; TensorFlow refuses it since GraphDef version 23",
}
# Intended differences in results. Strict: a superfluous entry fails.
_NEVER_WRITTEN = "TensorFlow leaves the reserved outputs unwritten unless training"
OTHER_VALUES = {
    "FusedBatchNorm-1": _NEVER_WRITTEN,
    "FusedBatchNormV2-1": _NEVER_WRITTEN,
    "FusedBatchNormV3-1": _NEVER_WRITTEN,
    **{f"{name}-0": "TensorFlow gives a scalar where its shape function says an empty vector" for name in ("SelfAdjointEigV2", "Svd")},
    "Round-1": "TensorFlow's kernel gives zeros for integers, which are round already",
}
OTHER_GRADIENTS = {
    "Conv2D-2": "TensorFlow has no gradient of dilated convolutions on the CPU",
    "Conv2D-5": "TensorFlow has no gradient of grouped convolutions on the CPU",
    "MaxPool-3": "TensorFlow has no gradient of pooling along the channels",
    "GatherNd-2": "TensorFlow's ScatterNd refuses the empty gradient",
    "PadV2-0": "TensorFlow has no gradient with respect to the padding value",
    "LRNGrad-0": "TensorFlow has no second derivative of LRN",
    "LRNGrad-1": "TensorFlow has no second derivative of LRN",
    **{
        f"MatrixDiag{name}-{i}": "TensorFlow has no gradient with respect to the padding value"
        for name, examples in {"V2": (0, 1, 2), "V3": (0, 1, 2, 3), "PartV2": (1, 2), "PartV3": (1, 2, 4)}.items()
        for i in examples
    },
    **{f"FusedBatchNorm{version}-1": "TensorFlow has no gradient with respect to given statistics" for version in ("", "V2", "V3")},
    **{f"BatchNormWithGlobalNormalizationGrad-{i}": "TensorFlow has no second derivative of this normalisation" for i in (0, 1)},
    "CropAndResizeGradImage-0": "TensorFlow has no second derivative of crops",
    "IRFFT2D-1": "TensorFlow's gradient has another shape where the transform leaves out some of its input",
    **{f"IRFFT3D-{i}": "TensorFlow has no gradient of transforms over three dimensions" for i in (0, 1)},
    "DeepCopy-0": "TensorFlow has no gradient of DeepCopy",
    "Snapshot-0": "TensorFlow has no gradient of Snapshot",
    "SparseToDense-1": "TensorFlow's gradient takes indices of rank 2 only",
    "SoftsignGrad-0": "TensorFlow has no second derivative of Softsign",
    **{
        f"Resize{name}Grad-{i}": "TensorFlow has no second derivative of resizing"
        for name in ("Bicubic", "Bilinear", "NearestNeighbor")
        for i in (0, 1)
    },
    **{f"SparseSegment{name}Grad-0": "TensorFlow has no second derivative of sparse segments" for name in ("Mean", "SqrtN", "Sum")},
}

ENTRIES = [entry for entry in gc.op_registry if not entry.op_def.name.startswith("_")]
EXAMPLES = list(all_examples())


def parameters(examples: list[OpExample], different: dict[str, str]) -> list[Any]:
    """The examples of ops that TensorFlow has; known differences must fail."""
    shared = {f"{example.name}-{example.number}": example for example in examples if example.name not in OURS_ONLY}
    assert different.keys() <= shared.keys()
    return [
        pytest.param(example, id=name, marks=[pytest.mark.xfail(strict=True, reason=different[name])] if name in different else [])
        for name, example in shared.items()
    ]


def assert_same(ours: Array, theirs: Array, what: str) -> None:
    assert ours.shape == theirs.shape, f"{what}: shape {ours.shape}, in TensorFlow {theirs.shape}"
    assert gc.as_dtype(ours.dtype) is gc.as_dtype(theirs.dtype), f"{what}: {ours.dtype}, in TensorFlow {theirs.dtype}"
    tolerance = TOLERANCE.get(gc.as_dtype(ours.dtype).text)
    if tolerance is None:
        assert ours.tolist() == theirs.tolist(), what
        return
    wide = np.complex128 if np.iscomplexobj(ours) else np.float64
    np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=tolerance, atol=tolerance, err_msg=what)


def plain(op_def: OpDef) -> OpDef:
    """The definition without docs, with attrs by name."""
    inputs, outputs = ([replace(arg, description="", other_fields=b"") for arg in args] for args in (op_def.input_arg, op_def.output_arg))
    attrs = [replace(attr, description="") for attr in op_def.attr]
    deprecation = None if op_def.deprecation is None else replace(op_def.deprecation, explanation="")
    return replace(
        op_def,
        input_arg=tuple(inputs),
        output_arg=tuple(outputs),
        attr=tuple(sorted(attrs, key=lambda attr: attr.name)),
        deprecation=deprecation,
        summary="",
        description="",
        other_fields=b"",
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.op_def.name)
def test_an_op_is_defined_as_it_is_in_tensorflow(entry: OpRegistration, oracle: Oracle) -> None:
    op_def = entry.op_def
    theirs = oracle.call(f"{SIDE}:definition", op_def.name)
    if theirs is None:
        assert op_def.name in OURS_ONLY
        return
    (given,) = op_list_from_bytes(theirs)
    assert gc.debug_string(plain(op_def)) == gc.debug_string(plain(given))
    assert plain(op_def) == plain(given)


@pytest.mark.parametrize("example", parameters(EXAMPLES, OTHER_VALUES))
def test_an_example_gives_what_it_gives_in_tensorflow(example: OpExample, oracle: Oracle) -> None:
    try:
        theirs = oracle.call(f"{SIDE}:run_op", example.name, example.sent_inputs(), example.sent_attrs())
    except RemoteError as refusal:  # an uninitialised variable, an unfed placeholder
        with pytest.raises(getattr(gc.errors, refusal.kind)):
            example.run()
        return
    ours = example.run()
    assert len(ours) == len(theirs)
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if example.deterministic:
            assert_same(mine, other, f"{example.name}:{i}")
        else:
            assert (mine.shape, gc.as_dtype(mine.dtype)) == (other.shape, gc.as_dtype(other.dtype))


DIFFERENTIABLE = [example for example in EXAMPLES if example.differentiable and example.entry.gradient is not None]


@pytest.mark.parametrize("example", parameters(DIFFERENTIABLE, OTHER_GRADIENTS))
def test_an_example_has_the_gradients_it_has_in_tensorflow(example: OpExample, oracle: Oracle) -> None:
    numbers, ours = example.differentiated()
    if not numbers:
        return  # integers are not differentiated
    theirs = oracle.call(f"{SIDE}:run_gradient", example.name, example.sent_inputs(), example.sent_attrs(), numbers)
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if other is None:  # zeros equal a missing gradient in TensorFlow
            assert mine is None or not np.any(mine), f"{example.name} by input {i}: a gradient where TensorFlow has none"
            continue
        if mine is None and other.dtype.kind in "iub":  # TensorFlow's gradient of integer inputs (shapes, indices)
            continue
        assert mine is not None, f"{example.name} by input {i}: no gradient where TensorFlow has one"
        assert_same(mine, other, f"gradient of {example.name} by input {i}")
