"""Factory of optimizer ops from update rules: on references and resources, for all rows or some."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, Final

from graphcore.inference import InferenceContext, ShapeHandle
from graphcore.kernel_context import KernelContext, RefVariable
from graphcore.opset.arrays.gathering import checked_indices
from graphcore.opset.framework.block import Example, Kernel, define_op, no_registered_gradient
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import INDEX, NUMBER
from graphcore.registry import KernelFactory, ShapeFn
from graphcore.support.critical_section import critical_section
from graphcore.traits import declares_traits

Rule = Callable[..., tuple[Any, ...]]

_NO_GRADIENT: Final = no_registered_gradient("it changes variables; differentiate before it")
DENSE: Final = ("Apply", "ResourceApply")
"""The prefixes of the ops that apply a rule to whole variables."""
SPARSE: Final = ("SparseApply", "ResourceSparseApply")
"""The prefixes of the ops that apply a rule to the rows of variables that have a gradient."""

_GRADIENTS: Final = frozenset({"grad", "delta"})
"""The inputs that are shaped like the variable; all others are scalars."""
_INDICES: Final = "indices"
_TYPES: Final = {_INDICES: "Tindices", "global_step": "int64"}
"""The types of the inputs that are not of the variable's type."""
_EXAMPLE_VARIABLE: Final = [[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]
_EXAMPLE_GRADIENT: Final = [[0.5, 0.25, -1.0], [2.0, -0.5, 0.125]]
_EXAMPLE_SLOT: Final = [[2.0, 1.5, 3.0], [4.5, 2.5, 1.75]]
_EXAMPLE_SCALARS: Final = {"lr_power": -0.5, "epsilon": 0.125, "beta1_power": 0.5, "beta2_power": 0.25, "global_step": 3}


def optimizer(name: str, *, prefixes: Sequence[str] = DENSE + SPARSE) -> Callable[[Rule], Rule]:
    """Register the ops that apply an update rule, a function from values to new values.

    The op's inputs and attrs are the parameters of the rule: after the array module, those before `/` are variables, the trained one first,
    and the results are their new values; then come the other inputs; those after `*` are attrs with their defaults. The op has the rule's
    docstring. A rule computes each element separately, so that it applies to some rows as well: a sparse op takes the gradients of rows,
    followed by their indices, and applies the rule repeatedly to a repeated row.

    Args:
        name: the name of the ops after the prefix.
        prefixes: the prefixes among `DENSE` and `SPARSE` for which an op exists.
    """

    def register(rule: Rule) -> Rule:
        parameters = list(inspect.signature(rule).parameters.values())
        variables = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY][1:]
        dense = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
        flags = {parameter.name: parameter.default for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
        for prefix in prefixes:
            inputs = [part for arg in dense for part in _with_indices(arg)] if prefix in SPARSE else dense
            define_op(
                f"{prefix}{name}",
                _doc(rule, inputs),
                signature=_signature(f"{prefix}{name}", variables, inputs, flags, on_references=not prefix.startswith("Resource")),
                shape=_shape(len(variables), inputs),
                kernel=_kernel(rule, len(variables), inputs, flags),
                gradient=_NO_GRADIENT,
                examples=_examples(len(variables), inputs, flags),
            )
        return rule

    return register


def _with_indices(arg: str) -> list[str]:
    return ["grad", _INDICES] if arg in _GRADIENTS else [arg]


def _doc(rule: Rule, inputs: Sequence[str]) -> str | None:
    doc = inspect.cleandoc(rule.__doc__ or "")
    if _INDICES not in inputs:
        return doc
    summary, _, rest = doc.partition("\n\n")
    return f"{summary}\n\nOnly the rows with a gradient change.\n\ngrad: [n, ...], gradients of rows\nindices: [n], the rows\n{rest}"


def _signature(name: str, variables: Sequence[str], inputs: Sequence[str], flags: dict[str, bool], *, on_references: bool) -> str:
    attrs = "".join([f", {flag}:bool = {str(default).lower()}" for flag, default in flags.items()])
    index = f", Tindices:{INDEX}" if _INDICES in inputs else ""
    kind, output = ("Ref(T)", "out:Ref(T)") if on_references else ("resource", "")
    args = ", ".join([*[f"{arg}:{kind}" for arg in variables], *[f"{arg}:{_TYPES.get(arg, 'T')}" for arg in inputs]])
    return f"{name}[T:{NUMBER}{index}, use_locking:bool = false{attrs}]({args}) -> ({output})"


def _shape(count: int, inputs: Sequence[str]) -> ShapeFn:
    """Variables and gradients have one shape, or one shape of rows; the rest are scalars."""
    sparse = _INDICES in inputs

    def shape(c: InferenceContext) -> None:
        shape = _variable_shape(c, 0)
        for i in range(1, count):
            shape = c.merge(shape, _variable_shape(c, i))
        for i, name in enumerate(inputs, count):
            if name in _GRADIENTS:
                if sparse:
                    rows = c.with_rank_at_least(c.input(i), 1)
                    c.merge_dim(c.dim(c.with_rank(c.input(i + 1), 1), 0), c.dim(rows, 0))
                    wanted = c.concatenate(c.vector(c.unknown_dim()), c.subshape(c.with_rank_at_least(shape, 1), 1))
                    c.merge(rows, wanted)
                else:
                    shape = c.merge(shape, c.input(i))
            elif name != _INDICES:
                c.with_rank(c.input(i), 0)
        if c.num_outputs:
            c.set_output(0, shape)

    return shape


def _variable_shape(c: InferenceContext, i: int) -> ShapeHandle:
    if c.op_def.input_arg[i].is_ref:
        return c.input(i)
    data = c.input_handle_shapes_and_types(i)
    return data[0].shape if data else c.unknown_shape()


def _kernel(rule: Rule, count: int, inputs: Sequence[str], flags: dict[str, bool]) -> KernelFactory:
    """A kernel that reads the variables, checks the gradient's shape, and assigns the new values."""
    gradient = next(i for i, name in enumerate(inputs, count) if name in _GRADIENTS)
    sparse = _INDICES in inputs

    @declares_traits(writes_input=True)
    def kernel(k: KernelContext) -> Kernel:
        xp, returns_variable = k.xp, bool(k.output_types)
        chosen = {flag: k.attrs.get(flag) for flag in flags}

        def check_shapes(shapes: Sequence[tuple[int, ...]]) -> None:
            for shape in shapes:
                if shape != shapes[0]:
                    raise invalid(k, f"var and its gradient and slots must have the same shape: {list(shapes[0])} {list(shape)}")

        def updated(values: list[Any], rest: Sequence[Any]) -> tuple[Any, ...]:
            check_shapes([*[value.shape for value in values], rest[gradient - count].shape])
            return rule(xp, *values, *rest, **chosen)

        def updated_rows(values: list[Any], rest: Sequence[Any]) -> tuple[Any, ...]:
            before, (rows, indices), after = rest[: gradient - count], rest[gradient - count :][:2], rest[gradient - count + 2 :]
            check_shapes([value.shape for value in values])
            if not values[0].ndim or indices.ndim != 1 or rows.shape != indices.shape + values[0].shape[1:]:
                raise invalid(
                    k,
                    f"required indices of shape [n], and a gradient of shape [n] + the variable's {list(values[0].shape)} without its first "
                    f"dimension; got {list(indices.shape)} and {list(rows.shape)}",
                )
            checked_indices(k, indices, values[0].shape[0])
            changed = [value.copy() for value in values]
            for chosen_rows, of_gradient in _rounds(xp, indices):
                parts = [value[chosen_rows] for value in changed]
                results = rule(xp, *parts, *before, rows[of_gradient], *after, **chosen)
                for value, result in zip(changed, results, strict=True):
                    value[chosen_rows] = result
            return tuple(changed)

        update = updated_rows if sparse else updated

        def apply(*arguments: Any) -> RefVariable | None:
            variables = arguments[:count]
            with variables[0].lock if count == 1 else _Locks(variables):
                _assign(variables, update([variable.read() for variable in variables], arguments[count:]))
            return variables[0] if returns_variable else None

        return apply

    return kernel


def _rounds(xp: Any, indices: Any) -> Iterator[tuple[Any, Any]]:
    """Split indices so that no row is twice in a round.

    Yields the rows of each round, and their places in `indices`.
    """
    places = xp.argsort(indices, kind="stable")
    rows = indices[places]
    while rows.size:
        first = xp.ones(rows.shape, bool)
        first[1:] = rows[1:] != rows[:-1]
        yield rows[first], places[first]
        rows, places = rows[~first], places[~first]


def _examples(count: int, inputs: Sequence[str], flags: dict[str, bool]) -> tuple[Example, ...]:
    """One example with numbers that are valid for every rule, and one for each inverted flag."""
    arrays = {_INDICES: [1, 1], **dict.fromkeys(_GRADIENTS, _EXAMPLE_GRADIENT)}
    values = [_EXAMPLE_VARIABLE, *[_EXAMPLE_SLOT] * (count - 1), *[arrays.get(name, _EXAMPLE_SCALARS.get(name, 0.75)) for name in inputs]]
    return (Example(values), *[Example(values, {flag: not default}) for flag, default in flags.items()])


class _Locks:
    """The locks of several variables, acquired once each in a global order."""

    __slots__ = ("_locks", "_taken")

    def __init__(self, variables: Iterable[RefVariable]) -> None:
        self._locks = sorted({variable.lock for variable in variables}, key=id)
        self._taken: list[Lock] = []

    @critical_section.cover
    def __enter__(self) -> None:
        critical_section.begin()
        try:
            for lock in self._locks:
                if not lock.acquire(blocking=False):
                    critical_section.acquire(lock)
                self._taken.append(lock)
            if critical_section.deferred is not None:
                critical_section.end()
        except BaseException:  # Ctrl-C while it waits
            self.__exit__()
            raise

    @critical_section.cover
    def __exit__(self, *_error: object) -> None:
        for lock in self._taken:
            lock.release()
        if critical_section.deferred is not None:
            critical_section.end()


@critical_section.cover
def _assign(variables: Iterable[RefVariable], values: Iterable[Any]) -> None:
    """Assign several variables atomically with respect to Ctrl-C; their locks are held."""
    critical_section.begin()
    try:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
    finally:
        if critical_section.deferred is not None:
            critical_section.end()
