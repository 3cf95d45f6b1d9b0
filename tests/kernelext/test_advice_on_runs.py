"""The advice on a run that failed blames no op that is not the reason."""

from __future__ import annotations

import pytest

from tests.kernelext.conftest import NotebookShell

MODEL = """import numpy as np
x = gc.placeholder(gc.float32, [None, 4], name='x')
labels = gc.placeholder(gc.float32, [None, 3], name='labels')
classes = gc.placeholder(gc.int32, [None], name='classes')
W = gc.Variable(gc.zeros([4, 3]), name='W')
logits = gc.matmul(x, W, name='logits')
accuracy = gc.reduce_mean(gc.cast(gc.equal(gc.argmax(logits, 1), gc.argmax(labels, 1)), gc.float32), name='accuracy')
session = gc.Session()
session.run(gc.initialize_all_variables())
feeds = {x: np.zeros([100, 4]), labels: np.zeros([99, 3]), classes: np.zeros([99])}"""


@pytest.fixture
def told(shell: NotebookShell, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Runs a line after the model and returns what is shown."""
    shell.run("%load_ext kernelext\nimport graphcore as gc\ngc.reset_default_graph()", "start")
    shell.run(MODEL, "model")

    def run(line: str) -> str:
        capsys.readouterr()
        assert not shell.run(line, "line").success
        return capsys.readouterr().out

    yield run
    shell.run("%unload_ext kernelext")


@pytest.mark.parametrize(
    "value",
    [
        "labels * gc.log(logits)",
        "gc.squared_difference(logits, labels)",
        "gc.losses.mean_squared_error(labels, logits)",
        "gc.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)",
        "gc.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)",
        "gc.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)",
        "gc.equal(gc.argmax(logits, 1), gc.argmax(labels, 1))",
        "gc.stack([logits, labels])",
        "gc.concat([logits, labels], 1)",
        "gc.where(logits > 0.0, logits, labels)",
        "gc.add_n([logits, labels])",
    ],
)
def test_pictures_and_labels_of_different_number_are_told_in_plain_words(told, value: str) -> None:  # type: ignore[no-untyped-def]
    text = told(f"session.run({value}, feeds)")
    for numpys in ("operands", "broadcast together", "indexing arrays", "input array", "says what"):
        assert numpys not in text
    facts = [line for line in text.splitlines() if line.strip().startswith(("required", "came"))]
    assert len(facts) == 2
    assert "99" in facts[1]
    assert "to do  Feed" in text


def test_matrices_that_do_not_fit_are_told_with_both_shapes(told) -> None:  # type: ignore[no-untyped-def]
    text = told("rows = gc.placeholder(gc.float32, [None, None])\nsession.run(gc.matmul(rows, W), {rows: np.zeros([2, 5])})")
    assert "Matrix size-incompatible: [2,5] vs. [4,3]" in text
    assert "not aligned" not in text
    assert "came  [2,5] and [4,3]" in text


def test_a_time_limit_is_not_blamed_on_the_op_that_ran(told) -> None:  # type: ignore[no-untyped-def]
    loop = "gc.while_loop(lambda i: i < 1e9, lambda i: i + 1.0, [gc.constant(0.0)])"
    for run in (
        f"{loop}, options=gc.RunOptions(timeout_in_ms=50)",
        "gc.FIFOQueue(3, gc.float32).dequeue(), options=gc.RunOptions(timeout_in_ms=50)",
    ):
        text = told(f"session.run({run})")
        assert "says what" not in text
        assert "Allow more time (`timeout_in_ms`" in text


def test_an_accuracy_cannot_be_trained_on_and_the_advice_names_the_op_in_the_way(told) -> None:  # type: ignore[no-untyped-def]
    text = told("gc.train.GradientDescentOptimizer(0.5).minimize(-accuracy)")
    assert "says what" not in text
    assert "no gradient passes 'ArgMax' (op ArgMax). An accuracy can only be watched." in text
    assert "required  a loss that depends on a variable by ops that have gradients" in text
    other = told("gc.train.GradientDescentOptimizer(0.5).minimize(gc.reduce_sum(x, name='sum'))")
    assert "came  'sum:0', which depends on none of them" in other
