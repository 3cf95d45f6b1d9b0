"""`python -m graphcore`: inspecting graph files without a notebook."""

from __future__ import annotations

import gc as collector
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import graphcore as gc
from graphcore.__main__ import main
from graphcore.definitions import GraphDef, NodeDef
from tests.support.pages import carried_by, data_of

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


@pytest.fixture
def misfit(tmp_path: Path) -> Path:
    """A file with contradictory shapes."""
    graph_def = GraphDef(
        node=(
            NodeDef("a", "Placeholder", (), "", {"dtype": gc.float32, "shape": gc.Shape([2, 3])}),
            NodeDef("b", "MatMul", ("a", "a"), "", {"T": gc.float32}),
        )
    )
    return gc.save(graph_def, tmp_path / "misfit.pbtxt")


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "graphcore", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False)


def test_inspect_tells_what_a_file_holds() -> None:
    told = run("inspect", DATA / "mobilenetv2.pb")
    assert (told.returncode, told.stderr) == (0, "")
    for text in (
        "mobilenetv2.pb  1,897,071 bytes",
        "nodes       1,053 with ",
        "versions    producer 2474, min consumer 0",
        "inputs      x  float [1,96,96,3]  (Placeholder)",
        "outputs     Identity  float [1,10]  (Identity)",
        "ops         16 kinds\n",
        "    319  Const\n",
        "scopes        1,050  mobilenetv2_0.35_96_1/  1.7 MB",
        "constants   1.7 MB in 319; the largest is ",
    ):
        assert text in told.stdout


def test_inspect_tells_of_functions_and_signatures_and_ops_that_are_not_known(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    graph = gc.load(DATA / "functions_v2.pb", allow_unknown_ops=True)
    graph.add_node(NodeDef("strange", "Identity", ("x",), "", {"T": gc.float32}))
    strange = GraphDef(node=(*graph.as_graph_def().node, NodeDef("odd", "Nowhere", ("x",))), library=graph.library.to_proto())
    assert main(["inspect", str(gc.save(strange, tmp_path / "odd.pb"))]) == 0
    told = capsys.readouterr().out
    assert "1  Nowhere  (not registered)" in told
    assert "not registered: their nodes can be seen, but not run" in told
    assert "functions   __inference_scale_8778(x:float) -> (identity:float)" in told


def test_a_graph_that_was_rewritten_for_a_run_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gc.Graph().as_default() as graph:
        gc.negative(gc.placeholder(gc.float32, [2], name="x"), name="y")
    rewritten = gc.rewrite_graph_for_execution(graph, ["x:0"], ["y:0"], [], "/job:a/replica:0/task:0/device:CPU:0").graph
    assert main(["inspect", str(gc.save(rewritten, tmp_path / "rewritten.pb"))]) == 0
    assert "1  _Recv" in capsys.readouterr().out


def test_a_scope_nested_thousands_deep_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gc.Graph().as_default() as graph:
        gc.no_op("/".join(["s"] * 5_000))
    path = gc.save(graph, tmp_path / "deep.pb")
    for ending in ("html", "txt", "dot", "mmd"):
        assert main(["view", str(path), "-o", str(tmp_path / f"deep.{ending}")]) == 0
    assert capsys.readouterr().err == ""


def test_shapes_that_do_not_fit_are_a_warning(misfit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(misfit)]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("warning: shapes are left out, because they do not fit: ")
    assert "nodes       2 with 2 inputs" in told.out


def test_view_writes_a_page_that_opens_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["view", str(DATA / "while_v1.pb"), "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "while/NextIteration" in carried_by(data_of(text)).names


@pytest.mark.parametrize("ending", ["html", "svg", "dot", "txt"])
def test_what_view_writes_carries_the_name_of_the_file(tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"out.{ending}"
    assert main(["view", str(DATA / "while_v1.pb"), "-o", str(out)]) == 0
    assert "while_v1.pb" in out.read_text("utf-8")
    if ending == "html":
        assert "<title>while_v1.pb</title>" in out.read_text("utf-8")
        assert '"title":"while_v1.pb"' in out.read_text("utf-8")  # of the scene, shown in the status line


def test_nodes_of_a_file_that_is_viewed_were_made_by_no_line_of_the_users(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("view", DATA / "while_v1.pb", "-o", page).returncode == 0
    carried = carried_by(data_of(page.read_text("utf-8")))
    assert "while/NextIteration" in carried.names
    assert "runpy" not in carried.json


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["inspect", "nothing.pb"], "error: No such file or directory: nothing.pb"),
        (["inspect", __file__], "error: "),
        (["view", str(DATA / "while_v1.pb"), "-o", "picture.xyz"], "error: Cannot tell the format of 'picture.xyz'"),
        (["view", str(DATA / "while_v1.pb"), "-o", "/nowhere/picture.txt"], "error: "),
    ],
    ids=["no-file", "no-graph", "no-format", "no-folder"],
)
def test_what_goes_wrong_is_told_in_one_line(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert told.startswith(text)
    assert len(told.splitlines()) == 1


def test_a_command_leaves_the_garbage_collector_on_whether_it_succeeds_or_not(tmp_path: Path) -> None:
    assert main(["inspect", str(DATA / "mlp_train_v1.pb")]) == 0
    assert collector.isenabled()
    assert main(["inspect", str(tmp_path / "nothing.pb")]) == 1
    assert collector.isenabled()


def test_inspect_loads_no_views() -> None:
    code = (
        "import sys, graphcore.__main__ as m; m.main(['inspect', sys.argv[1]]); print([n for n in sys.modules if n.startswith('widgets')])"
    )
    told = subprocess.run([sys.executable, "-c", code, str(DATA / "mlp_train_v1.pb")], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1] == "[]"


def test_view_loads_no_notebook_and_no_networkx(tmp_path: Path) -> None:
    code = "import sys, graphcore.__main__ as m; m.main(['view', sys.argv[1], '-o', sys.argv[2]]); print([*sys.modules])"
    command = [sys.executable, "-c", code, str(DATA / "mobilenetv2.pb"), str(tmp_path / "page.html")]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"'IPython'", "'ipywidgets'", "'networkx'"} & set(told.stdout.splitlines()[-1].strip("[]").split(", "))


def test_importing_the_package_loads_no_protobuf_and_nothing_of_numpy_that_takes_long() -> None:
    code = "import sys, graphcore; print([name for name in sys.modules if name.startswith(('google', 'numpy.f2py', 'numpy.testing', 'unittest'))])"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_diff_tells_what_is_different_in_a_second_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name, act in (("a", gc.relu), ("b", gc.tanh)):
        graph = gc.Graph()
        with graph.as_default():
            act(gc.placeholder(gc.float32, [2], name="x"), name="h")
        paths.append(gc.save(graph, tmp_path / f"{name}.pb"))
    assert main(["diff", *map(str, paths)]) == 0
    assert capsys.readouterr().out == "1 changed, 1 unchanged\n~ h  op: Relu → Tanh\n"
    assert main(["diff", str(paths[0]), str(paths[0])]) == 0
    assert capsys.readouterr().out == "No difference\n"
    assert main(["diff", str(paths[0]), str(tmp_path / "missing.pb")]) == 1
    assert "missing.pb" in capsys.readouterr().err


def test_a_file_alone_is_viewed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(DATA / "mobilenetv2.pb"), "-o", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'page.html'}\n"
    assert (tmp_path / "page.html").stat().st_size > 100_000


def test_stats_tells_how_large_a_model_is_and_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(DATA / "mobilenetv2.pb")]) == 0
    told = capsys.readouterr().out
    assert "10.7 M multiply-adds\n23 M operations\n" in told
    assert re.search(r"\n  mobilenetv2_0\.35_96_1 +10\.7 M +0\n", told)


def test_the_help_shows_every_command_and_examples() -> None:
    told = run("--help")
    assert told.returncode == 0
    for text in ("view", "stats", "inspect", "diff", "lab", "%load_ext kernelext", "resnet50.onnx", "examples:"):
        assert text in told.stdout


def test_lab_says_what_to_install_where_jupyterlab_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("graphcore.__main__.find_spec", lambda _name: None)
    assert main(["lab"]) == 1
    assert capsys.readouterr().err == "error: JupyterLab is not installed: pip install 'graphloupe[lab]'\n"


def test_the_installed_command_is_the_same() -> None:
    (script,) = [entry for entry in entry_points(group="console_scripts") if entry.name == "graphloupe"]
    assert script.load() is main
