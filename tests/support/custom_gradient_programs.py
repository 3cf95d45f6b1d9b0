"""Programs of TensorFlow 1 with gradients of their own within branches, loops, maps and functions.

They run with `graphcore` and with TensorFlow, whose loops have no second derivatives: `Unrolled` writes out the branches and loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

Tensor = Any
_numbers: Final = itertools.count()
X: Final = (0.4, -0.3)
"""The values that x is fed."""


class Bodies:
    """Branches and loops of a module.

    Args:
        tf: the module with TensorFlow 1's names.
    """

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def cond(self, pred: Tensor, yes: Any, no: Any) -> Tensor:
        return self.tf.cond(pred, yes, no)

    def case(self, pairs: Any, default: Any) -> Tensor:
        return self.tf.case(pairs, default)

    def map_fn(self, body: Any, rows: Tensor) -> Tensor:
        return self.tf.map_fn(body, rows)

    def foldl(self, body: Any, rows: Tensor, start: Tensor) -> Tensor:
        return self.tf.foldl(body, rows, initializer=start)

    def loop(self, body: Any, start: Tensor) -> Tensor:
        """Three rounds."""
        return self.tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, body(a)), [0, start])[1]

    def scan(self, body: Any, rows: Tensor, start: Tensor) -> Tensor:
        return self.tf.scan(body, rows, initializer=start)

    def call(self, body: Any, x: Tensor) -> Tensor:
        """A call of a graph function, where there are any."""
        return self.tf.function(body)(x)


class Unrolled(Bodies):
    """The same without branches and loops: for `flag`, of two rows.

    Args:
        tf: the module with TensorFlow 1's names.
        flag: the value of all conditions.
    """

    def __init__(self, tf: Any, flag: bool) -> None:
        super().__init__(tf)
        self.flag = flag

    def cond(self, _: Tensor, yes: Any, no: Any) -> Tensor:
        return yes() if self.flag else no()

    def case(self, pairs: Any, default: Any) -> Tensor:
        return pairs[0][1]() if self.flag else default()

    def map_fn(self, body: Any, rows: Tensor) -> Tensor:
        return self.tf.stack([body(rows[0]), body(rows[1])])

    def foldl(self, body: Any, rows: Tensor, start: Tensor) -> Tensor:
        return body(body(start, rows[0]), rows[1])

    def scan(self, body: Any, rows: Tensor, start: Tensor) -> Tensor:
        first = body(start, rows[0])
        return self.tf.stack([first, body(first, rows[1])])

    def loop(self, body: Any, start: Tensor) -> Tensor:
        return body(body(body(start)))

    def call(self, body: Any, x: Tensor) -> Tensor:
        return body(x)


class Functions:
    """Functions with gradients of their own.

    Args:
        tf: the module with TensorFlow 1's names.
        x, outside: tensors outside of all bodies.
    """

    def __init__(self, tf: Any, x: Tensor, outside: Tensor) -> None:
        self.tf = tf
        custom_gradient: Callable[[Any], Any] = tf.custom_gradient
        name = f"Weird{next(_numbers)}"
        tf.RegisterGradient(name)(lambda op, grad: grad * 3.0 * op.inputs[0] * op.outputs[0])

        def overridden(v: Tensor) -> Tensor:
            with tf.get_default_graph().gradient_override_map({"Tanh": name, "Round": "Identity"}):
                return tf.tanh(v) + tf.round(v * 5.0)

        @custom_gradient
        def log1pexp(v: Tensor) -> Any:
            e = tf.exp(v)
            return tf.log(1.0 + e), lambda dy: dy * (2.0 - e / (1.0 + e)) * outside

        @custom_gradient
        def two(a: Tensor, b: Tensor) -> Any:
            c = a * b
            return [c, a + b], lambda dc, ds: (dc * 3.0 * b + ds * c, dc * a * outside)

        def both(v: Tensor) -> Tensor:
            product, total = two(v, log1pexp(x))
            return product * total

        @custom_gradient
        def nested(v: Tensor) -> Any:
            y = log1pexp(v) * v
            return y, lambda dy: log1pexp(v) * dy * y + dy * v  # linear in dy: loops hand on zeros

        @custom_gradient
        def again(v: Tensor) -> Any:
            y = tf.tanh(v) * v
            return y, lambda dy: tf.gradients(y, v, grad_ys=dy * 2.0)[0]

        self.all = {"override": overridden, "closure": log1pexp, "two": both, "nested": nested, "gradients within": again}


FUNCTIONS: Final = ("override", "closure", "two", "nested", "gradients within")
PLACES: Final = ("cond", "case", "loop", "map_fn", "scan", "foldl", "branch in a loop", "loop in a branch", "function", "around")


def build(tf: Any, bodies: Bodies, place: str, function: str, *, second: bool) -> tuple[Tensor, list[Tensor]]:
    """The placeholder x, and y with its first and second derivative by x."""
    x = tf.placeholder(tf.float32, [], name="x")
    outside = tf.sin(x) * 1.7
    f = Functions(tf, x, outside).all[function]
    rows = tf.stack([x, x * x])
    made = {
        "cond": lambda: bodies.cond(x > 0.0, lambda: f(x * 2.0), lambda: f(x) * x),
        "case": lambda: bodies.case([(x > 0.0, lambda: f(x * 2.0))], lambda: f(x) * x),
        "loop": lambda: bodies.loop(lambda a: f(a * x) + a, x),
        "map_fn": lambda: tf.reduce_sum(bodies.map_fn(lambda a: f(a * x), rows)),
        "scan": lambda: tf.reduce_sum(bodies.scan(lambda s, a: f(a * x) + s, rows, x)),
        "foldl": lambda: bodies.foldl(lambda s, a: f(a * x) * s, rows, x),
        "branch in a loop": lambda: bodies.loop(lambda a: bodies.cond(x > 0.0, lambda: f(a * x) + a, lambda: f(a) * 2.0), x),
        "loop in a branch": lambda: bodies.cond(x > 0.0, lambda: bodies.loop(lambda a: f(a) * outside, x), lambda: f(x)),
        "function": lambda: bodies.call(lambda u: f(u) * outside, x * 2.0),
        "around": lambda: bodies.cond(x > 0.0, lambda: tf.gradients(f(x) * x, x)[0], lambda: f(x) * outside),
    }
    y = made[place]()
    (first,) = tf.gradients(y, x)
    return x, [y, first, *(tf.gradients(first, x) if second else [])]


def values(tf: Any, place: str, function: str, *, unrolled: bool, second: bool) -> list[list[float]]:
    """The results of the program for each of `X`."""
    found = []
    for value in X:
        with tf.Graph().as_default(), tf.Session() as session:
            x, fetches = build(tf, Unrolled(tf, value > 0) if unrolled else Bodies(tf), place, function, second=second)
            found.append([float(each) for each in session.run(fetches, {x: value})])
    return found
