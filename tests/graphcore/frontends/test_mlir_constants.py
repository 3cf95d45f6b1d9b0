"""Constants of MLIR modules in all types, few elements and many, equal and not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignNode
from graphcore.frontends.sources import open_source

pytest.importorskip("jaxlib")
NUMBERS = {
    "f16": np.float16,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "i2": ml_dtypes.int2,
    "i4": ml_dtypes.int4,
    "ui4": ml_dtypes.uint4,
    "i8": np.int8,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}


def constant(folder: Path, text: str, kind: str) -> ForeignNode:
    path = folder / "constant.mlir"
    path.write_text(
        f"module {{ func.func @main() -> tensor<{kind}> {{\n  %c = stablehlo.constant dense<{text}> : tensor<{kind}>\n"
        f"  return %c : tensor<{kind}> }} }}"
    )
    (node,) = open_source(path).main.nodes
    return node


def elements(folder: Path, text: str, kind: str) -> Any:
    node = constant(folder, text, kind)
    assert node.weight is not None
    assert node.weight.load is not None
    return node.weight.load()


def written(value: int, kind: str) -> str:
    if kind.startswith("complex"):
        return f"({value}.0,1.0)"
    return f"{value}.0" if "f" in kind else str(value)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("count", [2, 300])
def test_elements_of_each_type_are_those_that_are_written(tmp_path: Path, kind: str, count: int) -> None:
    expected = np.array([number % 2 + (1j if kind.startswith("complex") else 0) for number in range(count)]).astype(NUMBERS[kind])
    found = elements(tmp_path, f"[{', '.join([written(number % 2, kind) for number in range(count)])}]", f"{count}x{kind}")
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    equal = elements(tmp_path, written(1, kind), f"3x{count}x{kind}")
    assert equal.dtype == expected.dtype
    np.testing.assert_array_equal(equal, np.broadcast_to(expected[1], (3, count)))


def test_bits_stand_for_numbers_that_have_no_digits(tmp_path: Path) -> None:
    found = elements(tmp_path, "[1.0, 0x7FC0, 0x7F80, 0xFF80]", "4xbf16")
    np.testing.assert_array_equal(found.astype(float), [1, np.nan, np.inf, -np.inf])


def test_a_complex_number_by_itself_is_an_attr(tmp_path: Path) -> None:
    assert constant(tmp_path, "(1.0,2.0)", "complex<f32>").attrs == {"value": "(1.000000e+00,2.000000e+00)"}


def test_a_type_that_numpy_has_not_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="f8E3M4"):
        elements(tmp_path, "[1.0, 2.0]", "2xf8E3M4")


RESOURCES = """module {
  func.func @main() -> (tensor<2x2xf32>, tensor<3xi1>, tensor<2xf32>, tensor<2xi8>) {
    %0 = stablehlo.constant dense_resource<weight> : tensor<2x2xf32>
    %1 = stablehlo.constant dense_resource<"of a mask"> : tensor<3xi1>
    %2 = stablehlo.constant dense_resource<left_out> : tensor<2xf32>
    %3 = "other.const"() {values = dense<[1, 2]> : tensor<2xi8>} : () -> tensor<2xi8>
    return %0, %1, %2, %3 : tensor<2x2xf32>, tensor<3xi1>, tensor<2xf32>, tensor<2xi8>
  }
}
{-#
  dialect_resources: {
    builtin: {
      last_weight: "0x0400000000000000",
      weight: "0x040000000000803F000000400000404000008040",
      "of a mask": "0x01000000010001"
    }
  }
#-}
"""


def test_elements_outside_of_the_operations_are_read_from_the_end_of_the_module(tmp_path: Path) -> None:
    (tmp_path / "resources.mlir").write_text(RESOURCES)
    source = open_source(tmp_path / "resources.mlir")
    weights = [node.weight for node in source.main.nodes if node.kind == "constant"]
    load = [weight.load for weight in weights if weight is not None and weight.load is not None]
    assert len(load) == 4
    np.testing.assert_array_equal(load[0](), np.array([[1, 2], [3, 4]], np.float32))
    np.testing.assert_array_equal(load[1](), [True, False, True])
    np.testing.assert_array_equal(load[3](), np.array([1, 2], np.int8))
    with pytest.raises(InvalidArgumentError, match="does not hold them"):
        load[2]()
