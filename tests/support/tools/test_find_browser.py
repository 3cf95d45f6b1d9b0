"""The search for a browser accepts no name before it has rendered a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tools import find_browser as search


def program(folder: Path, name: str, prints: str) -> str:
    """An executable that prints a text for any arguments."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def only_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of one empty folder, and no browser anywhere else."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(search.VARIABLE, raising=False)
    monkeypatch.setattr(search, "NAMES", ("stub-browser", "real-browser"))
    monkeypatch.setattr(search, "MAC_APPS", ())
    monkeypatch.setattr(search, "playwright_copy", lambda: iter(()))
    return tmp_path


def test_a_name_on_path_that_does_not_render_is_passed_over(only_path: Path) -> None:
    program(only_path, "stub-browser", "please install me")
    real = program(only_path, "real-browser", "<p>ready</p>")
    assert search.find_browser(may_install=False) == real


def test_a_given_browser_is_the_only_one_tried(only_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(only_path, "real-browser", "<p>ready</p>")
    monkeypatch.setenv(search.VARIABLE, str(only_path / "missing"))
    assert search.find_browser() is None
    given = program(only_path, "given", "<p>ready</p>")
    monkeypatch.setenv(search.VARIABLE, given)
    assert search.find_browser() == given


def test_nothing_found_and_nothing_installed_says_what_to_install(
    only_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(search, "attempt", lambda _command: False)
    assert search.main() == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "apt install chromium" in told.err
    assert search.VARIABLE in told.err


def test_an_installed_browser_is_used_once_it_renders(only_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = program(only_path, "downloaded", "<p>ready</p>")
    monkeypatch.setattr(search, "install", lambda: iter([str(only_path / "broken"), installed]))
    assert search.find_browser() == installed
    assert search.find_browser(may_install=False) is None
