"""The notebooks of the course: contents, outputs, exercises, solutions."""

from __future__ import annotations

import ast
import base64
import gzip
import re
from pathlib import Path

import pytest

from tests.support.tools.course import (
    CHECK,
    COURSE,
    EXERCISE,
    MAY_RAISE,
    MISTAKE,
    NOTEBOOKS,
    ROOT,
    SOLUTIONS,
    answers_in,
    course_notebooks,
    execute,
    read,
    solved,
    tagged,
    tags,
    text_of,
    with_outputs,
)
from widgets.render.saved_picture import SCENE_MIME_TYPE

MOST_BYTES = 450_000
MOST_CELLS = 80
MOST_CODE_LINES = 20
MOST_LETTERS = 1_300
EXERCISES = range(3, 7)
STALE = "run: make course"
OF_THIS_MACHINE = re.compile(rf"{re.escape(str(ROOT))}|site-packages|/tmp/|/home/|/root/|\bat 0x[0-9a-f]{{6,}}|ipykernel_\d+")

NODES_BEFORE = "_graph_before = gc.get_default_graph(), list(gc.get_default_graph().nodes)"
NODES_AFTER = "assert _graph_before == (gc.get_default_graph(), list(gc.get_default_graph().nodes)), 'a check has changed the graph'"

NUMBERS = {9: "Nine", 10: "Ten", 11: "Eleven", 12: "Twelve"}

each_course_notebook = pytest.mark.parametrize("path", course_notebooks(), ids=lambda path: path.stem)


def test_the_course_is_complete_and_listed_in_the_quick_start() -> None:
    assert [path.stem for path in course_notebooks()] == list(COURSE)
    front = "".join(cell.source for cell in read(NOTEBOOKS / "00_quickstart.ipynb").cells)
    assert [name for name in COURSE if f"]({name}.ipynb)" not in front] == []
    assert f"{NUMBERS[len(COURSE)]} notebooks" in front


@pytest.mark.slow
@each_course_notebook
def test_a_course_notebook_runs_as_committed_and_each_check_says_that_its_answer_is_missing(path: Path) -> None:
    committed, notebook = read(path), read(path)
    execute(notebook, path.parent)
    for cell in tagged(notebook, CHECK):
        assert "CheckFailed: The answer is missing" in text_of(cell), cell.source
    for cell in tagged(notebook, MISTAKE):
        assert any(output.output_type == "error" for output in cell.outputs), cell.source
    texts = [[without_digits(text_of(cell)) for cell in each.cells] for each in (committed, with_outputs(notebook))]
    assert texts[0] == texts[1], STALE


@each_course_notebook
def test_each_check_says_when_its_exercise_is_right(path: Path) -> None:
    for cell in tagged(read(path), CHECK):
        number = cell.id.removeprefix("check-")
        assert cell.source.splitlines()[-1] == f'print("Exercise {number} is right.")', cell.id


@pytest.mark.slow
@each_course_notebook
def test_a_solution_runs_and_its_checks_pass_and_leave_its_graph_alone(path: Path) -> None:
    notebook = read(SOLUTIONS / path.name)
    for cell in tagged(notebook, CHECK):
        cell.metadata.tags.remove(MAY_RAISE)
        cell.source = f"{NODES_BEFORE}\n{cell.source}\n{NODES_AFTER}"
    execute(notebook, SOLUTIONS)
    assert all(cell.execution_count for cell in tagged(notebook, CHECK))


@each_course_notebook
def test_a_solution_is_the_course_notebook_with_answers(path: Path) -> None:
    course, solution = read(path), read(SOLUTIONS / path.name)
    assert solved(course, answers_in(solution)) == solution, STALE
    starts, answers = answers_in(course), answers_in(solution)
    assert starts.keys() == answers.keys()
    assert [name for name in starts if has_ellipsis(answers[name])] == [], "an exercise without its answer"


@each_course_notebook
def test_an_exercise_has_a_task_a_hint_a_start_and_a_check(path: Path) -> None:
    notebook = read(path)
    answers, checks = tagged(notebook, EXERCISE), tagged(notebook, CHECK)
    numbers = [str(number) for number in range(1, len(answers) + 1)]
    assert len(answers) in EXERCISES
    assert [cell.id for cell in answers] == [f"exercise-{number}" for number in numbers]
    assert [cell.id for cell in checks] == [f"check-{number}" for number in numbers]
    for number, answer, check in zip(numbers, answers, checks, strict=True):
        index = notebook.cells.index(answer)
        task = notebook.cells[index - 1]
        assert task.source.startswith(f"### Exercise {number}"), task.source
        assert "<details>" in task.source, task.source
        assert has_ellipsis(answer.source), answer.source
        assert notebook.cells[index + 1] is check
        assert "gc.testing." in check.source, check.source


@each_course_notebook
def test_only_checks_and_mistakes_may_raise(path: Path) -> None:
    notebook = read(path)
    may = [cell.id for cell in tagged(notebook, MAY_RAISE)]
    assert may == [cell.id for cell in notebook.cells if {CHECK, MISTAKE} & set(tags(cell))]


@each_course_notebook
def test_a_course_notebook_is_committed_with_outputs_that_show_without_a_kernel(path: Path) -> None:
    notebook = read(path)
    assert path.stat().st_size < MOST_BYTES
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}, cell.id
        if cell.cell_type != "code":
            continue
        checks = CHECK in tags(cell)
        assert (cell.execution_count is None) == checks, f"{cell.id}; {STALE}"
        assert not (checks and cell.outputs), cell.id
        assert OF_THIS_MACHINE.search(text_of(cell)) is None, cell.id
        for output in cell.outputs:
            assert output.get("name") != "stderr", text_of(cell)
            assert not any("widget" in kind for kind in output.get("data", {})), cell.id
        for picture in filter(None, [output.get("data", {}).get(SCENE_MIME_TYPE) for output in cell.outputs]):
            graph = gzip.decompress(base64.b64decode(picture.get("graph_gzip_base64", ""))).decode()
            assert OF_THIS_MACHINE.search(graph) is None, cell.id
    pictures = [
        data
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "<img" in (data := output.get("data", {}).get("text/html", ""))
    ]
    assert pictures, "no picture of a graph"


@each_course_notebook
def test_a_course_notebook_begins_with_its_goals_and_ends_with_what_was_learned(path: Path) -> None:
    notebook = read(path)
    assert re.match(r"# .+\n\n(.+\n?)+", notebook.cells[0].source)
    assert "minutes" in notebook.cells[0].source
    assert "%load_ext kernelext" in notebook.cells[1].source
    last = notebook.cells[-1].source
    assert "## In short" in last
    following = COURSE[COURSE.index(path.stem) + 1 : COURSE.index(path.stem) + 2]
    assert all(f"({name}.ipynb)" in last for name in following)


@each_course_notebook
def test_a_course_notebook_is_cut_into_short_cells(path: Path) -> None:
    notebook = read(path)
    assert len(notebook.cells) <= MOST_CELLS
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert len(cell.source.splitlines()) <= MOST_CODE_LINES, cell.source
        else:
            assert len(cell.source) <= MOST_LETTERS, cell.source


@each_course_notebook
def test_the_teacher_has_a_section_for_the_notebook(path: Path) -> None:
    page = (SOLUTIONS / "teacher.md").read_text(encoding="utf-8")
    assert f"]({path.name})" in page, "link the solution in the heading or text of a section"


@pytest.mark.parametrize("path", sorted((NOTEBOOKS / "zh").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_translation_has_the_cells_of_the_original_in_other_words(path: Path) -> None:
    original, translation = read(NOTEBOOKS / path.name), read(path)
    assert [(cell.id, cell.cell_type, tags(cell)) for cell in original.cells] == [
        (cell.id, cell.cell_type, tags(cell)) for cell in translation.cells
    ]
    for before, after in zip(original.cells, translation.cells, strict=True):
        if after.cell_type == "code":
            assert after.source.removesuffix("\n\n%graph language zh") == before.source, after.id
        else:
            assert len(re.findall(r"[\u4e00-\u9fff]", after.source)) > len(before.source) / 10, after.id


def has_ellipsis(source: str) -> bool:
    """True iff something is left to write. Magics are no Python."""
    plain = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith("%"))
    return any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(ast.parse(plain)))


def without_digits(text: str) -> str:
    """The text with its decimal fractions left out: the last digits of sums are the machine's."""
    return re.sub(r"-?\d*\.\d+(e[+-]?\d+)?|\be[+-]\d+", "#", text)
