"""The shells complete the command by the scripts that it prints."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from graphcore.__main__ import main

CHECKS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "-n"]}


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(code: str, folder: Path, *words: str) -> list[str]:
    """The completions of the last of these words in bash."""
    asking = f"COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; _graphloupe; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return subprocess.run(["bash", "-c", f"{code}\n{asking}"], cwd=folder, capture_output=True, text=True, check=True).stdout.split("\n")[
        :-1
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = script("bash", capsys)
    (tmp_path / "vit large.onnx").touch()
    assert completed(code, tmp_path, "graphloupe", "vi") == ["view", "vit large.onnx"]
    assert completed(code, tmp_path, "graphloupe", "view", "--s") == ["--serve"]
    assert completed(code, tmp_path, "graphloupe", "diff", "vit") == ["vit large.onnx"]
    assert completed(code, tmp_path, "graphloupe", "completion", "f") == ["fish"]


@pytest.mark.parametrize("shell", CHECKS)
def test_scripts_are_correct_and_name_all_commands(shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = script(shell, capsys)
    for command in ("view", "stats", "inspect", "diff", "lab", "completion"):
        assert command in code
    assert "%%" not in code
    path = tmp_path / "script"
    path.write_text(code, encoding="utf-8")
    if shutil.which(shell):
        subprocess.run([*CHECKS[shell], str(path)], check=True)
