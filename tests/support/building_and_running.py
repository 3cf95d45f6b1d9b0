"""Builds, runs and checks until interrupted, and starts again: a subprocess of a test.

It writes a line when work begins; the test then presses Ctrl-C a moment later, and again if nothing follows, as Python loses errors raised
in finalisers. After the given number of rounds it writes how often each kind of work was interrupted. An inconsistency ends it with a
traceback.

Usage: python -m tests.support.building_and_running SEED ROUNDS
"""

from __future__ import annotations

import gc as collector
import random
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Final

import numpy as np

import graphcore as gc
from graphcore.source import CellRun, current_run
from tests.graphcore.graph.example_graphs import ranks_fit
from tests.support.whole_graphs import Mirror, check_whole

SIZE: Final = 64
MOST_NODES: Final = 300
"""A graph with more is left for a new one, so that looking through it takes no time."""


class World:
    """A graph and its sessions, used and checked alternately."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.path = folder / "variables.npz"
        self.graph = gc.Graph()
        self.cells = self.imports = 0
        with gc.Graph().as_default() as other:
            reduce(lambda value, _: gc.tanh(value) + 1.0, range(20), gc.placeholder(gc.float32, [SIZE]))
        self.imported = other.as_graph_def()
        with self.graph.as_default():
            self.x = gc.placeholder(gc.float32, [SIZE], name="x")
            self.y = gc.tanh(self.x) * 2.0 + self.x
            ones = np.zeros(SIZE, np.float32)
            self.kept, self.w, self.v = (gc.Variable(ones, name=name) for name in ("kept", "w", "v"))
            self.count = self.w.assign_add(self.x)
            # With a momentum of 1 the slot counts the steps, and the variable is minus the sum of these numbers.
            self.step = gc.MomentumOptimizer(1.0, 1.0).apply_gradients([(self.x, self.v)])
            self.slot = next(each for each in gc.all_variables() if each.op.name.startswith("v/"))
            self.loop = gc.while_loop(lambda i: i < 200, lambda i: [i + 1], [gc.constant(0)])
            self.initialise = gc.initialize_all_variables()
        self.sessions = [gc.Session(self.graph, engine=engine) for engine in ("plan", "dataflow")]
        self.feeds = {self.x: np.ones(SIZE, np.float32)}
        for session in self.sessions:
            session.run(self.initialise)
        self.mirror = Mirror(self.graph)

    # ---- work, each kind once ----------------------------------------------------------------------------------------

    def nodes(self) -> None:
        """Single nodes, in scopes."""
        with self.graph.as_default(), gc.name_scope("s"), self.graph.device("/cpu:0"), gc.control_dependencies([self.x]):
            (gc.tanh(self.x) + 1.0)[0]

    def edits(self) -> None:
        """Add a node, change its input, remove it, and add it again for its waiting consumers."""
        graph = self.graph
        a = graph.apply_op("Tanh", [self.x])
        b = graph.apply_op("AddV2", [a.outputs[0], self.x])
        graph.update_edge(self.y.node, 0, b, 1)
        graph.add_control_edge(self.y.node, a)
        graph.remove_node(a)
        graph.add_node(gc.NodeDef(a.name, "Exp", (self.x.name,), "", {"T": gc.float32}))
        graph.set_attr(b, "_note", 1)
        graph.remove_node(b)
        graph.remove_node(graph.get_operation_by_name(a.name))

    def cell(self) -> None:
        """Run a cell repeatedly, with different nodes each time."""
        self.cells += 1
        run = CellRun(cell="c", execution=self.cells, label=f"In [{self.cells}]")
        token = current_run.set(run)
        try:
            self.graph.begin_cell(run)
            value = self.x
            for number in range(self.random.randrange(5)):
                value = self.graph.apply_op(self.random.choice(("Tanh", "Exp")), [value], name=f"in_cell_{number}").outputs[0]
            self.graph.end_cell(run)
        finally:
            current_run.reset(token)

    def gradients(self) -> None:
        """Add many nodes at once."""
        gc.gradients(self.y, self.x)

    def functions(self) -> None:
        """Trace Python functions."""
        with self.graph.as_default():
            p = gc.reduce_sum(self.x) > 0.0
            gc.cond(p, lambda: self.x * 2.0, lambda: gc.function(lambda t: t + self.y)(self.x))

    def importing(self) -> None:
        """Import a graph and access it."""
        self.imports += 1
        gc.import_graph_def(self.imported, graph=self.graph, prefix=f"part{self.imports}")
        assert self.graph.num_edges > self.graph.nx.number_of_nodes() // 2

    def transaction(self) -> None:
        """Make several edits atomically."""
        with self.graph.transaction():
            self.edits()
            self.nodes()

    def running(self) -> None:
        """Run steps, planned or not, that change variables."""
        session = self.random.choice(self.sessions)
        session.run([self.count, self.step], self.feeds)
        options = gc.RunOptions(timeout_in_ms=60_000) if self.random.random() < 0.2 else None
        assert session.run([self.loop, self.kept], options=options)[0] == 200
        with session, session.as_default():
            self.y.eval({self.x: self.feeds[self.x]})

    def saving(self) -> None:
        """Save variables and restore them."""
        gc.save_variables(self.sessions[0], self.path)
        gc.restore_variables(self.sessions[0], self.path)

    def works(self) -> list[Callable[[], None]]:
        return [
            self.nodes,
            self.edits,
            self.cell,
            self.gradients,
            self.functions,
            self.importing,
            self.transaction,
            self.running,
            self.saving,
        ]

    # ---- checking ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that all is consistent and works."""
        graph = self.graph
        check_whole(graph, self.mirror)
        assert ranks_fit(graph)
        assert (graph.scopes.name, graph.scopes.device, graph.scopes.controls) == ("", "", ())
        assert gc.get_default_session() is None
        assert gc.get_default_graph() is not graph
        assert collector.isenabled()
        assert is_free(graph.lock)
        added = graph.apply_op("Neg", [self.y])
        assert added.name in self.mirror.names  # subscribers are notified again
        for session in self.sessions:
            assert np.allclose(session.run(added.outputs[0], self.feeds), -2 * np.tanh(1.0) - 1)
            assert session.run(self.loop) == 200
            counts, slot, value, kept = session.run([self.w, self.slot, self.v, self.kept])
            assert set(counts) == {counts[0]}
            assert set(slot) == {slot[0]}
            assert set(value) == {-slot[0] * (slot[0] + 1) / 2}, (slot[0], value)
            assert set(kept) == {0.0}
            assert set(session.run(self.count, self.feeds)) == {counts[0] + 1}
            if slot[0] > 1000:  # float precision ends here
                session.run(self.initialise)
        graph.remove_node(added)


def is_free(lock: threading.RLock) -> bool:
    """True iff another thread can acquire `lock`."""
    found: list[bool] = []

    def take() -> None:
        found.append(lock.acquire(timeout=10))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return found[0]


def work_on(world: World, work: Callable[[], None]) -> None:
    """Work until the graph is large, then run it without end."""
    while len(world.graph) < MOST_NODES:
        work()
    while True:
        world.running()


def interrupted(world: World, work: Callable[[], None]) -> bool:
    """Work until Ctrl-C. True iff it came during work."""
    is_within = False
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("begins", flush=True)
        is_within = True
        work_on(world, work)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a Jupyter kernel does between cells
        current_run.set(None)  # the work may have been stopped before it could do so
    return is_within


def main(seed: int, rounds: int) -> None:
    """Run so many rounds."""
    came: Counter[str] = Counter()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        world = World(seed, Path(folder))
        for number in range(rounds):
            if len(world.graph) >= MOST_NODES:
                world = World(seed + number, Path(folder))
            work = chance.choice(world.works())
            try:
                came[work.__name__] += interrupted(world, work)
                world.check()
            except BaseException as error:
                error.add_note(f"round {number}, {work.__name__}")
                raise
    print("ended", dict(came), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
