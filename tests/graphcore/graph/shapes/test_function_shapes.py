"""Shapes of calls of functions that call functions."""

from __future__ import annotations

import graphcore as gc


def test_calls_in_calls_are_followed_so_far_and_no_further() -> None:
    """Each of twelve functions calls the next ten times, 10^11 nodes in all; few are visited."""
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


def test_functions_nested_a_thousand_deep_are_called_and_imported() -> None:
    """Calls nested deeper than Python's recursion limit: shapes are inferred to a limited depth."""
    texts = ["F0(x:float) -> (y:float) {\n  y = Neg[T=float](x)\n  return y = y:y:0\n}"]
    texts += [f"F{i}(x:float) -> (y:float) {{\n  n = F{i - 1}(x)\n  return y = n:y:0\n}}" for i in range(1, 1_000)]
    library = gc.FunctionDefLibrary(tuple([gc.parse_function(text) for text in texts]))
    with gc.Graph().as_default() as graph:
        graph.add_function_library(library)
        x = gc.placeholder(gc.float32, [2, 3])
        shallow, deep = (graph.apply_op(name, [x], name=name.lower()).outputs[0] for name in ("F9", "F999"))
    assert str(shallow.shape) == "[2,3]"
    assert str(deep.shape) == "?"
    again = gc.Graph()
    gc.import_graph_def(graph.as_graph_def(), again)
    assert str(again.get_tensor_by_name("f9").shape) == "[2,3]"
