"""Shapes of calls of functions that call functions."""

from __future__ import annotations

import graphcore as gc


def test_calls_in_calls_are_followed_so_far_and_no_further() -> None:
    """Each of twelve functions calls the one below it ten times: ten to the eleventh nodes in all, and two thousand at most are looked at."""
    graph = gc.Graph()
    graph.library.add_function_def(gc.parse_function("F0(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n  return y = y:y:0\n}"))
    for level in range(1, 12):
        body = "\n".join(f"  n{i} = F{level - 1}({'x' if i == 0 else f'n{i - 1}:y:0'})" for i in range(10))
        text = f"F{level}(x:float) -> (y:float) @stateless {{\n{body}\n  return y = n9:y:0\n}}"
        graph.library.add_function_def(gc.parse_function(text, graph.library.look_up_op_def))
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2, 3])
        shallow, deep = (graph.apply_op(name, [x]).outputs[0] for name in ("F2", "F11"))
    assert shallow.shape == gc.Shape([2, 3])
    assert deep.shape == gc.Shape(None)
