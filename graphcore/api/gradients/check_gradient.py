"""Comparison of gradients with central differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore.api.gradients.check_report import GradientCheck, InputCheck
from graphcore.api.gradients.gradients import tensors_of
from graphcore.api.gradients.stateless_copy import StatelessCopy
from graphcore.attrs import Array
from graphcore.dtypes import DType, as_dtype, complex128, float64
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.passes.gradients.gradients import build_gradients
from graphcore.plumbing import PLACEHOLDER
from graphcore.runtime import Session, get_default_session

_DELTAS: Final[Mapping[int, float]] = {8: 1e-5, 4: 5e-3}
_TOLERANCES: Final[Mapping[int, float]] = {8: 1e-5, 4: 2e-2}
_LOW_PRECISION: Final = (5e-2, 2e-1)
_ROUNDINGS: Final = 16
"""The roundings of the result by which the differences may be off."""
_CLOSER: Final = 10.0
"""The factor by which a step is smaller when an element is looked at again."""
_MOST_SUSPECTS: Final = 100


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
        dtype: the floating dtype of the computation. By default double, in which differences are precise, if every op involved allows it,
            otherwise the graph's own.
        session: the session with the values of the variables; the default session if None.
        most_elements: the number of elements to check of a larger input, chosen at random (always the same).

    Returns:
        One row for each input: the largest relative error, and its element with both values. True iff all are within the tolerance.
        Where the function has a kink, as `relu` has at 0, the slopes of both sides differ and there is no derivative to compare with: such
        elements are counted, and do not fail if the gradient lies between both slopes.

    Raises:
        InvalidArgumentError: a dtype that cannot be differentiated, a placeholder without a feed, a `y` that differs from run to run.
        FailedPreconditionError: a variable that is not initialised in the session.

    Example:
        >>> x = gc.constant([0.5, 2.0], name="x")
        >>> print(gc.check_gradient(gc.log(x), [x]))
        gradient of Log:0 against central differences: passed (delta 1e-05, tolerance 1e-05, double)
          input  dtype  shape  checked  error        worst at  gradient  difference
          x:0    float  [2]    2        ...  ok  [0]       2.27392   2.27392
    """
    targets = tensors_of(y, "y")
    if len(targets) != 1:
        raise InvalidArgumentError(f"check_gradient requires one y, got {len(targets)}")
    with targets[0].graph.as_default():  # names are resolved in this graph
        wanted = tensors_of(xs, "xs")
        fed = {tensors_of(key, "feed_dict")[0]: value for key, value in (feed_dict or {}).items()}
    if not wanted:
        raise InvalidArgumentError("check_gradient requires at least one x, got none")
    for tensor in (*targets, *wanted):
        _require_differentiable(tensor)
        targets[0].graph.as_graph_element(tensor)
    if most_elements < 1:
        raise InvalidArgumentError(f"check_gradient requires most_elements of at least 1, got {most_elements}")
    work = _work(targets[0], wanted, fed, dtype, session)
    size = work.y.dtype.size // (2 if work.y.dtype.is_complex else 1)
    step = delta if delta is not None else _DELTAS.get(size, _LOW_PRECISION[0])
    limit = tolerance if tolerance is not None else _TOLERANCES.get(size, _LOW_PRECISION[1])
    if not step > 0 or not limit > 0:
        raise InvalidArgumentError(f"check_gradient requires a delta and a tolerance above 0, got {step} and {limit}")
    return work.check(step, limit, most_elements)


def _work(y: Tensor, xs: Sequence[Tensor], fed: Mapping[Tensor, Any], dtype: object, session: Session | None) -> _Work:
    """The computation in the dtype asked for; else in double, if the ops allow it."""
    if dtype is not None:
        return _Work(y, xs, fed, _floating(dtype), session)
    if all(tensor.dtype.base in {float64, complex128} for tensor in (y, *xs)):
        return _Work(y, xs, fed, None, session)
    try:
        work = _Work(y, xs, fed, float64, session)
        work.run(work.y)
    except GraphError:  # an op that takes no doubles; any other error comes again
        return _Work(y, xs, fed, None, session)
    return work


def _present(gradients: Sequence[Tensor | None]) -> list[Tensor]:
    """The gradients that are not None."""
    return [gradient for gradient in gradients if gradient is not None]


class _UndoError(Exception):
    """Ends the transaction in which gradients were built, to take them back."""


class _Work:
    """A copy of the needed part of the graph with the gradients, a session and feeds.

    The gradients are built in the graph itself, to which custom gradients belong, copied, and taken back.
    """

    def __init__(
        self, y: Tensor, xs: Sequence[Tensor], feeds: Mapping[Tensor, Any], precision: DType | None, session: Session | None
    ) -> None:
        self.originals = list(xs)
        graph = y.graph
        try:
            with graph.transaction(), graph.as_default(), graph.name_scope(None), graph.control_dependencies(None):
                graph.finalized = False  # the transaction restores it
                attrs: dict[str, Any] = {"dtype": y.dtype.base, "shape": y.shape}
                seed = graph.apply_op("Placeholder", [], attrs, graph.unique_name("check_gradient/weights")).outputs[0]
                results = build_gradients(graph, [y], xs, [seed], name="check_gradient/")
                self.copy = StatelessCopy([y, *xs, *_present(results), seed], feeds, precision)
                self.seed = self.copy.of(seed)
                self.gradients = [None if gradient is None else self.copy.of(gradient) for gradient in results]
                raise _UndoError
        except _UndoError:
            self.y = self.copy.of(y)
        self.session = Session(self.copy.graph)
        fed = {tensor: value for tensor, value in feeds.items() if self.copy.holds(tensor)}
        for node in self.copy.graph.op_nodes():
            tensor = next((t for t in node.outputs if node.op in PLACEHOLDER), None)
            if (
                tensor is not None
                and tensor is not self.seed
                and y.graph.get_tensor_by_name(tensor.name) not in {*fed, *self.copy.variables}
            ):
                raise InvalidArgumentError(
                    f"check_gradient requires a value for the placeholder '{node.name}' ({tensor.dtype.text} {tensor.shape}) in feed_dict: "
                    f"'{y.name}' depends on it",
                    op=node.op,
                    node=node.name,
                    source=y.graph.get_tensor_by_name(tensor.name).node.source,
                )
        if self.copy.variables:
            values = (session or get_default_session() or Session(y.graph)).run(self.copy.variables, dict(feeds))
            fed |= dict(zip(self.copy.variables, values, strict=True))
        self.feeds = {self.copy.of(tensor): self.copy.value(tensor, value) for tensor, value in fed.items()}

    def check(self, delta: float, tolerance: float, most_elements: int) -> GradientCheck:
        base = self.run(self.y)
        if not np.array_equal(base, self.run(self.y), equal_nan=True):
            random = [f"'{node.name}' ({node.op})" for node in self.copy.graph.op_nodes() if node.op_def.is_stateful and node.outputs]
            raise InvalidArgumentError(
                f"check_gradient requires a y that is the same in every run with the same feeds, but '{self.y.name}' is not: "
                f"feed a value for {' or '.join(random) or 'what makes it differ'}",
                op=self.y.node.op,
                node=self.y.node.name,
            )
        weights = _weights(base)
        xs = [self.copy.of(x) for x in self.originals]
        rounding = _ROUNDINGS * _epsilon(base) * float(np.sum(np.abs(_wide(weights) * _wide(base)))) / delta
        rows = []
        for original, x, gradient in zip(self.originals, xs, self.gradients, strict=True):
            value = np.asarray(self.run(x))
            analytic = np.zeros(value.shape) if gradient is None else self.session.run(gradient, {**self.feeds, self.seed: weights})
            chosen = _chosen(value.size, most_elements)
            numeric = np.array([self._difference(x, value, int(place), delta, weights) for place in chosen], np.complex128)
            got = _wide(np.asarray(analytic)).reshape(-1)[chosen]
            compared = _Compared(got, numeric if x.dtype.base.is_complex else numeric.real, delta, tolerance, rounding)
            kinks = 0 if x.dtype.base.is_complex else self._look_closer(compared, x, value, chosen, weights)
            rows.append(compared.row(original, value.shape, chosen, has_gradient=gradient is not None, kinks=kinks))
        return GradientCheck(y=self.y.name, inputs=tuple(rows), delta=delta, tolerance=tolerance, dtype=self.y.dtype.base.text)

    def _look_closer(self, compared: _Compared, x: Tensor, value: Array, chosen: Array, weights: Array) -> int:
        """Compare the elements that differ with smaller steps. Returns the number of kinks."""
        kinks = 0
        for i in compared.wrong()[:_MOST_SUSPECTS]:
            place, step = int(chosen[i]), compared.delta / _CLOSER
            closer = self._difference(x, value, place, step, weights).real
            if compared.error_of(i, closer, _CLOSER) <= compared.tolerance:  # the first step reached beyond a kink nearby
                compared.numeric[i] = closer
                continue
            wide, near = [self._sides(x, value, place, size, weights) for size in (compared.delta, step)]
            if compared.is_kink(i, wide, near):
                compared.numeric[i] = compared.got[i]
                kinks += 1
        return kinks

    def _sides(self, x: Tensor, value: Array, place: int, delta: float, weights: Array) -> tuple[float, float]:
        """The slopes before and after element `place`."""
        here = self._at(x, value, weights)
        slopes = []
        for sign in (-1, 1):
            moved = value.copy()
            moved.flat[place] = (_wide(value).flat[place] + sign * delta * _size(value, place)).astype(value.dtype)
            change = float((_wide(moved).flat[place] - _wide(value).flat[place]).real)
            slopes.append((self._at(x, moved, weights) - here) / change if change else 0.0)
        return slopes[0], slopes[1]

    def _at(self, x: Tensor, value: Array, weights: Array) -> float:
        y: Array = self.session.run(self.y, {**self.feeds, x: value})
        return float(np.sum(np.conj(_wide(weights)) * _wide(y)).real)

    def run(self, tensor: Tensor) -> Array:
        """The value of a tensor of the copy at the point."""
        value: Array = self.session.run(tensor, self.feeds)
        return value

    def _difference(self, x: Tensor, value: Array, place: int, delta: float, weights: Array) -> complex:
        parts = (1.0, 1j) if value.dtype.kind == "c" else (1.0,)
        return sum((self._slope(x, value, place, delta, part, weights) * part for part in parts), 0j)

    def _slope(self, x: Tensor, value: Array, place: int, delta: float, direction: complex, weights: Array) -> float:
        """The derivative at element `place` in `direction`."""
        results, places = [], []
        step = delta * _size(value, place)
        for sign in (1, -1):
            moved = value.copy()
            moved.flat[place] = (_wide(value).flat[place] + sign * step * direction).astype(value.dtype)
            places.append(_wide(moved).flat[place])
            results.append(self._at(x, moved, weights))
        return (results[0] - results[1]) / float(abs(places[0] - places[1]))


class _Compared:
    """Gradients beside differences.

    Args:
        got: the gradients of the chosen elements.
        numeric: the differences.
        delta, tolerance: the step, and the largest relative error that passes.
        rounding: the error of the differences by rounding, for that step.
    """

    def __init__(self, got: Array, numeric: Array, delta: float, tolerance: float, rounding: float) -> None:
        self.got, self.numeric, self.delta, self.tolerance = got, numeric.copy(), delta, tolerance
        # Rounding and the third derivative make the differences inexact; an error of this size is tolerated.
        sizes = np.maximum(np.abs(got), np.abs(numeric))
        self._rounding = rounding
        self._curved = delta**2 * max(1.0, float(np.max(sizes, initial=0.0)))

    def _errors(self, got: Array, numeric: Array, rounding: float) -> Array:
        sizes = np.maximum(np.abs(got), np.abs(numeric))
        errors = np.abs(got - numeric) / np.maximum(sizes, (rounding + self._curved) / self.tolerance)
        return np.where(np.isfinite(errors), errors, np.where(got == numeric, 0.0, np.inf))

    def wrong(self) -> list[int]:
        """The elements that differ."""
        return [int(i) for i in np.flatnonzero(self._errors(self.got, self.numeric, self._rounding) > self.tolerance)]

    def error_of(self, i: int, numeric: float, closer: float) -> float:
        """The error of an element beside a difference with a step that is smaller by a factor."""
        return float(self._errors(self.got[i], np.asarray(numeric), self._rounding * closer))

    def is_kink(self, i: int, wide: tuple[float, float], near: tuple[float, float]) -> bool:
        """True iff the slopes of both sides differ for every step, and the gradient lies between them."""
        jump, jump_near = abs(wide[1] - wide[0]), abs(near[1] - near[0])
        least = self.tolerance * max(abs(near[0]), abs(near[1]), 1e-30)
        slack = least + self._rounding * _CLOSER
        return jump_near > max(least, jump / 2) and min(near) - slack <= self.got[i].real <= max(near) + slack

    def row(self, x: Tensor, shape: tuple[int, ...], chosen: Array, *, has_gradient: bool, kinks: int) -> InputCheck:
        """The row of an input in the report."""
        errors = self._errors(self.got, self.numeric, self._rounding)
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
            gradient=0.0 if worst is None else self.got[worst].item(),
            difference=0.0 if worst is None else self.numeric[worst].item(),
            passed=worst is None or bool(errors[worst] <= self.tolerance),
            kinks=kinks,
        )


def _size(value: Array, place: int) -> float:
    """The unit of the step at an element."""
    return max(1.0, float(abs(_wide(value).flat[place])))


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
    precision = as_dtype(dtype)
    if not precision.is_floating:
        raise InvalidArgumentError(f"check_gradient computes in a floating dtype, got {precision.text}")
    return precision.base


def _require_differentiable(tensor: Tensor) -> None:
    if not (tensor.dtype.base.is_floating or tensor.dtype.base.is_complex):
        raise InvalidArgumentError.at(
            tensor.node, f"check_gradient requires tensors of floating or complex dtype, but '{tensor.name}' is {tensor.dtype.text}"
        )
