"""The notebooks about PyTorch and JAX run from top to bottom, and find what they promise."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.support.tools.course import MISTAKE, NOTEBOOKS, Cell, Notebook, execute, read, tagged, text_of

FINDINGS = {
    "pytorch": {
        "show": ("scope first/", "float [300,16]"),
        "clash-words": ("second/linear failed:", "20 is axis 0 of first.weight", "16 is axis 1 of second.weight"),
        "nan": ("loss nan",),
        "values-words": ("The first NaN or Inf of this run: log:0", "log(p)", "its inputs were finite", "softmax:0"),
        "cut": ("the first layer has learned: False",),
        "explain": ("is None", "detached", "self.seen = h = h.detach()"),
        "mirror": ("function ∇cross_entropy [gradient of cross_entropy", "gradient of model Watched/"),
        "mended-trained": ("all values are finite",),
    },
    "jax": {
        "show": ("params_first_w float [2,16]", "float [300,16]"),
        "clash-words": ("failed:", "20 is axis 1 of params['first']['w']", "16 is axis 0 of params['second']['w']"),
        "nan": ("loss nan",),
        "values-words": ("The first NaN or Inf of this run: exp:0", "its inputs were finite"),
        "cut": ("the first layer has learned: False",),
        "explain": ("it is zero for these values", "h = jax.lax.stop_gradient(h)"),
        "mirror": ("Output result_1_0_0_first_w [new]\n", "Output result_1_0_0_second_w [new] <- ∇second/"),
        "mended-trained": ("all values are finite",),
    },
}


class Executed(NamedTuple):
    """A notebook after its run.

    The texts below each cell, and below the first picture, are those directly after the run of that cell.
    """

    name: str
    notebook: Notebook
    texts: dict[str, str]
    pictures: dict[str, str]


@pytest.fixture(scope="module", params=["pytorch", "jax"])
def executed(request: pytest.FixtureRequest) -> Executed:
    name: str = request.param
    pytest.importorskip("torch" if name == "pytorch" else name)
    notebook = read(NOTEBOOKS / "extra" / f"{name}.ipynb")
    (first,) = [cell for cell in notebook.cells if cell.id == "show"]
    run = Executed(name, notebook, {}, {})

    def note(cell: Cell) -> None:
        run.texts[cell.id], run.pictures[cell.id] = text_of(cell), text_of(first)

    execute(notebook, NOTEBOOKS / "extra", note)
    return run


def test_a_notebook_of_a_framework_finds_its_faults(executed: Executed) -> None:
    findings = FINDINGS[executed.name].items()
    missing = [(cell, text) for cell, promised in findings for text in promised if text not in executed.texts[cell]]
    assert missing == []


def test_the_picture_is_red_while_the_sizes_clash(executed: Executed) -> None:
    red = [cell for cell, text in executed.pictures.items() if "[error" in text]
    assert red == ["wider", "clash", "clash-words"]


def test_only_its_mistakes_end_with_an_error(executed: Executed) -> None:
    cells = executed.notebook.cells
    failed = [cell.id for cell in cells if any(output.output_type == "error" for output in cell.get("outputs", []))]
    assert failed == ["clash"]
    assert failed == [cell.id for cell in tagged(executed.notebook, MISTAKE)]


def test_the_gradient_of_the_layer_that_does_not_learn_ends_at_one_place(executed: Executed) -> None:
    assert executed.texts["explain"].count("  [cell In [") == 1
