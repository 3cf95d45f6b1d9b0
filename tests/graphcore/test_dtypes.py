"""Data types: one object each, from any source."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import graphcore as gc
from graphcore import dtypes as d
from graphcore.errors import InvalidArgumentError


@pytest.mark.parametrize("dtype", [*d.ALL_TYPES, d.float32.ref, d.INVALID, d.dtype_from_wire(1000)], ids=str)
def test_a_type_stays_the_same_object(dtype: d.DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert d.dtype_from_wire(dtype.number) is dtype


@pytest.mark.parametrize("dtype", d.ALL_TYPES, ids=str)
def test_a_type_is_found_by_its_names_and_number(dtype: d.DType) -> None:
    assert d.as_dtype(dtype.text) is d.as_dtype(dtype.enum_name) is d.dtype_by_number(dtype.number) is dtype
    assert dtype.ref.base is dtype
    assert (dtype.is_ref, dtype.ref.is_ref, dtype.ref.number) == (False, True, dtype.number + 100)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("float32", d.float32), (np.float64, d.float64), (np.dtype("int8"), d.int8), (bool, d.bool_), (np.str_, d.string), ("DT_INT32_REF", d.int32.ref)],
    ids=str,
)  # fmt: skip
def test_what_numpy_and_python_call_a_type_is_understood(given: object, expected: d.DType) -> None:
    assert d.as_dtype(given) is expected


@pytest.mark.parametrize("given", ["nix", "INVALID", "DT_INVALID", "unknown dtype enum (1000)", None, 0, 1000, np.datetime64], ids=str)
def test_what_is_no_type_is_refused(given: object) -> None:
    d.dtype_from_wire(1000)
    with pytest.raises(InvalidArgumentError, match="Not a data type"):
        d.as_dtype(given)


def test_a_number_from_a_file_that_is_no_type_is_known_to_be_none() -> None:
    assert not d.is_valid_dtype(d.dtype_from_wire(1000))
    assert not d.is_valid_dtype(d.INVALID)
    assert d.is_valid_dtype(d.float32.ref)
    assert d.dtype_by_number(1000) is None


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (gc.float32, "float32"),
        (gc.float64, "float64"),
        (gc.half, "float16"),
        (gc.bool_, "bool"),
        (gc.string, "string"),
        (gc.qint8, "qint8"),
    ],
)
def test_the_name_is_that_of_python_and_numpy_while_texts_print_those_of_signatures(dtype: gc.DType, name: str) -> None:
    assert dtype.name == name
    assert gc.as_dtype(name) is dtype
    assert dtype.ref.name == f"{name}_ref"
    assert gc.as_dtype(dtype.ref.name) is dtype.ref
    assert str(dtype) == dtype.text


def test_numpy_makes_arrays_of_the_same_type_from_a_name() -> None:
    with gc.Graph().as_default():
        for value in (1.0, np.float64(1.0), np.float16(1.0), 1, True, 1j, np.uint8(1)):
            made = gc.constant(value)
            assert np.zeros(2, made.dtype.name).dtype == made.dtype.as_numpy
        assert repr(gc.constant(1.0, name="c")) == "<gc.Tensor 'c:0' float []>"
