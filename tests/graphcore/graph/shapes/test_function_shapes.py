"""Shapes of calls of functions that call functions."""

from __future__ import annotations

import graphcore as gc


def test_calls_in_calls_that_are_alike_are_inferred_once() -> None:
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
    assert deep.shape == gc.Shape([2, 3])


def test_calls_that_ask_for_values_which_are_unknown_are_inferred_once() -> None:
    """Each of twelve functions calls the next ten times; the innermost pads by unknown numbers."""
    graph = gc.Graph()
    padded = "  y = Pad[T=float, Tpaddings=int32](x, p)\n  return y = y:output:0\n}"
    graph.library.add_function_def(gc.parse_function(f"F0(x:float, p:int32) -> (y:float) {{\n{padded}", graph.library.look_up_op_def))
    for level in range(1, 12):
        body = "\n".join(f"  n{i} = F{level - 1}({'x' if i == 0 else f'n{i - 1}:y:0'}, p)" for i in range(10))
        text = f"F{level}(x:float, p:int32) -> (y:float) @stateless {{\n{body}\n  return y = n9:y:0\n}}"
        graph.library.add_function_def(gc.parse_function(text, graph.library.look_up_op_def))
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, None])
        fed = gc.placeholder(gc.int32, [2, 2])
        deep = graph.apply_op("F11", [x, fed]).outputs[0]
        assert deep.shape.as_list() == [None, None]
        y, by_one = gc.zeros([3, 4]), gc.constant([[1, 0], [0, 1]])
        unknown, again, known = (graph.apply_op("F0", [y, by]).outputs[0] for by in (fed, fed, by_one))
        assert [each.shape.as_list() for each in (unknown, again, known)] == [[None, None], [None, None], [4, 5]]
        graph.update_edge(by_one.node, 0, again.node, 1)
        assert again.shape.as_list() == [4, 5]


def first_dim(tensor: gc.Tensor) -> object:
    """The handle of the first dimension."""
    dims = tensor.node.output_handles[tensor.index].dims
    assert dims is not None
    return dims[0]


def test_the_results_of_a_call_that_was_inferred_before_have_the_dimensions_of_its_own_arguments() -> None:
    graph = gc.Graph()
    text = "F(a:float, b:float) -> (c:float, d:float, e:float) {\n  s = Add[T=float](a, b)\n  n = Neg[T=float](b)\n  return c = a\n  return d = n:y:0\n  return e = s:z:0\n}"
    graph.library.add_function_def(gc.parse_function(text, graph.library.look_up_op_def))
    with graph.as_default():
        x, y = (gc.placeholder(gc.float32, shape, name=name) for name, shape in (("x", [None, 4]), ("y", [None, 4])))
        for first, second in ((x, y), (y, x), (x, x), (x, y)):
            call = graph.apply_op("F", [first, second])
            assert [output.shape.as_list() for output in call.outputs] == [[None, 4]] * 3
            assert first_dim(call.outputs[0]) is first_dim(first)
            assert first_dim(call.outputs[1]) is first_dim(second)
            assert f"dimension 0 of `{second.name}`" in str(gc.explain_shape(call.outputs[1]))
        known = graph.apply_op("F", [gc.constant([[1.0] * 4] * 3), gc.constant([[1.0] * 4] * 3)])
    assert [output.shape.as_list() for output in known.outputs] == [[3, 4]] * 3


def test_a_replaced_function_is_inferred_again() -> None:
    graph = gc.Graph()
    graph.library.add_function_def(gc.parse_function("F(x:float) -> (y:float) {\n  n = Neg[T=float](x)\n  return y = n:y:0\n}"))
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, 4])
        before = graph.apply_op("F", [x]).outputs[0]
        graph.library.replace_function(
            "F",
            gc.parse_function(
                "F(x:float) -> (y:float) {\n  n = Shape[T=float](x)\n  c = Cast[SrcT=int32, DstT=float](n:output:0)\n  return y = c:y:0\n}"
            ),
        )
        after = graph.apply_op("F", [x]).outputs[0]
    assert (before.shape.as_list(), after.shape.as_list()) == ([None, 4], [2])


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
    gc.import_graph_def(graph.as_graph_def(), again, prefix="")
    assert str(again.get_tensor_by_name("f9").shape) == "[2,3]"
