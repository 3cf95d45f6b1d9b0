"""Random programs with side effects and gradients within nested branches, loops and maps.

They are written in TensorFlow 1's names, and run with `graphcore` and with TensorFlow. Effects follow a token, so that their order is
determined.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any, Final

import numpy as np

Tensor = Any
_numbers: Final = itertools.count()
_DEEPEST = 2
_RUNS = (True, False, True)


class Program:
    """A random program in the default graph.

    Args:
        tf: the module with TensorFlow 1's names.
        seed: the seed of its statements.
    """

    def __init__(self, tf: Any, seed: int) -> None:
        self.tf = tf
        self.random = random.Random(seed)
        self._noted: dict[float, str] = {}
        self.length = self.random.randint(2, 5)
        self.p = tf.placeholder(tf.bool, [], name="p")
        self.x = tf.placeholder(tf.float32, [], name="x")
        self.queue = tf.FIFOQueue(1000, tf.float32, shapes=[()])
        self.fill = self.queue.enqueue_many([[0.01 * number for number in range(300)]])
        dataset = tf.data.Dataset.range(1, 100_000)
        self.iterator = tf.data.make_initializable_iterator(dataset)
        self.own = self.functions()
        self.variables = [tf.Variable(0.5, use_resource=kind, trainable=False) for kind in (False, True)]
        values, token = self.block([self.x, tf.constant(0.7), tf.tanh(self.x * 0.3)], tf.constant(0), 0)
        self.fetches = [*values[-4:], token]
        if self.length == 2:  # through deeper programs it takes long to build
            self.fetches += self.gradients(tf.add_n(values[-3:]), [self.x])

    @property
    def notes(self) -> list[str]:
        """For each call of `gradients`, which of them are None."""
        return [text for _, text in sorted(self._noted.items())]

    def run(self, session_options: dict[str, Any] | None = None) -> list[list[float]]:
        """The values of several runs, and then the state."""
        tf = self.tf
        found = []
        with tf.Session(**(session_options or {})) as session:
            session.run([tf.global_variables_initializer(), self.iterator.initializer, self.fill])
            for number, flag in enumerate(_RUNS):
                found.append([float(value) for value in session.run(self.fetches, {self.p: flag, self.x: 0.4 - 0.3 * number})])
            found.append([float(value) for value in session.run([*[v.read_value() for v in self.variables], self.queue.size()])])
        return found

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, values: list[Tensor], token: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        """Some random statements; returns the values after them, and the token."""
        values = list(values)
        token = self.tf.identity(token)
        for _ in range(self.random.randint(1, 2) if depth else self.length):
            kinds: list[Callable[..., tuple[list[Tensor], Tensor]]] = [
                self.arithmetic,
                self.effect,
                self.effect,
                self.gradient,
                self.unneeded,
                self.own_gradient,
            ]
            if depth < _DEEPEST and self.random.random() < 0.4**depth:
                kinds += [self.branch, self.loop, self.rows, self.fold, self.array]
            found, token = self.random.choice(kinds)(values, token, depth)
            values = [*values, *found]  # bodies keep the list of their time
        return values, token

    def any(self, values: list[Tensor]) -> Tensor:
        return values[-1 - min(self.random.randrange(len(values)), self.random.randrange(len(values)))]

    def formula(self, values: list[Tensor]) -> Tensor:
        tf, (a, b, c) = self.tf, [self.any(values) for _ in range(3)]
        kind = self.random.randrange(4)
        made = [lambda: a * b + c, lambda: a - b * c, lambda: tf.square(a) * b, lambda: tf.maximum(a, b) * 0.5 + c][kind]()
        return tf.tanh(made)

    def arithmetic(self, values: list[Tensor], token: Tensor, _: int) -> tuple[list[Tensor], Tensor]:
        return [self.formula(values)], token

    def effect(self, values: list[Tensor], token: Tensor, _: int) -> tuple[list[Tensor], Tensor]:
        """An effect after the token; the new token is after the effect."""
        tf, kind, value = self.tf, self.random.randrange(6), self.any(values)
        with tf.control_dependencies([token]):
            if kind == 0:
                found = self.queue.dequeue()
            elif kind == 1:
                found = self.queue.enqueue(value)
            elif kind == 2:
                found = tf.cast(self.iterator.get_next(), tf.float32) * 0.01
            else:
                variable = self.variables[kind % 2]
                changed = variable.assign_add(value) if kind < 5 else variable.assign(tf.tanh(value))
                with tf.control_dependencies([changed]):
                    found = variable.read_value() * 0.5
        with tf.control_dependencies([found]):
            token = token + 1
        return [] if kind == 1 else [tf.tanh(found)], token

    def unneeded(self, values: list[Tensor], token: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        """Effects that nothing waits for: in a body they do not run. Outside of bodies no run fetches them."""
        kind, value = self.random.randrange(3), self.any(values)
        if kind == 0:
            self.queue.dequeue()
        elif kind == 1:
            self.variables[self.random.randrange(2)].assign_add(value)
        else:
            self.iterator.get_next()
        return [], token

    def functions(self) -> list[Callable[[Tensor], Tensor]]:
        """Functions with gradients of their own, and one of Python, which has none."""
        tf, x = self.tf, self.x
        custom: Callable[[Any], Any] = tf.custom_gradient
        name = f"BodyProgram{next(_numbers)}"
        tf.RegisterGradient(name)(lambda op, grad: grad * (0.3 + op.outputs[0] * op.inputs[0]))

        def overridden(v: Tensor) -> Tensor:
            with tf.get_default_graph().gradient_override_map({"Tanh": name, "Floor": "Identity"}):
                return tf.tanh(v) + tf.floor(v * 3.0) * 0.2

        @custom
        def closing(v: Tensor) -> Any:
            e = tf.exp(-tf.square(v))
            return e * v, lambda dy: dy * (e - 0.5) * tf.tanh(x)

        @custom
        def limited(v: Tensor) -> Any:
            return tf.identity(v), lambda dy: tf.clip_by_value(dy, -0.2, 0.3)

        def by_python(v: Tensor) -> Tensor:
            found = tf.py_func(lambda a: np.float32(0.5) * a * a, [v], tf.float32)
            found.set_shape([])
            return found * v

        return [overridden, closing, limited, by_python]

    def own_gradient(self, values: list[Tensor], token: Tensor, _: int) -> tuple[list[Tensor], Tensor]:
        return [self.tf.tanh(self.random.choice(self.own)(self.any(values)))], token

    def gradient(self, values: list[Tensor], token: Tensor, _: int) -> tuple[list[Tensor], Tensor]:
        y = self.formula(values)
        return [self.tf.tanh(found) for found in self.gradients(y, [self.any(values), self.any(values[:3])])], token

    def gradients(self, y: Tensor, xs: list[Tensor]) -> list[Tensor]:
        """The gradients that are not None; the others are noted."""
        found = self.tf.gradients(y, xs)
        self._noted[self.random.random()] = "".join("-" if each is None else "+" for each in found)
        return [each for each in found if each is not None]

    # ---- bodies ------------------------------------------------------------------------------------------------------

    def condition(self, values: list[Tensor]) -> Tensor:
        return self.p if self.random.random() < 0.5 else self.any(values) > 0.2

    def results(self, seed: int, values: list[Tensor], token: Tensor, depth: int, count: int) -> list[Tensor]:
        """Some values that a body gives, and the token. Each body has choices of its own, however often it is traced."""
        around, self.random = self.random, random.Random(seed)
        after, token = self.block(values, token, depth + 1)
        self.random = around
        return [*[self.tf.tanh(value * 0.9) for value in after[-count:]], token]

    def seed(self) -> int:
        """The seed of the choices of a body."""
        return self.random.randrange(2**32)

    def branch(self, values: list[Tensor], token: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        tf, count = self.tf, self.random.randint(1, 2)
        pred = self.condition(values)

        def side(seed: int) -> Callable[[], list[Tensor]]:
            return lambda: self.results(seed, values, token, depth, count)

        sides = [side(self.seed()) for _ in range(3)]

        if self.random.random() < 0.3:
            other = self.any(values) < 0.0
            found = tf.case([(pred, sides[0]), (other, sides[1])], default=sides[2])
        else:
            found = tf.cond(pred, sides[0], sides[1])
        return list(found[:-1]), found[-1]

    def loop(self, values: list[Tensor], token: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        tf, turns, seed = self.tf, self.random.randint(1, 3), self.seed()
        start = tf.constant(0.1 * self.random.randrange(9)) if self.random.random() < 0.6 else self.any(values)

        def body(i: Tensor, token: Tensor, a: Tensor) -> list[Tensor]:
            found, token = self.results(seed, [*values, a], token, depth, 1)
            return [i + 1, token, found]

        _, token, found = tf.while_loop(lambda i, *_: i < turns, body, [tf.constant(0), token, start], parallel_iterations=1)
        return [found], token

    def array(self, values: list[Tensor], token: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        """A loop that writes into an array, in the branches of a condition."""
        tf, seed = self.tf, self.seed()

        def body(i: Tensor, token: Tensor, array: Any) -> list[Any]:
            found, token = self.results(seed, values, token, depth, 1)
            array = tf.cond(found > 0.1, lambda: array.write(i, found), lambda: array.write(i, found * 0.5))
            return [i + 1, token, array]

        made = tf.TensorArray(tf.float32, 2, element_shape=[])
        _, token, array = tf.while_loop(lambda i, *_: i < 2, body, [tf.constant(0), token, made], parallel_iterations=1)
        return [tf.reduce_sum(array.stack() * [0.3, 0.6])], token

    def rows(self, values: list[Tensor], token: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        tf, seed = self.tf, self.seed()
        elements = tf.stack([self.any(values), tf.constant(0.3)])

        def body(row: Tensor) -> tuple[Tensor, Tensor]:
            found, inner = self.results(seed, [*values, row], token, depth, 1)
            return found, inner

        found, tokens = tf.map_fn(body, elements, dtype=(tf.float32, tf.int32), parallel_iterations=1)
        return [tf.reduce_sum(found * [0.4, 0.7])], tf.reduce_sum(tokens)

    def fold(self, values: list[Tensor], token: Tensor, depth: int) -> tuple[list[Tensor], Tensor]:
        tf, seed = self.tf, self.seed()
        elements, start = tf.stack([self.any(values), tf.constant(-0.4)]), tf.constant(0.2)

        def body(state: Any, row: Tensor) -> Any:
            a, token = state
            found, token = self.results(seed, [*values, a, row], token, depth, 1)
            return found, token

        if self.random.random() < 0.5:
            found, token = tf.foldl(body, elements, (start, token), parallel_iterations=1)
            return [found], token
        rows, tokens = tf.scan(body, elements, (start, token), parallel_iterations=1)
        return [tf.reduce_sum(rows * [0.2, 0.8])], tokens[-1]
