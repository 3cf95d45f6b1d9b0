"""Comparison of gradients with central differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore.api.gradients.check_report import GradientCheck, InputCheck
from graphcore.api.gradients.gradients import gradients, tensors_of
from graphcore.api.gradients.stateless_copy import StatelessCopy
from graphcore.attrs import Array
from graphcore.dtypes import DType, as_dtype
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.plumbing import PLACEHOLDER
from graphcore.runtime import Session, get_default_session

_DELTAS: Final[Mapping[int, float]] = {8: 1e-5, 4: 5e-3}
_TOLERANCES: Final[Mapping[int, float]] = {8: 1e-5, 4: 2e-2}
_LOW_PRECISION: Final = (5e-2, 2e-1)
_ROUNDINGS: Final = 16
"""The roundings of the result by which the differences may be off."""


def check_gradient(
    y: Any,
    xs: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    delta: float | None = None,
    tolerance: float | None = None,
    dtype: object = None,
    session: Session | None = None,
    most_elements: int = 1000,
) -> GradientCheck:
    """Compare the gradients of `y` with respect to `xs` with central differences.

    The point is given by feeds, constants and variables. The function differentiated is the sum of the elements of `y`, weighted by fixed
    random numbers of size 0.5 to 1.5 (complex ones for a complex `y`), so that no errors cancel. The graph is unchanged: the computation
    uses a copy.

    Args:
        y: a tensor of floating or complex dtype, any shape.
        xs: tensors or variables to differentiate with respect to: placeholders, constants, intermediate values.
        feed_dict: values for the placeholders, as in `Session.run`.
        delta: the step of the differences, relative for elements larger than 1; 1e-5 in double precision, 5e-3 in single, 5e-2 below by
            default. The real and the imaginary part of a complex element are moved one after the other.
        tolerance: the largest relative error that passes; 1e-5, 2e-2, 2e-1 by default.
        dtype: compute in this floating dtype instead of the graph's own: `gc.float64` makes the differences of a float graph precise.
            Every op involved must allow it.
        session: the session with the values of the variables; the default session if None.
        most_elements: the number of elements to check of a larger input, chosen at random (always the same).

    Returns:
        One row for each input: the largest relative error, and its element with both values. True iff all are within the tolerance.

    Raises:
        InvalidArgumentError: a dtype that cannot be differentiated, a placeholder without a feed, a `y` that differs from run to run.
        FailedPreconditionError: a variable that is not initialised in the session.
    """
    targets = tensors_of(y, "y")
    if len(targets) != 1:
        raise InvalidArgumentError(f"check_gradient requires one y, got {len(targets)}")
    with targets[0].graph.as_default():  # names are resolved in this graph
        wanted = tensors_of(xs, "xs")
        given = {tensors_of(key, "feed_dict")[0]: value for key, value in (feed_dict or {}).items()}
    if not wanted:
        raise InvalidArgumentError("check_gradient requires at least one x, got none")
    for tensor in (*targets, *wanted):
        _require_differentiable(tensor)
        targets[0].graph.as_graph_element(tensor)
    if most_elements < 1:
        raise InvalidArgumentError(f"check_gradient requires most_elements of at least 1, got {most_elements}")
    work = _Work(targets[0], wanted, given, None if dtype is None else _floating(dtype), session)
    size = work.y.dtype.size // (2 if work.y.dtype.is_complex else 1)
    step = delta if delta is not None else _DELTAS.get(size, _LOW_PRECISION[0])
    limit = tolerance if tolerance is not None else _TOLERANCES.get(size, _LOW_PRECISION[1])
    if not step > 0 or not limit > 0:
        raise InvalidArgumentError(f"check_gradient requires a delta and a tolerance above 0, got {step} and {limit}")
    return work.check(step, limit, most_elements)


class _Work:
    """A copy of the needed part of the graph, with a session and feeds."""

    def __init__(
        self, y: Tensor, xs: Sequence[Tensor], given: Mapping[Tensor, Any], precision: DType | None, session: Session | None
    ) -> None:
        self.originals = list(xs)
        self.copy = StatelessCopy([y, *xs], given, precision)
        self.y = self.copy.of(y)
        self.session = Session(self.copy.graph)
        fed = {tensor: value for tensor, value in given.items() if self.copy.holds(tensor)}
        for node in self.copy.graph.op_nodes():
            tensor = next((t for t in node.outputs if node.op in PLACEHOLDER), None)
            if tensor is not None and y.graph.get_tensor_by_name(tensor.name) not in {*fed, *self.copy.variables}:
                raise InvalidArgumentError(
                    f"check_gradient requires a value for the placeholder '{node.name}' ({tensor.dtype.text} {tensor.shape}) in feed_dict: "
                    f"'{y.name}' depends on it",
                    op=node.op,
                    node=node.name,
                    source=y.graph.get_tensor_by_name(tensor.name).node.source,
                )
        if self.copy.variables:
            values = (session or get_default_session() or Session(y.graph)).run(self.copy.variables, dict(given))
            fed |= dict(zip(self.copy.variables, values, strict=True))
        self.feeds = {self.copy.of(tensor): self.copy.value(tensor, value) for tensor, value in fed.items()}

    def check(self, delta: float, tolerance: float, most_elements: int) -> GradientCheck:
        base = self._run(self.y)
        if not np.array_equal(base, self._run(self.y), equal_nan=True):
            random = [f"'{node.name}' ({node.op})" for node in self.copy.graph.op_nodes() if node.op_def.is_stateful and node.outputs]
            raise InvalidArgumentError(
                f"check_gradient requires a y that is the same in every run with the same feeds, but '{self.y.name}' is not: "
                f"feed a value for {' or '.join(random) or 'what makes it differ'}",
                op=self.y.node.op,
                node=self.y.node.name,
            )
        weights = _weights(base)
        xs = [self.copy.of(x) for x in self.originals]
        with self.copy.graph.as_default():
            seed = self.copy.graph.apply_op("Placeholder", [], {"dtype": self.y.dtype.base, "shape": self.y.shape}, "weights").outputs[0]
            found = gradients(self.y, xs, grad_ys=seed)
        rounding = _ROUNDINGS * _epsilon(base) * float(np.sum(np.abs(_wide(weights) * _wide(base)))) / delta
        rows = []
        for original, x, gradient in zip(self.originals, xs, found, strict=True):
            value = np.asarray(self._run(x))
            analytic = np.zeros(value.shape) if gradient is None else self.session.run(gradient, {**self.feeds, seed: weights})
            chosen = _chosen(value.size, most_elements)
            numeric = np.array([self._difference(x, value, int(place), delta, weights) for place in chosen], np.complex128)
            rows.append(_row(original, value.shape, gradient is not None, chosen, analytic, numeric, (delta, tolerance, rounding)))
        return GradientCheck(y=self.y.name, inputs=tuple(rows), delta=delta, tolerance=tolerance, dtype=self.y.dtype.base.text)

    def _run(self, tensor: Tensor) -> Array:
        value: Array = self.session.run(tensor, self.feeds)
        return value

    def _difference(self, x: Tensor, value: Array, place: int, delta: float, weights: Array) -> complex:
        parts = (1.0, 1j) if value.dtype.kind == "c" else (1.0,)
        return sum((self._slope(x, value, place, delta, part, weights) * part for part in parts), 0j)

    def _slope(self, x: Tensor, value: Array, place: int, delta: float, direction: complex, weights: Array) -> float:
        """The derivative at element `place` in `direction`."""
        results, places = [], []
        step = delta * max(1.0, float(abs(_wide(value).flat[place])))
        for sign in (1, -1):
            moved = value.copy()
            moved.flat[place] = (_wide(value).flat[place] + sign * step * direction).astype(value.dtype)
            places.append(_wide(moved).flat[place])
            y: Array = self.session.run(self.y, {**self.feeds, x: moved})
            results.append(float(np.sum(np.conj(_wide(weights)) * _wide(y)).real))
        return (results[0] - results[1]) / float(abs(places[0] - places[1]))


def _row(
    x: Tensor,
    shape: tuple[int, ...],
    has_gradient: bool,
    chosen: Array,
    analytic: Array,
    numeric: Array,
    limits: tuple[float, float, float],
) -> InputCheck:
    delta, tolerance, rounding = limits
    got = _wide(np.asarray(analytic)).reshape(-1)[chosen]
    numeric = numeric if x.dtype.base.is_complex else numeric.real
    sizes = np.maximum(np.abs(got), np.abs(numeric))
    # Rounding and the third derivative make the differences inexact; an error of this size is tolerated.
    blur = (rounding + delta**2 * max(1.0, float(np.max(sizes, initial=0.0)))) / tolerance
    errors = np.abs(got - numeric) / np.maximum(sizes, blur)
    errors = np.where(np.isfinite(errors), errors, np.where(got == numeric, 0.0, np.inf))
    worst = int(np.argmax(errors)) if errors.size else None
    return InputCheck(
        name=x.name,
        dtype=x.dtype.base.text,
        shape=shape,
        has_gradient=has_gradient,
        checked=len(chosen),
        elements=int(np.prod(shape)),
        error=0.0 if worst is None else float(errors[worst]),
        worst=None if worst is None else tuple([int(i) for i in np.unravel_index(int(chosen[worst]), shape)]),
        gradient=0.0 if worst is None else got[worst].item(),
        difference=0.0 if worst is None else numeric[worst].item(),
        passed=worst is None or bool(errors[worst] <= tolerance),
    )


def _weights(y: Array) -> Array:
    if y.size == 1 and y.dtype.kind != "c":
        return np.ones_like(y)  # a scalar is not weighted, so that its gradient is the usual one
    random = np.random.default_rng(0)
    weights: Array = random.uniform(0.5, 1.5, y.shape)
    if y.dtype.kind == "c":
        weights = weights * np.exp(2j * np.pi * random.random(y.shape))
    return np.asarray(weights).astype(y.dtype)


def _wide(values: Array) -> Array:
    """Convert to double precision, which represents the values of all other dtypes."""
    return np.asarray(values, np.complex128 if values.dtype.kind == "c" else np.float64)


def _epsilon(values: Array) -> float:
    """The distance from 1 to the next number of that dtype."""
    if values.dtype.kind in "fc":
        return float(np.finfo(values.dtype).eps)
    return 2.0**-7  # bfloat16


def _chosen(size: int, most: int) -> Array:
    return np.arange(size) if size <= most else np.sort(np.random.default_rng(0).choice(size, most, replace=False))


def _floating(dtype: object) -> DType:
    found = as_dtype(dtype)
    if not found.is_floating:
        raise InvalidArgumentError(f"check_gradient computes in a floating dtype, got {found.text}")
    return found.base


def _require_differentiable(tensor: Tensor) -> None:
    if not (tensor.dtype.base.is_floating or tensor.dtype.base.is_complex):
        raise InvalidArgumentError.at(
            tensor.node, f"check_gradient requires tensors of floating or complex dtype, but '{tensor.name}' is {tensor.dtype.text}"
        )
