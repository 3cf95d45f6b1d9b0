"""Browser files: generated types match Python, a small shell, working packed engines."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from py_mini_racer import JSPromise, MiniRacer

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "widgets" / "static"
ENGINES = ("core", "graphviz", "mermaid")


def settled(context: MiniRacer, expression: str) -> str:
    """The value of a JavaScript promise of text."""
    promise = context.eval(expression)
    assert isinstance(promise, JSPromise)
    text = promise.get()
    assert isinstance(text, str)
    return text


def test_typescript_types_are_generated_from_the_python_structs_of_today() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "widgets/js/generate_types.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_module_that_a_notebook_saves_with_every_view_stays_small() -> None:
    shell = (STATIC / "viewer.js").read_text(encoding="utf-8")
    assert len(shell.encode()) <= 50 * 1024
    assert "export{" in shell


@pytest.mark.parametrize("engine", ENGINES)
def test_packed_engines_carry_no_time_and_no_network_address_to_load_from(engine: str) -> None:
    packed = (STATIC / f"{engine}.js.gz").read_bytes()
    assert packed[4:8] == bytes(4), "the gzip header has a time stamp: the build would differ every time"
    script = gzip.decompress(packed).decode()
    assert "importScripts(" not in script
    assert 'import("http' not in script


def test_the_standalone_script_can_stand_inside_a_script_element() -> None:
    script = (STATIC / "standalone.js").read_text(encoding="utf-8")
    assert "</script" not in script.lower()
    assert "<!--" not in script


def test_the_graphviz_engine_lays_out_in_plain_v8() -> None:
    context = MiniRacer()
    context.eval(gzip.decompress((STATIC / "graphviz.js.gz").read_bytes()).decode())
    dot = json.dumps('digraph{a[shape=box,fixedsize=true,width=1,height=.5,label=""] a->b}')
    layout = json.loads(settled(context, f"graphloupeGraphviz.layout({dot})"))
    assert {node["name"]: "pos" in node for node in layout["objects"]} == {"a": True, "b": True}
    assert "<svg" in settled(context, f'graphloupeGraphviz.layout({dot}, "svg")')
    failed = settled(context, 'graphloupeGraphviz.layout("digraph {").then(() => "laid out", (error) => "refused: " + error)')
    assert failed.startswith("refused")


def test_the_notices_hold_the_licence_of_graphviz_whole() -> None:
    notices = (STATIC / "THIRD_PARTY.md").read_text(encoding="utf-8")
    for text in (
        "## Graphviz (EPL-2.0)",
        "Eclipse Public License - v 2.0",
        "## Expat (MIT)",
        "You may add additional accurate notices of copyright ownership.",
    ):
        assert text in notices
