"""Every op with every type that its signature allows, against TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from tests.oracle.cases.op_examples import OpExample, all_examples, natural_array
from tests.oracle.conftest import Oracle
from tests.support.remote import RemoteError

Array = npt.NDArray[Any]
SIDE = "tests.oracle.sides.op_side"
TYPES = [
    *(gc.float16, gc.bfloat16, gc.float32, gc.float64, gc.complex64, gc.complex128, gc.bool_),
    *(gc.int8, gc.int16, gc.int32, gc.int64, gc.uint8, gc.uint16, gc.uint32, gc.uint64),
]
TOLERANCE = {"half": 1e-2, "bfloat16": 4e-2, "float": 2e-5, "double": 1e-10, "complex64": 2e-5, "complex128": 1e-10}
EXAMPLES_EACH = 2
# Excluded cases, by the beginning of the name.
LEFT_OUT = {
    r"(Add|SparseFillEmptyRows)-1": "an example with strings",
    r"FusedBatchNorm(V2|V3)?-1": "TensorFlow leaves the reserved outputs unwritten unless training",
    r"MaxPoolGrad(V2)?-0-T-uint": "made positive, the example's output is no longer the maximum of its input",
    r"Round-.-T-int": "TensorFlow's kernel gives zeros for integers",
    r"ScatterDiv-0-T-u?int": "as whole numbers the example's updates are 0, and TensorFlow's process dies of dividing by them",
    r"SparseAdd-.-(T-(?!float$|complex64$)|Treal-(?!float$))": "TensorFlow misreads a threshold of another type than the magnitudes have",
    r"SplitV-.-Tlen-int8": "TensorFlow's process dies of sizes in int8",
    r"TopKV2-.-Tk-int16": "a shape is read from int32 and int64 only",
}

# Doubles that are compared as floats.
IN_FLOAT = {
    r"CTC(BeamSearchDecoder|Loss)-.-T-double": "TensorFlow adds likelihoods in float",
    r"Resize(Bicubic|Bilinear)Grad-.-T-double": "TensorFlow mixes the weights in float",
}
# Cases of which only the first output is compared.
FIRST_OUTPUT = {r"(SelfAdjointEigV2|Svd)-0": "TensorFlow leaves the vectors unwritten, and without the inferred shape"}


def converted(value: Any, dtype: gc.DType) -> Array:
    """An example's value in a suitable form for another type: whole, not negative, or not real."""
    array = natural_array(value, None)
    if array.dtype.kind in "SO":
        return array
    wide = array.astype(np.float64) if array.dtype.kind != "c" else array
    if dtype.is_complex:
        return (wide * (1 + 0.5j)).astype(dtype.as_numpy)
    real = wide.real
    if dtype.is_integer:
        real = np.nan_to_num(np.rint(real), posinf=9, neginf=-9)
    if dtype.text.startswith("uint"):
        real = np.abs(real)
    with np.errstate(all="ignore"):
        return real.astype(dtype.as_numpy)


def retyped(example: OpExample, attr: str, dtype: gc.DType) -> OpExample:
    """The example with type attr `attr` set, and the inputs of that type converted."""
    inputs = []
    for arg, value in zip(example.entry.op_def.input_arg, example.inputs, strict=True):
        # The element type of the variable or list.
        held = (arg.type is gc.resource and attr in {"T", "dtype"}) or (arg.type is gc.variant and attr == "element_dtype")
        if (arg.type_attr != attr and not held) or value is None:
            inputs.append(value)
        elif arg.number_attr:
            inputs.append([converted(part, dtype) for part in value])
        else:
            inputs.append(converted(value, dtype))
    parts = {"Tout": "double"} if dtype is gc.complex128 and example.entry.op_def.find_attr("Tout") and attr == "T" else {}
    return replace(example, inputs=tuple(inputs), attrs={**example.attrs, attr: dtype.text, **parts})


def cases() -> Iterator[tuple[str, OpExample]]:
    for example in all_examples():
        if example.number >= EXAMPLES_EACH or not example.deterministic:
            continue
        op_def = example.entry.op_def
        attrs = {arg.type_attr for arg in op_def.input_arg if arg.type_attr}
        for attr in op_def.attr:
            if attr.name not in attrs or attr.type != "type":
                continue
            allowed = [dtype for dtype in TYPES if attr.allowed_values is None or dtype in attr.allowed_values]
            for dtype in allowed:
                name = f"{example.name}-{example.number}-{attr.name}-{dtype.text}"
                if not named(name, LEFT_OUT):
                    yield name, retyped(example, attr.name, dtype)


def named(name: str, patterns: dict[str, str]) -> bool:
    """True iff a case's name begins as one of the patterns."""
    return any(re.match(pattern, name) for pattern in patterns)


def close(ours: Array, theirs: Array, *, in_float: bool = False) -> str | None:
    """The difference between the two; None if there is none."""
    if ours.shape != theirs.shape or gc.as_dtype(ours.dtype) is not gc.as_dtype(theirs.dtype):
        return f"{ours.dtype}{ours.shape}, in TensorFlow {theirs.dtype}{theirs.shape}"
    found = gc.as_dtype(ours.dtype).text
    tolerance = TOLERANCE.get("float" if in_float and found == "double" else found)
    if tolerance is None:
        return None if ours.tolist() == theirs.tolist() else f"{ours.tolist()}, in TensorFlow {theirs.tolist()}"
    wide = np.complex128 if np.iscomplexobj(ours) else np.float64
    same = np.allclose(ours.astype(wide), theirs.astype(wide), rtol=tolerance, atol=tolerance, equal_nan=True)
    return None if same else f"{ours.tolist()}, in TensorFlow {theirs.tolist()}"


CASES = dict(cases())
BY_OP: dict[str, list[str]] = {}
for _name, _example in CASES.items():
    BY_OP.setdefault(_example.name, []).append(_name)


def differences(name: str, oracle: Oracle) -> list[str]:
    """The differences of a case from TensorFlow; none where TensorFlow has no kernel, or refuses."""
    example = CASES[name]
    try:
        theirs = oracle.call(f"{SIDE}:run_op", example.name, example.sent_inputs(), example.sent_attrs())
    except RemoteError:
        return []
    try:
        ours = example.run()
    except gc.GraphError as error:
        return [f"{name}: {error}"]
    compared = list(zip(ours, theirs, strict=True))[: 1 if named(name, FIRST_OUTPUT) else None]
    found = [close(mine, other, in_float=named(name, IN_FLOAT)) for mine, other in compared]
    return [f"{name}, output {i}: {difference}" for i, difference in enumerate(found) if difference is not None]


@pytest.mark.parametrize("op", BY_OP)
def test_each_type_gives_what_it_gives_in_tensorflow(op: str, oracle: Oracle) -> None:
    found = [difference for name in BY_OP[op] for difference in differences(name, oracle)]
    assert not found, "\n".join(found)


# Complex gradients that are not compared.
OTHER_COMPLEX_GRADIENTS = {
    "BatchMatMulV3": "one operand is complex where the result is not",
    "Cumprod": "TensorFlow leaves out the conjugate",
    **dict.fromkeys(("IRFFT", "IRFFT2D"), "TensorFlow's gradient is of 64 bits"),
    "LogMatrixDeterminant": "TensorFlow takes the sign, which turns with the matrix, for constant",
    "MatrixDeterminant": "TensorFlow leaves out the conjugate",
    "MatrixSquareRoot": "TensorFlow leaves out the conjugate",
    "MulNoNan": "TensorFlow leaves out the conjugate",
    "TridiagonalSolve": "TensorFlow leaves out the conjugate",
    "Xdivy": "TensorFlow leaves out the conjugate",
    "Xlog1py": "TensorFlow leaves out the conjugate",
    "Xlogy": "TensorFlow leaves out the conjugate",
}
COMPLEX = [
    name
    for name, example in CASES.items()
    if name.endswith("-complex128")
    and example.differentiable
    and example.entry.gradient is not None
    and example.name not in OTHER_COMPLEX_GRADIENTS
]


@pytest.mark.parametrize("name", COMPLEX)
def test_a_complex_gradient_is_what_it_is_in_tensorflow(name: str, oracle: Oracle) -> None:
    example = CASES[name]
    try:
        numbers, ours = example.differentiated()
    except gc.GraphError:
        with pytest.raises(RemoteError):
            oracle.call(f"{SIDE}:run_gradient", example.name, example.sent_inputs(), example.sent_attrs(), [0])
        return
    if not numbers:
        return
    try:
        theirs = oracle.call(f"{SIDE}:run_gradient", example.name, example.sent_inputs(), example.sent_attrs(), numbers)
    except RemoteError:
        pytest.skip("TensorFlow has no gradient or no kernel for complex numbers")
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine is None or other is None:
            continue
        difference = close(mine, other)
        assert difference is None, f"by input {i}: {difference}"
