"""Random graphs of arithmetic, variables, control edges, and nested TensorFlow 1 control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.runtime.loop_graphs import cond, enter, op, while_loop

Tensor = gc.Tensor
_BINARY = ("AddV2", "Sub", "Mul", "Maximum", "Minimum")
_UNARY = ("Tanh", "Neg", "Abs", "Sigmoid")
_MAX_DEPTH = 3
HANDLE = "the_variable"

NUMBERS: Final = st.lists(st.integers(0, 2**16), min_size=30, max_size=160)


class Choices:
    """Choices from a list of numbers; when they are used up, the first option."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.left = list(numbers)

    def pick(self, count: int) -> int:
        """A number below `count`."""
        return self.left.pop(0) % count if self.left else 0


class Program:
    """A random graph.

    Attributes:
        x, p: placeholders, float [2] and bool.
        values: tensors with a value in every run.
        inner: tensors on branches, which may be dead.
        start: the initialiser of the variable; `state` reads it.
        end: a node with control inputs from all changes of the variable.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self.choices = Choices(numbers)
        self.frames = 0
        self.inner: list[Tensor] = []
        self.graph = gc.Graph()
        with self.graph.as_default():
            self.x = gc.placeholder(gc.float32, [2], name="x")
            self.p = gc.placeholder(gc.bool_, [], name="p")
            kind = "VariableV2" if self.choices.pick(2) else "VarHandleOp"
            handle = op(kind, attrs={"dtype": gc.float32, "shape": gc.Shape([2]), "shared_name": HANDLE})
            first = gc.constant(np.array([0.5, -0.25], np.float32))
            self.start = self.graph.apply_op("Assign" if handle.dtype.is_ref else "AssignVariableOp", [handle, first], name="start")
            self.state = read(handle)
            token = gc.constant(0)
            self.values, token = self._block([self.x, first], token, handle, self.p, 0)
            self.end = self.graph.apply_op("Identity", [token], name="end").outputs[0]

    def _block(self, values: list[Tensor], token: Tensor, handle: Tensor, flag: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        """Some random nodes on top of `values`; changes of the variable are ordered along `token`."""
        values = list(values)
        for _ in range(2 + self.choices.pick(5)):
            kind = self.choices.pick(10)
            if kind < 3:
                values.append(op("Tanh", [op(_BINARY[self.choices.pick(5)], [self._any(values), self._any(values)])]))
            elif kind == 3:
                values.append(op(_UNARY[self.choices.pick(4)], [self._any(values)]))
            elif kind < 6:
                values.append(self._waiting(values, kind))
            elif kind == 6:
                token = self._change(values, token, handle)
            elif kind < 9 and depth < _MAX_DEPTH:
                build = self._branch if kind == 7 else self._loop
                found, token = build(values, token, handle, flag, depth)
                values += found
        return values, token

    def _waiting(self, values: list[Tensor], kind: int) -> Tensor:
        """A node with a control input, as constants in loops require."""
        value = self._any(values)
        with gc.control_dependencies([self._any(values).node]):
            if kind == 4:
                return as_tensor(op("Identity", [value]))
            return as_tensor(op("AddV2", [gc.constant(np.array([0.25 * self.choices.pick(8), -1.0], np.float32)), value]))

    def _any(self, values: list[Tensor]) -> Tensor:
        return values[-1 - self.choices.pick(len(values))]

    def _change(self, values: list[Tensor], token: Tensor, handle: Tensor) -> Tensor:
        name = ("AssignAdd", "AssignSub", "Assign")[self.choices.pick(3)] + ("" if handle.dtype.is_ref else "VariableOp")
        value = self._any(values)
        changed = after([token.node], lambda: gc.get_default_graph().apply_op(name, [handle, value]))
        found = after([changed], lambda: read(handle))
        values.append(op("Tanh", [found]))
        return as_tensor(after([found.node], lambda: op("Identity", [token])))

    def _pred(self, values: list[Tensor], flag: Tensor) -> Tensor:
        kind = self.choices.pick(3)
        if not kind:
            return flag
        axes = after([values[0].node], lambda: gc.constant(np.array([0], np.int32)))
        zero = after([values[0].node], lambda: gc.constant(np.float32(0.1)))
        large = op("Less", [zero, op("Sum", [self._any(values), axes])])
        return as_tensor(large if kind == 1 else op("LogicalAnd", [large, flag]))

    def _branch(self, values: list[Tensor], token: Tensor, handle: Tensor, flag: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        wanted = 1 + self.choices.pick(2)
        pred = self._pred(values, flag)
        taken = [self._any(values) for _ in range(2)]

        def side(token: Tensor, handle: Tensor, flag: Tensor, *taken: Tensor) -> list[Tensor]:
            # A control input from an Identity is on the branch, one from the Switch is not.
            token, *values = [op("Identity", [value]) for value in (token, *taken)]
            found, token = self._block(values, token, handle, flag, depth + 1)
            if not depth:
                self.inner.append(found[-1])
            return [token, *found[-wanted:]]

        token, *found = cond(pred, [token, handle, flag, *taken], side, side)
        return found, token

    def _loop(self, values: list[Tensor], token: Tensor, handle: Tensor, flag: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        self.frames += 1
        frame = f"loop{self.frames}"
        turns, parallel = self.choices.pick(4), 1 + self.choices.pick(3)
        carried = [self._any(values) for _ in range(1 + self.choices.pick(2))]
        limit = enter(after([token.node], lambda: gc.constant(turns)), frame, constant=True)
        one = enter(after([token.node], lambda: gc.constant(1)), frame, constant=True)
        inside_handle, inside_flag = enter(handle, frame, constant=True), enter(flag, frame, constant=True)
        outside = enter(self._any(values), frame, constant=True)

        def body(i: Tensor, token: Tensor, *carried: Tensor) -> list[Tensor]:
            # Loop invariants still belong to an iteration, by a control input from the counter.
            here = after([i.node], lambda: op("Identity", [outside]))
            flag = after([i.node], lambda: op("Identity", [inside_flag]))
            found, token = self._block([here, *carried], token, inside_handle, flag, depth + 1)
            return [op("AddV2", [i, one]), token, *found[-len(carried) :]]

        start = after([token.node], lambda: gc.constant(0))
        _, token, *found = while_loop(lambda i, *_: op("Less", [i, limit]), body, [start, token, *carried], frame, parallel)
        return found, token


def read(handle: Tensor) -> Tensor:
    """The value of a variable, given by reference or handle."""
    return as_tensor(op("Identity", [handle]) if handle.dtype.is_ref else op("ReadVariableOp", [handle], {"dtype": gc.float32}))


def as_tensor(found: Any) -> Tensor:
    """`found` as a tensor."""
    assert isinstance(found, Tensor)
    return found


def after(nodes: Sequence[Any], make: Callable[[], Any]) -> Any:
    """The result of `make` within control dependencies on `nodes`."""
    with gc.control_dependencies(list(nodes)):
        return make()


def outcome(program: Program, session: gc.Session, feeds: dict[Any, Any]) -> list[Any]:
    """All values of two runs, the variable after them, and for tensors on branches the value or "dead"."""
    session.run(program.start)
    values = [plain(value) for _ in range(2) for value in session.run([*program.values, program.end], feeds)]
    values.append(plain(session.run(program.state)))
    for tensor in program.inner:
        session.run(program.start)
        try:
            values.append(plain(session.run(tensor, feeds)))
        except gc.errors.InvalidArgumentError as error:
            values.append(("dead", error.message))
    return values


def plain(value: Any) -> tuple[str, Any]:
    """A value for bitwise comparison, from an array or a scalar."""
    array = np.asarray(value)
    assert np.isfinite(array).all()
    return str(array.dtype), array.tolist()
