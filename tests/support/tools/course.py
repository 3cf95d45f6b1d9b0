"""The notebooks of the course: their outputs and their solutions.

`python -m tests.support.tools.course 02 03` writes those of notebooks 02 and 03, without arguments of all. A course notebook is executed and
written with its outputs; its solution is written from it and from the answers in the solution's own exercise cells.
"""

from __future__ import annotations

import copy
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

from widgets.render.saved_picture import SCENE_MIME_TYPE

ROOT: Final = Path(__file__).parents[3]
NOTEBOOKS: Final = ROOT / "notebooks"
SOLUTIONS: Final = NOTEBOOKS / "solutions"
COURSE: Final = (
    "01_nodes_edges_control",
    "02_shapes",
    "03_variables",
    "04_gradients",
    "05_functions",
    "06_branches_loops",
    "07_training",
    "08_placement",
    "09_real_models",
    "10_many_machines",
    "11_node_defs_to_bodies",
)
CELL_SECONDS: Final = 180
EXERCISE: Final = "exercise"
CHECK: Final = "check"
MISTAKE: Final = "mistake"
MAY_RAISE: Final = "raises-exception"
"""The tag with which Jupyter goes on after a cell that fails."""
_LIVE: Final = "application/vnd.jupyter.widget-view+json"

Notebook = Any
Cell = Any


def course_notebooks() -> list[Path]:
    """The notebooks of the course: those that have a solution, in the order of the course."""
    return [NOTEBOOKS / f"{name}.ipynb" for name in COURSE if (SOLUTIONS / f"{name}.ipynb").exists()]


def read(path: Path) -> Notebook:
    """The notebook in a file."""
    return nbformat.read(path, as_version=4)


def tags(cell: Cell) -> list[str]:
    """The tags of a cell."""
    return list(cell.metadata.get("tags", []))


def tagged(notebook: Notebook, tag: str) -> list[Cell]:
    """The cells with a tag, in their order."""
    return [cell for cell in notebook.cells if tag in tags(cell)]


def execute(notebook: Notebook, folder: Path, after: Callable[[Cell], None] | None = None) -> None:
    """Run the code cells in a fresh kernel whose working directory is `folder`.

    Args:
        notebook: gets the outputs.
        folder: the working directory.
        after: is called after each code cell with this cell. Later cells may still change the outputs, as those of live pictures.

    Raises:
        CellExecutionError: a cell failed that has no tag `raises-exception`.
    """
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as profile:
        environment = {**os.environ, "PYTHONPATH": search, "IPYTHONDIR": profile, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            record_timing=False,
            store_widget_state=False,
            coalesce_streams=True,
            on_cell_executed=None if after is None else lambda cell, **_: after(cell),
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute(env=environment)


def with_outputs(notebook: Notebook) -> Notebook:
    """The executed notebook as it is committed.

    Its outputs show without a kernel; the checks of exercises have none.
    """
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if CHECK in tags(cell):
            cell.outputs, cell.execution_count = [], None
        cell.outputs = [output for output in cell.outputs if _LIVE not in output.get("data", {})]
        for output in cell.outputs:
            picture = output.get("data", {}).get(SCENE_MIME_TYPE)
            if picture is not None:
                picture.pop("model", None)
                picture["message"]["scene"]["revision"] = 0  # so that the same notebook is written the same again
    return _bare(notebook)


def without_outputs(notebook: Notebook) -> Notebook:
    """The notebook before its first run."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return _bare(notebook)


def solved(course: Notebook, answers: dict[str, str]) -> Notebook:
    """A copy of a course notebook, without outputs, whose exercise cells contain the answers.

    Args:
        course: the course notebook.
        answers: the sources by cell id; an exercise without one keeps its start.
    """
    notebook = without_outputs(copy.deepcopy(course))
    for cell in tagged(notebook, EXERCISE):
        cell.source = answers.get(cell.id, cell.source)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _LINK.sub(_from_solutions, cell.source)
    return notebook


def answers_in(notebook: Notebook) -> dict[str, str]:
    """The sources of the exercise cells, by cell id."""
    return {cell.id: cell.source for cell in tagged(notebook, EXERCISE)}


def text_of(cell: Cell) -> str:
    """The text among the outputs of a cell, without colours: streams, results, errors."""
    parts = []
    for output in cell.get("outputs", []):
        parts += [output.get("text", ""), output.get("data", {}).get("text/plain", ""), "\n".join(output.get("traceback", []))]
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(filter(None, parts)))


_LINK: Final = re.compile(r"(?<=\]\()(?P<target>[^)\s:#]+)(?=[)#])")


def _from_solutions(link: re.Match[str]) -> str:
    """The target of a relative link, from the folder of solutions. That of a course notebook is its solution."""
    target = link["target"]
    return target if target.removesuffix(".ipynb") in COURSE else os.path.relpath(NOTEBOOKS / target, SOLUTIONS)


def _bare(notebook: Notebook) -> Notebook:
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for cell in notebook.cells:
        chosen = tags(cell)
        cell.metadata = nbformat.from_dict({"tags": chosen} if chosen else {})
    return notebook


def write(path: Path) -> None:
    """Execute a course notebook, and write it with its outputs and its solution."""
    notebook = read(path)
    execute(notebook, path.parent)
    nbformat.write(with_outputs(notebook), path)
    solution = SOLUTIONS / path.name
    answers = answers_in(read(solution)) if solution.exists() else {}
    nbformat.write(solved(notebook, answers), solution)


if __name__ == "__main__":
    chosen = sys.argv[1:]
    for name in COURSE:
        file = NOTEBOOKS / f"{name}.ipynb"
        if file.exists() and (not chosen or name.startswith(tuple(chosen))):
            write(file)
            print(f"{name}: {file.stat().st_size / 1000:.0f} KB")
