"""The extension as a whole: effects of `%load_ext`, `%graph` and unloading."""

from __future__ import annotations

from typing import Any

import pytest

from kernelext import open_view
from kernelext import views as views_module
from tests.kernelext.conftest import NotebookShell
from tests.kernelext.simulated_page import Page, Panel
from widgets.live.function_view import FunctionView
from widgets.live.graph_view import GraphView
from widgets.render.saved_picture import SCENE_MIME_TYPE

BUILD = 'x = gc.placeholder(gc.float32, [None, 4], name="x")'


def traces(shell: NotebookShell) -> dict[str, Any]:
    """Everything the extension could leave behind in a shell."""
    display: Any = shell.display_formatter
    hooks: Any = shell.hooks
    inspector: Any = shell.inspector
    return {
        "events": {name: list(callbacks) for name, callbacks in shell.events.callbacks.items()},
        "magics": {kind: dict(table) for kind, table in shell.magics_manager.magics.items()},
        "pager": list(hooks.show_in_pager.chain),
        "pages": dict(inspector.mime_hooks),
        "loading": shell.magics_manager.magics["line"]["load_ext"],
        "exceptions": (shell.custom_exceptions, shell.CustomTB),
        "matchers": list(shell.Completer.custom_matchers),
        "formatters": {mime: dict(formatter.type_printers) for mime, formatter in display.formatters.items()},
        "displays": dict(display.ipython_display_formatter.type_printers),
        "attributes": {name for name in vars(shell) if "graphloupe" in name},
    }


def test_unloading_restores_everything(shell: NotebookShell) -> None:
    shell.run("%load_ext", "0")  # IPython loads the magic at its first use
    before = traces(shell)
    shell.run("%load_ext kernelext", "a")
    during = traces(shell)
    for part, was in before.items():
        assert during[part] != was, f"the extension changes '{part}', or this test looks at the wrong place"
    shell.run("%unload_ext kernelext", "b")
    assert traces(shell) == before


@pytest.mark.parametrize("again", ["%load_ext kernelext", "%reload_ext kernelext"])
def test_loading_twice_is_loading_once(shell: NotebookShell, again: str) -> None:
    shell.run("%load_ext", "0")
    before = traces(shell)
    shell.run("%load_ext kernelext", "a")
    once = {name: len(callbacks) for name, callbacks in traces(shell)["events"].items()}
    shell.run(again, "b")
    assert {name: len(callbacks) for name, callbacks in traces(shell)["events"].items()} == once
    assert len(shell.Completer.custom_matchers) == len(before["matchers"]) + 1
    shell.run("%unload_ext kernelext", "c")
    assert traces(shell) == before


def test_the_cell_that_loads_the_extension_says_nothing_when_it_runs_again(
    shell: NotebookShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run("%load_ext kernelext", "a")
    shell.run("%load_ext kernelext", "a")
    assert capsys.readouterr() == ("", "")
    shell.run("%load_ext no_such_extension", "b")
    assert "no_such_extension" in "".join(capsys.readouterr())
    shell.run("%unload_ext kernelext", "c")


def test_a_magic_of_the_users_called_graph_comes_back(shell: NotebookShell) -> None:
    shell.run("from IPython.core.magic import register_line_magic\n@register_line_magic\ndef graph(line):\n    return 'theirs'", "a")
    shell.run("%load_ext kernelext", "b")
    shell.run("%unload_ext kernelext", "c")
    assert shell.run("%graph", "d").result == "theirs"


def test_nodes_of_the_cell_that_loads_the_extension_are_owned_too(shell: NotebookShell, page: Page) -> None:
    shell.run("%reload_ext kernelext\nx = gc.constant(1.0, name='x')", "a")
    shell.run("%reload_ext kernelext\nx = gc.constant(1.0, name='x')", "a")
    names = shell.run("[node.name for node in gc.get_default_graph().nodes]", "b").result
    assert names == ["x"]


@pytest.mark.parametrize("cell", ["a", ""])
def test_nodes_of_the_cell_that_loads_the_extension_know_their_cell_and_line(shell: NotebookShell, page: Page, cell: str) -> None:
    shell.run("%reload_ext kernelext\n\nx = gc.constant(1.0, name='x')", cell)
    number = shell.execution_count - 1
    assert shell.run("x.node.source.where", "b").result == f"cell In [{number}], line 3"


def test_graph_opens_one_panel_and_reuses_it(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph", "a")
    page.says("ready")
    shell.run("%graph", "a")
    shell.run("%graph --lens cells", "b")
    assert [panel.title for panel in page.panels] == ["Graph"]
    page.wait()
    assert page.live_in_cells() == 0


def test_a_panel_that_was_closed_opens_again(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph", "a")
    page.says("ready")
    page.says("closed")
    shell.run("%graph", "a")
    assert len(page.panels) == 2
    assert page.panels[0].closed
    assert page.panels[0].view is page.panels[1].view


def test_further_graphs_open_as_tabs_beside_a_panel_that_is_there(shell: NotebookShell, page: Page) -> None:
    shell.run("first = gc.Graph()\nsecond = gc.Graph()", "a")
    for name in ("", "first", "second"):
        shell.run(f"%graph {name}", f"graph {name}")
        page.says("ready")
    whole, first, second = page.panels
    assert (whole.ref, first.ref, second.ref) == (None, whole, first)
    page.says("closed", whole.view)
    shell.run("%graph", "again")
    assert first.ref is None, "a page that is loaded anew would look for a panel that is closed"
    assert page.panels[-1].ref is second


def test_a_panel_that_may_be_covered_by_another_comes_forward(shell: NotebookShell, page: Page) -> None:
    shell.run("g = gc.Graph()\n%graph", "a")
    page.says("ready")
    shell.run("%graph g", "b")
    assert not any(message["type"] == "to_front" for message in page.sent)
    shell.run("%graph", "a")
    assert [message["type"] for message in page.sent].count("to_front") == 1


def test_where_no_panel_appears_the_view_moves_into_the_cell(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph", "a")
    shell.run(BUILD, "b")
    page.wait()
    assert page.panels[0].closed
    assert page.live_in_cells() == 1
    shell.run("%graph", "c")
    assert len(page.panels) == 1, "having learnt that there is no side panel, it does not try again"
    assert page.live_in_cells() == 2


def test_a_page_that_has_shown_a_panel_may_take_its_time_for_the_next(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph", "a")
    page.says("ready")
    page.wait()
    shell.run("%graph off", "b")
    shell.run("%graph", "c")
    page.wait()
    assert not page.panels[1].closed
    assert page.live_in_cells() == 0


def test_inline_and_off_do_what_they_say(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph inline", "a")
    assert page.panels == []
    assert page.live_in_cells() == 1
    shell.run("%graph side", "b")
    panel = page.panels[0]
    shell.run("%graph off", "c")
    assert panel.closed
    count = len(page.sent)
    shell.run(BUILD, "d")
    assert len(page.sent) == count


def test_each_cell_is_shown_once(shell: NotebookShell, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.run("%graph", "a")
    for cell, (code, pictures) in enumerate(((BUILD, 1), ("y = x + 1.0\nz = y * 2.0", 1), ("1 / 0", 1), ("", 0), ("k = 3", 0))):
        before = len(page.scenes())
        shell.run(code, f"cell {cell}")
        assert len(page.scenes()) == before + pictures, "the third takes the marks of new boxes away, the others change nothing"
    assert {node["label"] for node in page.scenes()[-1]["nodes"]} >= {"x", "add", "mul"}


def test_still_pictures_are_renewed_below_the_cell_that_asked(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph quiet\n%graph", "a")
    assert "nothing to show yet" in page.stills()[-1]
    shell.run(BUILD, "b")
    shell.run("%unload_ext kernelext", "c")  # the last picture is finished before closing
    assert "1 node" in page.stills()[-1]
    updates = [display for display in page.displays if display.get("update")]
    assert updates
    assert updates[-1]["transient"]["display_id"] in {
        display["transient"]["display_id"] for display in page.displays if not display.get("update")
    }


def test_a_picture_stays_that_of_its_graph_when_a_later_cell_asks_for_the_view_of_another(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph quiet\n%graph", "a")
    shell.run("gc.constant(1.0, name='early')", "b")
    page.finish_stills()
    shell.run("gc.reset_default_graph()\n%graph\ngc.constant(1.0, name='late')", "c")
    shell.run("gc.constant(2.0, name='later')", "d")
    page.wait()
    page.finish_stills()
    last = {display["transient"]["display_id"]: display["data"] for display in page.displays if SCENE_MIME_TYPE in display["data"]}
    shown = [{node["label"] for node in data[SCENE_MIME_TYPE]["message"]["scene"]["nodes"]} for data in last.values()]
    assert shown == [{"early"}, {"late", "later"}]


def saved_graph(page: Page) -> bool:
    """True iff the last saved picture opens without a kernel."""
    saved = [display["data"][SCENE_MIME_TYPE] for display in page.displays if SCENE_MIME_TYPE in display["data"]]
    return bool(saved[-1].get("graph_gzip_base64"))


def test_an_idle_kernel_saves_the_graph_in_slices_and_a_cell_that_adds_nothing_keeps_it(
    shell: NotebookShell, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "SLICE_SECONDS", 0.0)
    shell.run("%graph", "a")
    shell.run(BUILD, "b")
    page.later.pop()()
    assert len(page.later) > 0  # only one slice was done
    page.wait()
    page.finish_stills()
    assert saved_graph(page)
    shell.run("1 + 1", "c")
    page.wait()
    page.finish_stills()
    assert saved_graph(page)
    shown = len(page.displays)
    shell.run("1 + 1", "d")
    assert page.later == []
    assert len(page.displays) == shown


def test_a_cell_that_changes_the_graph_while_it_is_saved_begins_the_saving_anew(
    shell: NotebookShell, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "SLICE_SECONDS", 0.0)
    shell.run("%graph", "a")
    shell.run(BUILD, "b")
    page.later.pop()()
    shell.run("y = x + 1.0", "c")
    page.wait()
    page.finish_stills()
    assert saved_graph(page)
    last = next(display["data"] for display in reversed(page.displays) if SCENE_MIME_TYPE in display["data"])
    assert {node["label"] for node in last[SCENE_MIME_TYPE]["message"]["scene"]["nodes"]} >= {"x", "add"}


def test_without_a_page_there_is_only_the_still_picture_and_it_is_up_to_date_at_once(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph")
    shell.run(BUILD)
    assert page.panels == []
    assert page.live_in_cells() == 0
    assert "1 node" in page.stills()[-1]


def test_a_view_follows_its_variable(shell: NotebookShell, page: Page) -> None:
    make = "g = gc.Graph()\nwith g.as_default():\n    gc.constant(1.0, name='{}')"
    shell.run(make.format("one"), "a")
    shell.run("%graph g", "b")
    assert [panel.title for panel in page.panels] == ["g"]
    assert [node["label"] for node in page.scenes()[-1]["nodes"]] == ["one"]
    shell.run(make.format("two"), "c")
    assert [node["label"] for node in page.scenes()[-1]["nodes"]] == ["two"]
    shell.run("del g", "d")
    assert [node["label"] for node in page.scenes()[-1]["nodes"]] == ["two"]


@pytest.mark.parametrize("name", ["session", "x", "node"])
def test_a_graph_is_found_through_what_belongs_to_it(shell: NotebookShell, page: Page, name: str) -> None:
    shell.run(f"{BUILD}\nnode = x.node\nsession = gc.Session()", "a")
    shell.run(f"%graph {name}", "b")
    assert [node["label"] for node in page.scenes()[-1]["nodes"]] == ["x"]


def test_graph_time_records_the_runs_from_then_on_and_opens_the_lens(shell: NotebookShell, page: Page) -> None:
    shell.run("%graph", "a")
    shell.run("g = gc.get_default_graph()\nx = gc.constant([1.0, 2.0], name='x')\ny = gc.tanh(x + gc.random_uniform([2]), name='y')", "b")
    shell.run("session = gc.Session()\nsession.run(y)", "c")
    assert shell.run("g.trace is None", "d").result
    shell.run("%graph time", "e")
    assert [message["lens"] for message in page.sent if message["type"] == "scene"][-1] == "time"
    assert "the next session.run" in next(lens for lens in page.scenes()[-1]["lenses"] if lens["name"] == "time")["note"]
    shell.run("session.run(y)", "f")
    assert [node["id"] for node in page.scenes()[-1]["nodes"] if "time" in node["lenses"] and node["id"] == "y"]
    first = shell.run("g.trace", "g").result
    shell.run("%graph time off", "h")
    shell.run("session.run(y)", "i")
    assert shell.run("g.trace", "j").result is first
    shell.run("%graph time", "k")
    shell.run("%graph off\nsession.run(y)", "l")
    assert shell.run("g.trace", "m").result is first, "closing the view ends the recording"


def test_recording_follows_the_variable_to_another_graph(shell: NotebookShell, page: Page) -> None:
    shell.run("mine = gc.Graph()\n%graph time mine", "a")
    shell.run("old = mine\nmine = gc.Graph()", "b")
    assert shell.run("(old.recording, mine.recording.trace)", "c").result == (None, True)


def test_a_graph_line_puts_gradients_beside_what_they_differentiate(shell: NotebookShell, page: Page) -> None:
    shell.run(f"{BUILD}\ngc.gradients(gc.tanh(x, name='y'), x)", "a")
    shell.run("%graph --mirror", "b")
    page.says("ready")
    message = [message for message in page.sent if message["type"] == "scene"][-1]
    assert message["openings"]["mirror"]
    assert [node["mirrors"] for node in message["scene"]["nodes"] if node["id"] == "∇y"] == ["y"]
    shell.run("%graph", "b")
    assert [message for message in page.sent if message["type"] == "scene"][-1]["openings"]["mirror"]


@pytest.mark.parametrize("broken", ["refresh", "show", "picture"])
def test_a_broken_view_never_reaches_the_cell(
    shell: NotebookShell, page: Page, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], broken: str
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise ZeroDivisionError("a broken view")

    shell.run("%graph", "a")
    page.says("ready")
    if broken == "picture":
        monkeypatch.setattr("widgets.render.saved_picture.to_saved_bundle", fail)
    else:
        monkeypatch.setattr(GraphView, broken, fail)
    capfd.readouterr()
    for cell in ("b", "c"):
        assert shell.run(f"{BUILD}\n'fine'", cell).result == "fine"
        page.wait()
        page.finish_stills()
    shell.run("%unload_ext kernelext", "d")
    shown = capfd.readouterr()
    assert "broken view" not in shown.out
    assert "Traceback" not in shown.out
    failures = [message["text"] for message in page.sent if message["type"] == "failure"]
    assert failures
    assert "ZeroDivisionError: a broken view" in failures[0]


def test_a_view_that_cannot_even_be_opened_is_said_and_the_cell_goes_on(
    shell: NotebookShell, page: Page, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(view: GraphView, title: str, neighbour: Panel | None) -> None:
        raise OSError("no panel today")

    monkeypatch.setattr(open_view, "open_side_panel", fail)
    result = shell.run("%graph\n'the rest of the cell'", "a")
    assert result.result == "the rest of the cell"
    assert "the view could not be opened (OSError: no panel today)" in capfd.readouterr().err


FUNCTION = "@gc.function\ndef twice(v):\n    return v + v\nidle = twice\n"


def test_a_function_as_the_last_expression_shows_live_and_leaves_a_picture(shell: NotebookShell, page: Page) -> None:
    shell.run(f"{FUNCTION}twice(gc.placeholder(gc.float32, [3]))\ntwice", "made")
    assert page.live_in_cells() == 1
    assert "twice(v:float)" in page.stills()[-1]


@pytest.mark.parametrize("way", ["{view}", "from IPython.display import display\ndisplay({view})"])
def test_a_function_view_leaves_a_picture_too(shell: NotebookShell, page: Page, way: str) -> None:
    made = f"{FUNCTION}from widgets import FunctionView\ntwice(gc.placeholder(gc.float32, [3]))\n"
    assert shell.run(made + way.format(view="FunctionView(twice)"), "made").success
    assert page.live_in_cells() == 1
    assert ["twice(v:float)" in still for still in page.stills()] == [True]


def test_without_a_page_a_function_view_is_only_a_picture(shell: NotebookShell, page: Page) -> None:
    assert shell.run(f"{FUNCTION}from widgets import FunctionView\ntwice(gc.placeholder(gc.float32, [3]))\nFunctionView(twice)").success
    assert page.live_in_cells() == 0
    assert len(page.stills()) == 1


def test_a_function_that_was_never_called_shows_as_anything_else_does(shell: NotebookShell, page: Page) -> None:
    shell.run(f"{FUNCTION}twice", "made")
    assert page.live_in_cells() == 0
    assert page.stills() == []


def test_a_definition_as_the_last_expression_shows_without_a_page_as_text_and_picture(shell: NotebookShell, page: Page) -> None:
    shell.run('gc.parse_function("Same(x:float) -> (y:float) {\\n a = Identity[T=float](x)\\n return y = a:output:0\\n}")')
    assert page.live_in_cells() == 0
    assert "Same(x:float)" in page.stills()[-1]


def test_the_view_of_a_function_goes_when_its_cell_runs_again_and_one_of_the_users_own_stays(
    shell: NotebookShell, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[FunctionView] = []

    def close(view: FunctionView) -> None:
        closed.append(view)

    monkeypatch.setattr(FunctionView, "close", close)
    shell.run(f"{FUNCTION}twice(gc.placeholder(gc.float32, [3]))", "made")
    for times in range(3):
        shell.run("%graph twice\ntwice", "shown")
        assert len(closed) == 2 * times
    shell.run("twice", "elsewhere")
    for _ in range(2):
        assert shell.run("from widgets import FunctionView\nown = FunctionView(twice)\nown", "own").success
    assert len(closed) == 4
    assert page.live_in_cells() == 9
    shell.run("%unload_ext kernelext", "off")
    assert len(closed) == len(set(map(id, closed))) == 7


def test_graph_shows_a_function_by_its_name(shell: NotebookShell, page: Page) -> None:
    shell.run(f"{FUNCTION}twice(gc.placeholder(gc.float32, [3]))", "made")
    shell.run("%graph twice", "asked")
    assert page.live_in_cells() == 1
    assert "twice(v:float)" in page.stills()[-1]


def test_a_function_that_was_never_called_is_refused_in_one_line(shell: NotebookShell, page: Page) -> None:
    shell.run(FUNCTION, "made")
    result = shell.run("%graph twice", "asked")
    assert "'twice' has not been called yet" in str(result.error_in_exec)
