"""`gc.contrib.factorization.KMeans` against k-means written in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError, UnimplementedError

FACTORIZATION: Any = import_module("graphcore.contrib.factorization")
MIDDLES = ((0.0, 4.0), (4.0, 0.0), (-4.0, -4.0))


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        yield made


def points(spread: float = 0.5) -> Any:
    """Points around three middles, in random order. -> [60, 2]"""
    rng = np.random.default_rng(0)
    made = np.concatenate([rng.normal(middle, spread, (20, 2)) for middle in MIDDLES]).astype(np.float32)
    return rng.permutation(made)


def unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def distances(rows: Any, centers: Any, metric: str) -> Any:
    if metric == "cosine":
        return 1 - unit(rows) @ unit(centers).T
    return ((rows[:, None] - centers) ** 2).sum(2)


class Model:
    """K-means in a graph, and a session with its first centers."""

    def __init__(self, given: Any, start: Any, shards: int = 1, **settings: Any) -> None:
        self.inputs = [gc.placeholder(gc.float32, [None, 2]) for _ in range(shards)]
        inputs = self.inputs if shards > 1 else self.inputs[0]
        settings = {"num_clusters": 3, **settings}
        self.graph = FACTORIZATION.KMeans(inputs, initial_clusters=start, **settings).training_graph()
        self.session = gc.Session()
        self.session.run(gc.global_variables_initializer())
        self.begin(given)

    def fed(self, rows: Any) -> dict[Any, Any]:
        return dict(zip(self.inputs, np.array_split(rows, len(self.inputs)), strict=True))

    def begin(self, rows: Any) -> None:
        self.session.run(self.graph[4], self.fed(rows))

    def step(self, rows: Any) -> None:
        self.session.run(self.graph[5], self.fed(rows))

    def infer(self, rows: Any) -> Any:
        """All distances, the numbers of the nearest centers, and the distances to these."""
        return self.session.run(self.graph[:3], self.fed(rows))

    def centers(self) -> Any:
        return self.session.run("clusters:0")


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("metric", ["squared_euclidean", "cosine"])
def test_a_step_with_all_points_moves_the_centers_to_the_means_of_their_points(metric: str, shards: int) -> None:
    given = points(1.5)
    model = Model(given, given[:3], shards, distance_metric=metric)
    centers = unit(given[:3]) if metric == "cosine" else given[:3]
    rows = unit(given) if metric == "cosine" else given
    for _ in range(4):
        numbers = distances(given, centers, metric).argmin(1)
        model.step(given)
        centers = np.stack([rows[numbers == number].mean(0) for number in range(3)])
        centers = unit(centers) if metric == "cosine" else centers
        np.testing.assert_allclose(model.centers(), centers, rtol=1e-4, atol=1e-5)
    expected = distances(given, centers, metric)
    every, numbers, least = [np.concatenate(each) for each in model.infer(given)]
    np.testing.assert_allclose(every, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(numbers, expected.argmin(1))
    np.testing.assert_allclose(least, expected.min(1), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("metric", ["squared_euclidean", "cosine"])
def test_a_step_with_a_mini_batch_moves_a_center_by_its_new_points_over_their_number_so_far(metric: str, steps: int) -> None:
    given = points(1.5)
    settings = {"use_mini_batch": True, "mini_batch_steps_per_iteration": steps}
    model = Model(given, given[:3], distance_metric=metric, **settings)
    rows = unit(given) if metric == "cosine" else given
    used = updated = unit(given[:3]) if metric == "cosine" else given[:3]
    counts = np.ones(3) if steps == 1 else np.zeros(3)
    left = steps
    for number in range(8):
        batch = slice(15 * (number % 4), 15 * (number % 4) + 15)
        if steps == 1:
            used = updated
        nearest = distances(given[batch], used, metric).argmin(1)
        if steps > 1 and left <= 0:  # the distances of this step are still those before it
            used, counts, left = unit(updated) if metric == "cosine" else updated, np.zeros(3), steps
        left -= 1
        updated = updated.copy()
        for cluster in set(nearest):
            new = rows[batch][nearest == cluster]
            counts[cluster] += len(new)
            updated[cluster] += (new.sum(0) - len(new) * updated[cluster]) / counts[cluster]
        model.step(given[batch])
        np.testing.assert_allclose(model.centers(), updated if steps == 1 else used, rtol=1e-4, atol=1e-5)
        if steps > 1:
            np.testing.assert_allclose(model.session.run("clusters_updated:0"), updated, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"use_mini_batch": True}, {"use_mini_batch": True, "mini_batch_steps_per_iteration": 2}])
@pytest.mark.parametrize("metric", ["squared_euclidean", "cosine"])
def test_points_in_clusters_are_told_apart_after_a_start_by_k_means_plus_plus(metric: str, settings: dict[str, Any]) -> None:
    given = points()
    model = Model(given, "kmeans_plus_plus", distance_metric=metric, **settings)
    for _ in range(6):
        model.step(given)
    numbers = model.infer(given)[1][0]
    closest = distances(given, np.array(MIDDLES), metric).argmin(1)
    assert len(set(zip(numbers.tolist(), closest.tolist(), strict=True))) == 3


def test_the_start_by_k_means_plus_plus_is_among_the_points_and_repeats_with_its_seed(graph: gc.Graph) -> None:
    given = points()

    def chosen(seed: int, retries: int = 2) -> Any:
        with gc.Graph().as_default():
            return Model(given, "kmeans_plus_plus", random_seed=seed, kmeans_plus_plus_num_retries=retries).centers()

    rows = {tuple(row) for row in given.tolist()}
    found = [chosen(seed, retries) for seed, retries in ((1, 2), (1, 2), (2, 0), (3, -1))]
    assert all(tuple(row) in rows for each in found for row in each.tolist())
    np.testing.assert_array_equal(found[0], found[1])
    assert len({each.tobytes() for each in found}) > 1


def test_centers_are_chosen_at_random_from_several_batches_until_there_are_enough() -> None:
    given = points()
    model = Model(given[:2], "random", num_clusters=5)
    assert not model.session.run(model.graph[3])
    np.testing.assert_array_equal(model.centers(), given[:2])
    model.begin(given[2:4])
    model.begin(given[4:])
    assert model.session.run(model.graph[3])
    assert model.centers().shape == (5, 2)
    before = model.centers()
    model.begin(given)
    np.testing.assert_array_equal(model.centers(), before)


def test_a_function_chooses_the_first_centers() -> None:
    given = points()
    model = Model(given, lambda inputs, number: inputs[0][:number], num_clusters=4)
    np.testing.assert_array_equal(model.centers(), given[:4])


def test_k_means_plus_plus_refuses_fewer_points_than_centers() -> None:
    with pytest.raises(InvalidArgumentError, match="assert"):
        Model(points()[:2], "kmeans_plus_plus")


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"initial_clusters": "frob"}, InvalidArgumentError, "Unsupported initialization algorithm `frob`"),
        ({"distance_metric": "frob"}, InvalidArgumentError, "Unsupported distance metric `frob`"),
        ({"initial_clusters": "kmc2"}, UnimplementedError, "'kmc2' is not available"),
        ({"inputs": np.zeros((4, 2))}, InvalidArgumentError, "required points of float32, got double"),
    ],
)
def test_settings_that_are_not_available_are_refused(settings: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        FACTORIZATION.KMeans(**{"inputs": np.zeros((4, 2), np.float32), "num_clusters": 2, **settings})
