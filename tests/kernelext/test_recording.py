"""Recording of runs by lines of `%graph`."""

from __future__ import annotations

import pytest

from tests.kernelext.conftest import NotebookShell

BUILD = """
x = gc.placeholder(gc.float32, [None], name="x")
h = x
with gc.name_scope("inner"):
    for number in range(60):
        h = gc.tanh(h, name=f"h{number}")
y = gc.reduce_sum(h, name="y")
session = gc.Session()
"""
RUN = """
session.run(gc.get_default_graph().nodes[-1].outputs[0], {x: [1.0, 2.0]})
sorted(one.node for one in session.trace.values if one.detail is not None)
"""


def test_full_statistics_are_those_of_the_boxes_in_view(shell: NotebookShell) -> None:
    shell.run("%load_ext kernelext\nimport graphcore as gc\ngc.reset_default_graph()", "load")
    shell.run(BUILD, "a")
    shell.run("%graph values --full", "b")
    assert shell.run(RUN, "c").result == ["Const", "x", "y"], "the scope is closed"
    shell.run("z = gc.tanh(y, name='z')", "d")
    assert shell.run(RUN, "e").result == ["Const", "x", "y", "z"]
    shell.run("%graph values --full 'inner/h1*'", "f")
    assert shell.run(RUN, "g").result == sorted(f"inner/h{number}" for number in (1, *range(10, 20)))
    shell.run("%graph values off", "h")
    before = shell.run("session.trace", "i").result
    shell.run(RUN, "j")
    assert shell.run("session.trace", "k").result is before
    shell.run("%unload_ext kernelext", "unload")


WHOLE: dict[str, str] = {
    "": """
gc.reset_default_graph()
x = gc.placeholder(gc.float32, [3], name='x')
y = gc.log(x, name='y')
s = gc.Session()
s.run(y, {x: [1.0, 0.0, 2.0]})
gc.get_default_graph()
""",
    "g": """
g = gc.Graph()
with g.as_default():
    x = gc.placeholder(gc.float32, [3], name='x')
    y = gc.log(x, name='y')
with gc.Session(graph=g) as s:
    s.run(y, {x: [1.0, 0.0, 2.0]})
g
""",
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("recording", ["values", "time"])
def test_a_cell_that_makes_a_new_graph_is_recorded_from_its_second_run_on(shell: NotebookShell, name: str, recording: str) -> None:
    shell.run("%load_ext kernelext\nimport graphcore as gc\ngc.reset_default_graph()\ng = gc.Graph()", "load")
    shell.run(f"%graph {recording} {name}", "open")
    for _ in range(3):
        graph = shell.run(WHOLE[name], "whole").result
        assert graph.trace is not None
        assert (graph.trace.values is not None) == (recording == "values")
    shell.run(f"%graph {recording} off {name}", "off")
    assert shell.run(WHOLE[name], "whole").result.trace is None
    shell.run("%unload_ext kernelext", "unload")
    assert shell.run(WHOLE[name], "whole").result.trace is None


MODEL = """
import numpy as np, onnx
from onnx import TensorProto, helper
x, y = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
nodes = [helper.make_node("Log", ["x"], ["h"], name="log"), helper.make_node("Exp", ["h"], ["y"], name="exp")]
model = gc.from_source(helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 18)]))
"""


def test_runs_of_a_model_of_another_framework_are_recorded(shell: NotebookShell) -> None:
    shell.run(f"%load_ext kernelext\nimport graphcore as gc\n{MODEL}", "load")
    shell.run("%graph values --full 'l*' model", "open")
    result = shell.run("gc.Session(model).run(None, {'x': np.zeros(3, np.float32)})[0]", "run").result
    assert result.tolist() == [0, 0, 0]
    bad, detailed = shell.run(
        "values = model.trace.values\nstr(values.first_bad), [one.node for one in values if one.detail is not None]", "look"
    ).result
    assert "log:0 float [3]: 3 Inf" in bad
    assert detailed == ["log"]
    shell.run("%unload_ext kernelext", "unload")
