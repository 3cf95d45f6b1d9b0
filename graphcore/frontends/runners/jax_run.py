"""Runs of JAX programs, equation by equation, by JAX itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.jax_reader.equations import CALLS, only_body, opened, results_of
from graphcore.runtime.runners import inner_call

if TYPE_CHECKING:
    from graphcore.runtime.runners import Watch

MAX_TURNS: Final = 1000
"""The most iterations of a loop that run equation by equation; a longer scan, and the rest of a longer while, run as JAX runs them."""
_INLINE: Final = CALLS | {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
"""Primitives whose bodies run here."""


@dataclass(slots=True)
class Places:
    """The nodes that stand for the parts of a program, by the ids of variables and equations.

    Attributes:
        names: the names of nodes in the source.
        bodies: for equations with bodies the keys of their functions, by role.
        kept: what has these ids.
    """

    names: dict[int, str] = field(default_factory=dict)
    bodies: dict[int, Mapping[str, str]] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)

    def note(self, part: Any, name: str, bodies: Mapping[str, str] | None = None) -> None:
        """A variable or an equation is a node."""
        self.names[id(part)] = name
        if bodies:
            self.bodies[id(part)] = bodies
        self.kept.append(part)


@dataclass(slots=True)
class JaxRunner:
    """Runs one program. Its results are those of the program under `jax.disable_jit()`, bit for bit.

    Callbacks of the program are made, as they would be by a plain call. Random numbers are functions of keys, so that nothing else changes.

    Attributes:
        jaxpr, consts: the program.
        places: the nodes that stand for its parts.
        arguments: the arguments of the call of which the program was traced, in the order of its inputs; none for other programs.
    """

    jaxpr: Any
    consts: Sequence[Any]
    places: Places
    arguments: Sequence[Any] = ()

    def run(self, feeds: Mapping[str, object], watch: Watch | None = None) -> list[object]:
        """Run the program once; see `Runner`.

        Raises:
            InvalidArgumentError: a value is missing, or has another shape than the program was traced for.
        """
        names = [self.places.names[id(var)] for var in self.jaxpr.invars]
        values = {**dict(zip(names, self.arguments, strict=False)), **feeds}
        missing = [name for name in names if name not in values]
        if missing:
            raise InvalidArgumentError(f"Required values for the inputs {', '.join(names)}; got none for {', '.join(missing)}")
        args = [_converted(values[name], var.aval, name) for name, var in zip(names, self.jaxpr.invars, strict=True)]
        results = _Evaluation(self.places, watch).run(self.jaxpr, self.consts, args, "")
        jax: Any = sys.modules["jax"]
        return [value if isinstance(value, jax.Array) else jax.numpy.asarray(value) for value in results]  # of constants


class _Evaluation:
    """One run.

    Args:
        places: the nodes that stand for parts of the program.
        watch: follows the run.
    """

    def __init__(self, places: Places, watch: Watch | None) -> None:
        self._names = places.names
        self._bodies = places.bodies
        self._watch = watch
        self._runs: dict[str, int] = {}
        self._strategies: dict[str, Callable[[Any, list[Any], _Call], list[Any] | None]] = {
            "scan": self._scan,
            "while": self._while,
            "cond": self._cond,
        }

    def run(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], call: str) -> list[Any]:
        """The results of a jaxpr. A value is released after the last equation that takes it."""
        values: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
        if self._watch is not None:
            for var, value in values.items():
                if id(var) in self._names:
                    self._watch.give(self._names[id(var)], [value], call)
        dead = _last_uses(jaxpr)
        for place, eqn in enumerate(jaxpr.eqns):
            inputs = [_value(var, values) for var in eqn.invars]
            for var in dead[place]:
                values.pop(var, None)
            outputs = self._equation(eqn, inputs, call)
            values.update([(var, value) for var, value in zip(eqn.outvars, outputs, strict=True) if type(var).__name__ != "DropVar"])
            del inputs, outputs
        return [_value(var, values) for var in jaxpr.outvars]

    def _equation(self, eqn: Any, inputs: list[Any], call: str) -> list[Any]:
        name = self._names.get(id(eqn))
        watch = self._watch if name is not None else None
        if watch is not None and name is not None:
            watch.begin(name, call)
        outputs = self._computed(eqn, inputs, _Call(call, name, self._bodies.get(id(eqn), {}), self._runs))
        if watch is not None and name is not None:
            watch.end(name, outputs, call)
        return outputs

    def _computed(self, eqn: Any, inputs: list[Any], call: _Call) -> list[Any]:
        """The outputs of an equation: of its body if it has one that runs here, else of its primitive."""
        word = str(eqn.primitive.name)
        results = None
        if word in _INLINE:
            results = self._inline(eqn, inputs, call)
        elif word in self._strategies:
            results = self._strategies[word](eqn, inputs, call)
        return results_of(eqn, inputs) if results is None else results

    def _inline(self, eqn: Any, inputs: list[Any], call: _Call) -> list[Any] | None:
        body = only_body(eqn)
        if body is None:
            return None
        role, value = body
        jaxpr, consts = opened(value)
        if len(jaxpr.invars) != len(inputs) or len(jaxpr.constvars) != len(consts):
            return None
        return self.run(jaxpr, consts, inputs, call.of(role))

    def _cond(self, eqn: Any, inputs: list[Any], call: _Call) -> list[Any]:
        branches = eqn.params["branches"]
        chosen = min(max(int(inputs[0]), 0), len(branches) - 1)
        role = ("else", "then")[chosen] if len(branches) == 2 else f"branch_{chosen}"
        return self.run(*opened(branches[chosen]), inputs[1:], call.of(role))

    def _scan(self, eqn: Any, inputs: list[Any], call: _Call) -> list[Any] | None:
        params = eqn.params
        length, consts, carried = int(params["length"]), int(params["num_consts"]), int(params["num_carry"])
        if not 0 < length <= MAX_TURNS:
            return None
        numpy: Any = sys.modules["jax"].numpy
        jaxpr, held = opened(params["jaxpr"])
        fixed, carry, scanned = inputs[:consts], inputs[consts : consts + carried], inputs[consts + carried :]
        turns = range(length - 1, -1, -1) if params["reverse"] else range(length)
        rows: list[list[Any]] = []
        for turn in turns:
            outputs = self.run(jaxpr, held, [*fixed, *carry, *[value[turn] for value in scanned]], call.of("body"))
            carry = outputs[:carried]
            rows.append(outputs[carried:])
        if params["reverse"]:
            rows.reverse()
        return [*carry, *[numpy.stack(column) for column in zip(*rows, strict=True)]]

    def _while(self, eqn: Any, inputs: list[Any], call: _Call) -> list[Any]:
        params = eqn.params
        first, second = int(params["cond_nconsts"]), int(params["cond_nconsts"]) + int(params["body_nconsts"])
        of_cond, of_body, state = inputs[:first], inputs[first:second], inputs[second:]
        condition, body = opened(params["cond_jaxpr"]), opened(params["body_jaxpr"])
        for _ in range(MAX_TURNS):
            if not bool(self.run(*condition, [*of_cond, *state], call.of("cond"))[0]):
                return state
            state = self.run(*body, [*of_body, *state], call.of("body"))
        return results_of(eqn, [*of_cond, *of_body, *state])


@dataclass(slots=True)
class _Call:
    """An equation that calls bodies.

    Attributes:
        around: the calls around it.
        name: its node, None if the graph does not show it.
        bodies: the keys of its functions, by role.
        runs: the number of runs of each body, by its calls.
    """

    around: str
    name: str | None
    bodies: Mapping[str, str]
    runs: dict[str, int]

    def of(self, role: str) -> str:
        """The surrounding calls in the body with this role, which begins to run."""
        if self.name is None or role not in self.bodies:
            return self.around
        call = inner_call(self.around, self.name, self.bodies[role])
        count = self.runs[call] = self.runs.get(call, 0) + 1
        return inner_call(self.around, self.name, self.bodies[role], count)


def _value(var: Any, values: Mapping[Any, Any]) -> Any:
    return var.val if hasattr(var, "val") else values[var]


def _last_uses(jaxpr: Any) -> list[list[Any]]:
    """For each equation the variables that no later one takes, and that are no results."""
    kept = {var for var in jaxpr.outvars if not hasattr(var, "val")}
    dead: list[list[Any]] = [[] for _ in jaxpr.eqns]
    for place, var in _reversed_uses(jaxpr):
        if var not in kept:
            kept.add(var)
            dead[place].append(var)
    return dead


def _reversed_uses(jaxpr: Any) -> Iterator[tuple[int, Any]]:
    for place in range(len(jaxpr.eqns) - 1, -1, -1):
        for var in jaxpr.eqns[place].invars:
            if not hasattr(var, "val"):
                yield place, var


def _converted(value: Any, aval: Any, name: str) -> Any:
    """A fed value as an array of JAX.

    Raises:
        InvalidArgumentError: it has another type or shape than the program was traced for.
    """
    jax: Any = sys.modules["jax"]
    dtype, shape = getattr(aval, "dtype", None), getattr(aval, "shape", None)
    if dtype is None or jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
        array = value
    else:
        array = jax.numpy.asarray(value)
        if array.dtype != dtype:
            if not jax.numpy.can_cast(array.dtype, dtype, casting="same_kind"):
                raise InvalidArgumentError(f"Input '{name}': required {aval.str_short()}, got values of type {array.dtype}")
            array = array.astype(dtype)
    if shape is not None and tuple(getattr(array, "shape", ())) != tuple(shape):
        raise InvalidArgumentError(f"Input '{name}': required the shape {list(shape)}, got {list(getattr(array, 'shape', ()))}")
    return array
