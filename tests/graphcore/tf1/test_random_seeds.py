"""Seeds fix random numbers across sessions, engines, threads and processes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc

tf: Any = gc  # names that are loaded on demand
PROGRAM = """
import json
import graphcore as gc
gc.set_random_seed(3)
drawn = [gc.random_uniform([4], seed=1), gc.random_normal([3]), gc.truncated_normal([2], seed=9)]
session = gc.Session()
print(json.dumps([[row.tolist() for row in session.run(drawn)] for _ in range(3)]))
"""


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def draws(engine: str = "auto") -> list[list[list[float]]]:
    with gc.Graph().as_default():
        gc.set_random_seed(3)
        drawn = [gc.random_uniform([4], seed=1), gc.random_normal([3]), gc.truncated_normal([2], seed=9)]
        session = gc.Session(engine=engine)
        return [[row.tolist() for row in session.run(drawn)] for _ in range(3)]


def test_a_new_process_draws_the_same_numbers() -> None:
    root = Path(gc.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=root)
    assert json.loads(done.stdout) == draws()


def test_both_engines_draw_the_same_numbers() -> None:
    assert draws("plan") == draws("dataflow")


def test_another_graph_seed_or_op_seed_draws_other_numbers() -> None:
    with gc.Graph().as_default():
        gc.set_random_seed(3)
        first, second = gc.random_uniform([4], seed=1), gc.random_uniform([4], seed=2)
        values = gc.Session().run([first, second])
    with gc.Graph().as_default():
        gc.set_random_seed(4)
        other = gc.Session().run(gc.random_uniform([4], seed=1))
    assert len({array.tobytes() for array in (*values, other)}) == 3


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_threads_share_the_numbers_of_a_session_out_among_them(engine: str) -> None:
    drawn = gc.random_uniform([4], seed=5)
    alone = gc.Session(engine=engine)
    expected = {alone.run(drawn).tobytes() for _ in range(80)}
    session = gc.Session(engine=engine)
    got: list[bytes] = []

    def draw() -> None:
        got.extend([session.run(drawn).tobytes() for _ in range(20)])

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == len(got) == 80
    assert set(got) == expected


def test_without_seeds_sessions_draw_different_numbers() -> None:
    drawn = gc.random_uniform([4])
    assert not np.array_equal(gc.Session().run(drawn), gc.Session().run(drawn))


def test_without_seeds_the_numbers_have_the_distributions_asked_for() -> None:
    many = 40_000
    drawn = {
        "uniform": tf.random_uniform([many], 2, 5, gc.float64),
        "half": tf.random_uniform([many], dtype=gc.float16),
        "whole": tf.random_uniform([many], -3, 7, gc.int32),
        "normal": tf.random_normal([many], 1.0, 2.0),
        "truncated": tf.truncated_normal([many]),
        "gamma": tf.random_gamma([many], 3.0, 2.0),
        "small means": tf.random_poisson(4.0, [many]),
        "large means": tf.random_poisson(50.0, [many], gc.int64),
    }
    found = gc.Session().run(drawn)
    mean = {"uniform": 3.5, "half": 0.5, "whole": 1.5, "normal": 1, "truncated": 0, "gamma": 1.5, "small means": 4, "large means": 50}
    deviation = {"uniform": 3 / 12**0.5, "half": 12**-0.5, "whole": 33**0.5 / 2, "normal": 2, "truncated": 0.8796}
    deviation |= {"gamma": 3**0.5 / 2, "small means": 2, "large means": 50**0.5}
    for name, values in found.items():
        wide = values.astype(np.float64)
        assert wide.mean() == pytest.approx(mean[name], abs=0.05 * deviation[name]), name
        assert wide.std() == pytest.approx(deviation[name], rel=0.03), name
    assert found["uniform"].min() >= 2
    assert found["uniform"].max() < 5
    assert set(found["whole"].tolist()) == set(range(-3, 7))
    assert np.abs(found["truncated"]).max() < 2
    order = gc.Session().run(tf.random_shuffle(np.arange(100)))
    assert sorted(order.tolist()) == list(range(100)) != order.tolist()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tf.random_uniform([2], dtype=gc.int32), "Must specify maxval for integer dtype int32"),
        (lambda: tf.random_gamma([2], -1.0), "required parameters of the distribution >= 0"),
        (lambda: tf.random_gamma([2], np.nan), "required parameters of the distribution >= 0"),
        (lambda: tf.random_poisson(np.nan, [2]), "other than NaN"),
        (lambda: tf.random_crop(np.ones([2, 2]), [3, 1]), "Need value.shape >= size"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(gc.errors.GraphError, match=said):
        gc.Session().run(make())


def test_a_scalar_can_be_drawn() -> None:
    assert gc.Session().run(gc.random_normal([], seed=1)).shape == ()


def everywhere() -> list[gc.Tensor]:
    """Random numbers drawn in the graph, in a function, in a branch and in a loop."""
    gc.set_random_seed(11)
    outside = gc.random_uniform([2])
    called = gc.function(lambda x: x + gc.random_uniform([2], seed=5), name="noisy")
    chosen = gc.cond(gc.constant(True), lambda: outside + gc.random_normal([2], seed=3), lambda: outside)
    looped = gc.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x + gc.random_uniform([2], seed=8)), [gc.constant(0), outside])[1]
    return [outside, called(outside), called(outside), chosen, looped]


def test_the_numbers_are_the_same_however_a_session_is_run() -> None:
    """By either engine, traced or not, with a time limit, through a callable, in steps, in threads."""

    def plain(session: gc.Session, fetches: list[gc.Tensor]) -> list[list[float]]:
        return [value.tolist() for value in session.run(fetches)]

    def recorded(session: gc.Session, fetches: list[gc.Tensor]) -> list[list[float]]:
        return [value.tolist() for value in session.run(fetches, options=gc.RunOptions(trace=True))]

    def limited(session: gc.Session, fetches: list[gc.Tensor]) -> list[list[float]]:
        return [value.tolist() for value in session.run(fetches, options=gc.RunOptions(timeout_in_ms=60_000))]

    def called(session: gc.Session, fetches: list[gc.Tensor]) -> list[list[float]]:
        return [value.tolist() for value in session.make_callable(fetches)()]

    def in_steps(session: gc.Session, fetches: list[gc.Tensor]) -> list[list[float]]:
        return [value.tolist() for value in session.partial_run(session.partial_run_setup(fetches), fetches)]

    def elsewhere(session: gc.Session, fetches: list[gc.Tensor]) -> list[list[float]]:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(plain, session, fetches).result()

    def outcome(run: Callable[[gc.Session, list[gc.Tensor]], list[list[float]]], **options: Any) -> list[list[list[float]]]:
        with gc.Graph().as_default():
            fetches = everywhere()
            with gc.Session(**options) as session:
                return [run(session, fetches) for _ in range(3)]

    expected = outcome(plain)
    assert expected[0] != expected[1] != expected[2]
    for engine in ("auto", "dataflow"):
        for run in (plain, recorded, limited, called, in_steps, elsewhere):
            assert outcome(run, engine=engine) == expected, (engine, run.__name__)
    assert outcome(plain, options=gc.SessionOptions(inter_op_threads=1)) == expected
