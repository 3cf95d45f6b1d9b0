"""nbgrader and otter-grader grade the sample assignments: right and wrong submissions, hidden tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest

pytestmark = pytest.mark.graders

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = ROOT / "notebooks" / "extra"
VARIABLE = "GRAPHLOUPE_GRADERS"
SECONDS = 300
LAYER, LOSS = "layer", "loss"
SUBMISSIONS: dict[str, tuple[dict[str, str], dict[str, float]]] = {
    "right": ({}, {LAYER: 2, LOSS: 3}),
    # Only the hidden tests see this: the shapes are right, but training is too slow.
    "slow": ({"Optimizer(0.5)": "Optimizer(0.0005)"}, {LAYER: 2, LOSS: 0}),
    "wrong": ({"[4, 3]": "[4, 5]", "gc.zeros([3])": "gc.zeros([5])", "reduce_mean": "exp"}, {LAYER: 0, LOSS: 0}),
}
"""The replacements in the solution of each student, and nbgrader's points for it."""
OTTERS_POINTS = {**{student: points for student, (_, points) in SUBMISSIONS.items()}, "slow": {LAYER: 2, LOSS: 1.5}}
"""Otter gives each test case, visible or hidden, its share of the points."""


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    python = Path(os.environ.get(VARIABLE) or ROOT / ".venv-graders" / "bin" / "python")
    if not python.exists():
        pytest.fail(f"no interpreter with nbgrader and otter-grader at {python}: `make graders` makes one, or set {VARIABLE}")
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "JUPYTER_PREFER_ENV_PATH": "1", "PYTHONPATH": str(ROOT), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def run(environment: Mapping[str, str], folder: Path, *command: str) -> str:
    done = subprocess.run(
        ["python", "-m", *command],
        cwd=folder,
        env={**environment, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def solutions(path: Path) -> list[str]:
    """The code between the marks of solutions, in the order of the questions."""
    sources = [cell.source for cell in nbformat.read(path, as_version=4).cells]
    return [found[1] for source in sources if (found := re.search(r"# BEGIN SOLUTION\n(.*)\n#+ END SOLUTION", source, re.DOTALL))]


def write_submission(release: Path, path: Path, answers: list[str], changes: Mapping[str, str], blank: str) -> None:
    """Fill the blank cells of a released notebook with changed solutions."""
    notebook: Any = nbformat.read(release, as_version=4)
    blanks = [cell for cell in notebook.cells if cell.cell_type == "code" and blank in cell.source]
    for cell, answer in zip(blanks, answers, strict=True):
        for old, new in changes.items():
            answer = answer.replace(old, new)
        cell.source = answer
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


SCORES = """
import json
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    print(json.dumps({s.student.id: {g.name: g.score for n in s.notebooks for g in n.grades} for s in book.assignment_submissions("graphs")}))
"""


def test_nbgrader_grades_by_visible_and_hidden_tests(environment: dict[str, str], tmp_path: Path) -> None:
    assignment = ASSIGNMENTS / "assignment_nbgrader.ipynb"
    source = tmp_path / "source" / "graphs" / "graphs.ipynb"
    source.parent.mkdir(parents=True)
    source.write_bytes(assignment.read_bytes())
    run(environment, tmp_path, "nbgrader", "generate_assignment", "graphs", "--create")
    release = tmp_path / "release" / "graphs" / "graphs.ipynb"
    assert "HIDDEN" not in release.read_text()
    assert "gc.Variable" not in release.read_text()
    for student, (changes, _) in SUBMISSIONS.items():
        write_submission(
            release, tmp_path / "submitted" / student / "graphs" / "graphs.ipynb", solutions(assignment), changes, "YOUR CODE HERE"
        )
    run(environment, tmp_path, "nbgrader", "autograde", "graphs", "--create")
    scores = json.loads(subprocess.check_output(["python", "-c", SCORES], cwd=tmp_path, env=environment, text=True))
    assert scores == {
        student: {f"{name}-checks": points for name, points in expected.items()} for student, (_, expected) in SUBMISSIONS.items()
    }
    graded = (tmp_path / "autograded" / "wrong" / "graphs" / "graphs.ipynb").read_text()
    assert "of shape [4,3], got [4,5]" in re.sub(r"\\u001b\[[0-9;]*m", "", graded)


def test_otter_grades_by_visible_and_hidden_tests(environment: dict[str, str], tmp_path: Path) -> None:
    assignment = tmp_path / "graphs.ipynb"
    assignment.write_bytes((ASSIGNMENTS / "assignment_otter.ipynb").read_bytes())
    run(environment, tmp_path, "otter", "assign", "graphs.ipynb", "dist")
    release = tmp_path / "dist" / "student" / "graphs.ipynb"
    assert "trains" not in release.read_text()
    (autograder,) = (tmp_path / "dist" / "autograder").glob("*.zip")
    for student, (changes, _) in SUBMISSIONS.items():
        results = tmp_path / student
        write_submission(release, results / "graphs.ipynb", solutions(assignment), changes, "...")
        run(environment, tmp_path, "otter", "run", "-a", str(autograder), "-o", str(results), str(results / "graphs.ipynb"))
        tests = json.loads((results / "results.json").read_text())["tests"]
        assert {test["name"]: test["score"] for test in tests if "score" in test} == OTTERS_POINTS[student]
        if student == "wrong":
            assert "of shape [4,3], got [4,5]" in tests[0]["output"]
