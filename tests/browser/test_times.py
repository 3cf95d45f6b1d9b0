"""The time lens, the timeline and its memory, in JupyterLab and in pages."""

from __future__ import annotations

from typing import Any

import numpy as np
from playwright.sync_api import Browser

import graphcore as gc
from tests.browser.page_worker import PageWorker, comparable
from widgets.scene import SceneState, build_scene
from widgets.scene.inspect import inspect


def recorded(devices: gc.DeviceSet | None = None) -> gc.Graph:
    """A recorded run with functions in functions, loops and branches."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [4, 4], name="x")

        @gc.function
        def inner(a: gc.Tensor) -> gc.Tensor:
            return gc.tanh(gc.matmul(a, a))

        @gc.function
        def outer(a: gc.Tensor) -> Any:
            return inner(gc.while_loop(lambda i, _: i < 2, lambda i, b: [i + 1, inner(b)], [gc.constant(0), a])[1])

        y = gc.while_loop(lambda i, _: i < 3, lambda i, a: [i + 1, outer(a)], [gc.constant(0), x], name="loop")[1]
        with gc.device("/gpu:0" if devices else ""):
            z = gc.cond(gc.reduce_sum(y) > 0, lambda: gc.tanh(y), lambda: gc.exp(y), name="choice")
        dx = gc.gradients(z, [x])[0]
    with gc.Session(graph, devices) as session:
        session.run([z, dx], {x: np.ones((4, 4), np.float32)}, gc.RunOptions(trace=True))
    return graph


def test_a_page_tells_the_same_times_as_the_kernel(browser: Browser) -> None:
    page = browser.new_page()
    for graph in (recorded(), recorded(gc.simulated_devices("1 cpu, 1 gpu"))):
        for mode in ("none", "all"):
            state = SceneState(max_boxes=400)
            state.expand("*") if mode == "all" else state.collapse("*")
            worker = PageWorker(page, graph, state)
            found, _ = worker.scene(type="ready")
            scene = build_scene(graph, state)
            assert comparable(found) == comparable(scene)
            marked = [node.id for node in scene.nodes if "time" in node.lenses]
            assert marked
            for box in marked[:: max(1, len(marked) // 12)]:
                told = inspect(graph, state, box)
                assert told is not None
                assert told.times
                assert worker.ask(type="inspect", id=box)["inspection"]["times"] == [list(row) for row in told.times], box
    page.close()
