"""Cells of a notebook that build, place and break a small graph, in any order after `a` and `b`."""

from __future__ import annotations

from typing import Final

CELLS: Final = {
    "a": "x = gc.placeholder(gc.float32, [None, {n}], name='x')\nw = gc.Variable(gc.zeros([{n}, 3]), name='w')",
    "b": "y = gc.{op}(x @ w, name='y')",
    "c": "loss = gc.reduce_sum(y)\n(gw,) = gc.gradients(loss, [w])\ntrain = w.assign_sub(gw)",
    "d": "gc.Placer(gc.get_default_graph(), gc.simulated_devices('1 cpu, {n} gpu')).run()",
    "e": "y.node.set_requested_device('/gpu:{n}')",
    "f": "@gc.function\ndef f(v):\n    return gc.{op}(v)",
    "g": "z = f(y)",
    "h": "r = gc.cond(gc.reduce_sum(y) > 0.0, lambda: y, lambda: -y)",
    "i": "s = gc.tanh(y, name='s')\nraise ValueError",
    "j": "s = gc.tanh(y, name='s')",
    "k": "q = gc.concat([x, x], axis=0)\np = gc.reshape(q, [-1, 2])\np + gc.placeholder(gc.float32, [None, {n}])",
    "l": "bad = gc.matmul(x, gc.zeros([{n}, 2]))",
    "m": "with gc.name_scope('part'):\n    t = gc.{op}(gc.identity(x, name='in')) + x",
    "n": "gc.get_default_graph().remove_node(y.node)",
    "o": "gc.get_default_graph().cells.delete('j')",
}
_OPS: Final = ("tanh", "exp", "relu")


def code_of(cell: str, way: int) -> str:
    """The code of a cell in one of three ways."""
    return CELLS[cell].format(n=2 + way, op=_OPS[way])
