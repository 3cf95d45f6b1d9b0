"""The harness drives the real JupyterLab, as the other browser tests require."""

from __future__ import annotations

import sys

import pytest

from tests.browser.conftest import Lab
from tests.browser.notebook_page import NotebookPage


def test_a_notebook_runs_is_edited_saved_restarted_and_reloaded(lab: Lab) -> None:
    notebook = lab.open_cells(["seen = 6 * 7", "print('value', seen)", "seen += 1\nseen"], page_of_its_own=True)
    notebook.run_all()
    assert notebook.text(1) == "value 42\n"
    assert notebook.text(2) == "43"
    assert "value 42" in notebook.cell(1).locator(".jp-OutputArea").inner_text()

    notebook.edit_and_run(1, "print('changed', seen)")
    assert notebook.text(1) == "changed 43\n"

    notebook.save()
    notebook.restart_kernel()
    notebook.run_cell(1)
    assert "NameError" in notebook.text(1)

    notebook.run_all()
    notebook.save()
    notebook.reload()
    assert notebook.text(1) == "changed 42\n"
    assert notebook.cell_sources() == ["seen = 6 * 7", "print('changed', seen)", "seen += 1\nseen"]


@pytest.mark.slow
def test_a_saved_notebook_opens_in_a_second_page_with_its_output(lab: Lab) -> None:
    first = lab.open_cells(["print('kept')"], page_of_its_own=True)
    first.run_all()
    first.save()
    first.close()
    second = lab.open(first.path, page_of_its_own=True)
    assert second.text(0) == "kept\n"


@pytest.mark.slow
def test_the_theme_switches_and_a_picture_is_kept(lab: Lab) -> None:
    notebook = lab.open_cells(["1 + 1"])
    notebook.run_all()
    for dark in (True, False):
        notebook.dark_theme(dark)
        picture = notebook.screenshot("dark" if dark else "light")
        assert picture.stat().st_size > 10_000


def test_the_kernel_is_the_one_of_this_environment_with_its_extensions(lab: Lab) -> None:
    notebook = lab.open_cells(
        ["import sys; print(sys.prefix)", "import anywidget, sidecar, graphcore, widgets, kernelext; print('all there')"]
    )
    notebook.run_all()
    assert notebook.text(0).strip() == sys.prefix
    assert notebook.text(1) == "all there\n"
    plugins: list[str] = notebook.page.evaluate("() => window.jupyterapp.listPlugins()")
    assert any("anywidget" in plugin for plugin in plugins)
    assert any("sidecar" in plugin for plugin in plugins)


def run_script(notebook: NotebookPage, script: str) -> None:
    notebook.edit_and_run(0, f"from IPython.display import Javascript\nJavascript({script!r})")


def test_a_request_that_leaves_the_machine_is_stopped_and_seen(lab: Lab) -> None:
    notebook = lab.open_cells([""])
    run_script(notebook, "fetch('https://elsewhere.invalid/picture.png').catch(() => {}); new WebSocket('wss://elsewhere.invalid/socket')")
    notebook.wait_until(lambda: len(lab.traffic.outside) >= 2)
    with pytest.raises(AssertionError, match="tried to leave the machine"):
        lab.traffic.assert_clean()
    assert sorted(lab.traffic.outside) == ["https://elsewhere.invalid/picture.png", "wss://elsewhere.invalid/socket"]
    lab.traffic.outside.clear()
    lab.traffic.tolerate("elsewhere.invalid")


def test_console_errors_and_uncaught_exceptions_are_seen(lab: Lab) -> None:
    notebook = lab.open_cells([""])
    run_script(notebook, "console.error('a complaint'); setTimeout(() => { throw new Error('nobody catches this') }, 0)")
    notebook.wait_until(lambda: len(lab.traffic.errors) >= 2)
    with pytest.raises(AssertionError, match="a complaint"):
        lab.traffic.assert_clean()
    assert any("nobody catches this" in error for error in lab.traffic.errors)
    lab.traffic.tolerate("a complaint")
    lab.traffic.tolerate("nobody catches this")
