"""Build the wheel, install it into an empty environment, and use it from an empty folder.

The wheel is built from what git tracks, so that a file which is only on this machine cannot hide a gap.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NOTICES = ".dist-info/licenses/widgets/static/THIRD_PARTY.md"
DATA = re.compile(r"\.data/data/(share/jupyter/labextensions|etc/jupyter/jupyter_server_config\.d)/")
PIP = ["-m", "pip", "--disable-pip-version-check", "--quiet"]

# Runs in the empty environment. Nothing of the checkout is importable there, and no extra is installed.
USE = """
import importlib.metadata, importlib.resources, importlib.util, json, sys
from pathlib import Path
import numpy as np
import graphcore as gc
import widgets, kernelext

assert importlib.metadata.version("graphloupe")
for package in (gc, widgets, kernelext):
    assert sys.prefix in package.__file__, package.__file__

x = gc.placeholder(gc.float32, [None, 3], name="x")
W = gc.Variable(np.ones((3, 2), np.float32), name="W")
y = gc.softmax(x @ W)
(gradient,) = gc.gradients(y, [W])
with gc.Session() as session:
    session.run(gc.initialize_all_variables())
    value, slope = session.run([y, gradient], {x: np.eye(3, dtype=np.float32)})
assert value.shape == (3, 2) and np.allclose(value, 0.5), value
assert slope.shape == (3, 2)

server = json.loads((Path(sys.prefix) / "etc" / "jupyter" / "jupyter_server_config.d" / "graphloupe.json").read_text())
(module,) = server["ServerApp"]["jpserver_extensions"]
assert importlib.util.find_spec(module), module

extension = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "graphloupe"
entry = json.loads((extension / "package.json").read_text())["jupyterlab"]["_build"]["load"]
assert (extension / entry.partition("?")[0]).is_file(), sorted(extension.rglob("*"))

static = importlib.resources.files("widgets") / "static"
names = sorted(entry.name for entry in static.iterdir())
assert any(name.endswith(".js") for name in names), names
print("the wheel works:", importlib.metadata.version("graphloupe"), "with", ", ".join(names))
"""


def run(command: list[str | Path], folder: Path) -> None:
    """Run a command in `folder`, its output shown; CalledProcessError when it fails."""
    print("+", *command[:4], flush=True)
    subprocess.run([str(part) for part in command], cwd=folder, check=True)


def tracked_copy(target: Path) -> Path:
    """A copy of the tracked files in their current state."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listing.stdout.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(source.read_bytes())
    return target


def check_contents(wheel: Path) -> None:
    """The wheel has the three packages, JupyterLab's extension, the viewer's build and the licences only."""
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name and not DATA.search(name)}
    if tops != {"graphcore", "widgets", "kernelext"}:
        raise SystemExit(f"the wheel's top-level folders are {sorted(tops)}")
    if any(name.startswith("widgets/js/") for name in names):
        raise SystemExit("the wheel carries the TypeScript sources")
    for required in ("widgets/static/", ".dist-info/licenses/LICENSE", NOTICES):
        if not any(required in name for name in names):
            raise SystemExit(f"the wheel lacks {required}")
    notices = archive.read(next(name for name in names if NOTICES in name)).decode("utf-8")
    for licence in ("Eclipse Public License - v 2.0", "Expat maintainers", "## mermaid", "## dompurify"):
        if licence not in notices:
            raise SystemExit(f"the notices in the wheel lack {licence}")


def main() -> None:
    """Build, check, install, use."""
    with tempfile.TemporaryDirectory(prefix="graphloupe-wheel-") as scratch:
        folder = Path(scratch)
        source, empty = folder / "source", folder / "empty"
        source.mkdir()
        empty.mkdir()
        run([sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", folder, tracked_copy(source)], folder)
        (wheel,) = folder.glob("graphloupe-*.whl")
        check_contents(wheel)
        run([sys.executable, "-m", "venv", folder / "venv"], folder)
        python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        run([python, *PIP, "install", wheel], folder)
        run([python, "-W", "error", "-c", USE], empty)
        program = python.parent / "graphloupe"
        run([program, "--version"], empty)
        run([program, "view", ROOT / "tests" / "data" / "while_v1.pb", "-o", "model.html"], empty)
        run([program, "stats", ROOT / "tests" / "data" / "mobilenetv2.pb"], empty)


if __name__ == "__main__":
    main()
