"""Einsum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcore.inference.shape_fns.common_shape_fns import einsum_shape
from tests.support.shape_rows import assert_row, infer, refusal


@pytest.mark.parametrize(
    ("equation", "inputs", "expected"),
    [
        ("ij,jk->ik", "[2,3];[3,4]", "[d0_0,d1_1]"),
        ("ij,jk->ik", "?;[3,4]", "[?,d1_1]"),
        ("ij->ji", "[2,?]", "[d0_1,d0_0]"),
        ("ij->", "[2,?]", "[]"),
        ("ii->i", "[?,3]", "[d0_1]"),
        ("i->ii", "[2]", "[d0_0,d0_0]"),
        ("...ij,...jk->...ik", "[5,1,2,3];[7,3,4]", "[d0_0,d1_0,d0_2,d1_2]"),
        ("...ij,...jk->...ik", "?;[7,3,4]", "?"),
        ("i...,j->ij...", "[2,?,4];[3]", "[d0_0,d1_0,d0_1,d0_2]"),
        ("...i->i", "[2]", "[d0_0]"),
        ("->", "[]", "[]"),
    ],
    ids=lambda value: f"S4 {value}",
)
def test_the_output_follows_from_the_labels(equation: str, inputs: str, expected: str) -> None:
    assert_row(infer(einsum_shape, inputs, attrs={"equation": equation}), expected)


@pytest.mark.parametrize(
    ("equation", "inputs", "text"),
    [
        ("ij,jk->ik", "[2,3];[5,4]", "Dimensions must be equal, but are 3 and 5"),
        ("ij,jk", "[2,3];[3,4]", "Expecting exactly one '->' in einsum equation: ij,jk"),
        ("i->i->i", "[2]", "Expecting exactly one '->' in einsum equation: i->i->i"),
        ("i,i,i->i", "[2];[2];[2]", "Expecting 1 or 2 input subscripts in equation 'i,i,i->i' but got: 3"),
        ("ij->ij", "[2,3];[3,4]", "Expected 1 inputs for equation ij->ij but got: 2"),
        ("ij,jk->iz", "[2,3];[3,4]", "equation 'ij,jk->iz' has label 'z' which is not present in the input subscripts"),
        ("ij->ij", "[2,3,4]", "Shape must be rank 2 but is rank 3\n\t for 0th input and equation: ij->ij"),
        ("...ij->ij", "[2]", "Shape must be at least rank 2 but is rank 1\n\t for 0th input and equation: ...ij->ij"),
        ("...ij->ij", "[5,2,3]", "Shape must be at most rank 0 but is rank 1\n\t for einsum equation '...ij->ij' without ellipsis"),
        ("...i...->i", "[2,3,4]", "Expected at most one ellipsis (...), but found 6 periods (.) in the input subscript: ...i..."),
        ("..i->i", "[2]", "Expected at most one ellipsis (...), but found 2 periods (.) in the input subscript: ..i"),
    ],
    ids=lambda value: f"S4 {value}",
)
def test_an_equation_that_does_not_fit_is_refused(equation: str, inputs: str, text: str) -> None:
    assert text in refusal(einsum_shape, inputs, attrs={"equation": equation})


@given(st.lists(st.sampled_from("abc"), max_size=3), st.lists(st.sampled_from("abc"), max_size=3), st.data())
def test_the_shape_is_that_of_numpy(first: list[str], second: list[str], data: st.DataObject) -> None:
    sizes = {"a": 2, "b": 3, "c": 1}
    known = sorted({*first, *second})
    output = "".join(data.draw(st.permutations(known)))[: data.draw(st.integers(0, len(known)))]
    equation = f"{''.join(first)},{''.join(second)}->{output}"
    arrays = [np.ones([sizes[label] for label in labels]) for labels in (first, second)]
    row = ";".join(["[" + ",".join(map(str, array.shape)) + "]" for array in arrays])
    c = infer(einsum_shape, row, attrs={"equation": equation})
    assert str(c.output(0)) == str(list(np.einsum(equation, *arrays).shape)).replace(" ", "")
