"""Einstein sums of any number of operands."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc

SIZES = dict(zip("abcdeijk", (2, 3, 4, 2, 5, 3, 3, 2), strict=True))
EQUATIONS = [
    "i,ij,j->",
    "i,ijk,k->j",
    "ab,bc,cd,de->ae",
    "ab,ac,ad->abcd",
    "a,b,c,d,e->",
    "ii,ij,j->i",
    "ab,bc,cd",
    "ab,bc",
    "ij,ij,ij->ij",
    "ij,jk,ik->",
    "i,i->i",
    "ab->ba",
    "ba",
]


@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("known", [True, False])
def test_any_number_of_operands_gives_what_numpy_gives(equation: str, known: bool) -> None:
    random = np.random.default_rng(0)
    values = [random.normal(size=[SIZES[label] for label in part]) for part in equation.partition("->")[0].split(",")]
    with gc.Graph().as_default(), gc.Session() as session:
        xs = [gc.constant(value) if known else gc.placeholder(gc.float64) for value in values]
        y = gc.einsum(equation, *xs)
        gradients = gc.gradients(y, xs)
        found, *slopes = session.run([y, *gradients], {} if known else dict(zip(xs, values, strict=True)))
    np.testing.assert_allclose(found, np.einsum(equation, *values))
    assert [slope.shape for slope in slopes] == [value.shape for value in values]


def test_an_ellipsis_stands_for_any_dimensions_of_any_operand() -> None:
    random = np.random.default_rng(1)
    values = [random.normal(size=size) for size in ((2, 3, 4), (4, 5), (3, 5))]
    with gc.Graph().as_default(), gc.Session() as session:
        found = session.run(gc.einsum("...i,ij,...j->...", *map(gc.constant, values)))
    np.testing.assert_allclose(found, np.einsum("...i,ij,...j->...", *values))


def test_the_order_keeps_the_products_small() -> None:
    with gc.Graph().as_default():
        y = gc.einsum("ab,bc,c->a", *[gc.constant(np.ones(size)) for size in ((50, 60), (60, 70), (70,))])
        products = [node.outputs[0].shape.as_list() for node in y.graph.op_nodes() if node.op == "Einsum"]
    assert products == [[60], [50]]


def test_an_equation_that_does_not_fit_is_refused() -> None:
    with gc.Graph().as_default(), pytest.raises(gc.errors.InvalidArgumentError, match="einsum"):
        gc.einsum("ab,bc,cd->ad", *[gc.constant(np.ones(size)) for size in ((2, 3), (4, 5), (5, 6))])
