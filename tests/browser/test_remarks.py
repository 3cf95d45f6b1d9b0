"""The remarks under a cell in the real JupyterLab: broken nodes, gradients built in a loop."""

from __future__ import annotations

from tests.browser.conftest import Lab

START = "%load_ext kernelext\nimport graphcore as gc"
X = 'x = gc.placeholder(gc.float32, [2, 3], name="x")'
Y = 'w = gc.Variable([[1.0], [2.0], [3.0]], name="w")\ny = gc.matmul(x, w, name="y")\nloss = gc.reduce_sum(y, name="loss")'
LOOP = "for step in range(60):\n    gw = gc.gradients(loss, w)"


def test_one_line_under_a_cell_says_what_it_broke_and_that_a_loop_built_gradients_without_any_view(lab: Lab) -> None:
    notebook = lab.open_cells([START, X, Y, LOOP, "gc.softmx"])
    for cell in range(5):
        notebook.run_cell(cell)
    assert [output["data"]["text/plain"] for output in notebook.outputs(2)] == ["+7 nodes"]
    looped = [
        output["data"]["text/plain"] for output in notebook.outputs(3) if "--jp-warn-color1" in output.get("data", {}).get("text/html", "")
    ]
    assert len(looped) == 1
    assert looped[0].startswith("Gradients were built 60 times in cell In [4], line 2")
    notebook.cell(4).get_by_text("did you mean gc.softmax?").first.wait_for()
    assert "ops.py" not in notebook.cell(4).inner_text()
    notebook.edit_and_run(3, "")
    notebook.edit_and_run(1, X.replace("[2, 3]", "[2, 4]"))
    notebook.cell(1).get_by_text("1 node does not fit any more: 'y' (cell In [3], line 2): Dimensions").wait_for()
    assert not [output for output in notebook.outputs(1) if output["output_type"] == "stream"]
    notebook.screenshot("remarks")
