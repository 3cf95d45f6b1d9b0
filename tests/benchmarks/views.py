"""Time the views in JupyterLab and in standalone pages, in the Chromium of the browser tests.

    python -m tests.benchmarks.views [--only TEXT] [--runs N] [--check]

Each row has the median and the 95th percentile of its runs, and the longest time for which the page was blocked meanwhile.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

import graphcore as gc
from graphcore.errors import GraphError
from kernelext.errors.card import to_card
from kernelext.errors.told import told
from tests.benchmarks.view_calls import HAS_TORCH, LARGE, MODULES, NUMBERS, SHOW
from tests.benchmarks.view_files import graph_def, heavy_onnx_file, onnx_file, pt2_file
from tests.browser.conftest import CHROMIUM_OPTIONS, Lab, Window
from tests.browser.graph_panel import GraphPanel
from tests.browser.server import ROOT, LabServer
from tests.support.tools.find_browser import ADVICE, find_browser
from widgets.render.static_display import to_static_html
from widgets.scene.surroundings import surroundings

STATIC: Final = ROOT / "widgets" / "static"
MOBILENET: Final = ROOT / "tests" / "data" / "mobilenetv2.pb"
LAPTOP: Final[ViewportSize] = {"width": 1366, "height": 768}
BLOCKED: Final = 100.0
"""Milliseconds for which no frame may be blocked."""

# Records tasks of more than 50 ms, the browser's own measure of a blocked page.
WATCH: Final = """() => {
  window.graphloupeTasks = [];
  new PerformanceObserver(list => window.graphloupeTasks.push(...list.getEntries().map(task => task.duration))).observe({type: 'longtask'});
}"""
LONGEST: Final = "() => Math.max(0, ...(window.graphloupeTasks ?? []).splice(0))"

# Milliseconds from a press to the frame after the picture has changed.
PRESS_AND_WAIT: Final = """async ([press, key]) => {
  const root = document.querySelector('.graphloupe');
  const before = root.dataset[key];
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const start = performance.now();
  eval(press);
  while (root.dataset[key] === before || root.dataset.busy === 'true') await frame();
  await frame();
  return performance.now() - start;
}"""
# Frames a second while the picture is zoomed and dragged at every frame.
MOVE: Final = """async frames => {
  const canvas = document.querySelector('.gl-canvas');
  const box = canvas.getBoundingClientRect();
  const at = {bubbles: true, cancelable: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
  const mouse = {...at, pointerId: 1, buttons: 1};
  canvas.setPointerCapture = () => {};  // refuses a mouse that is not there
  const frame = () => new Promise(done => requestAnimationFrame(done));
  await frame();
  const start = performance.now();
  canvas.dispatchEvent(new PointerEvent('pointerdown', mouse));
  for (let i = 0; i < frames; i++) {
    canvas.dispatchEvent(new WheelEvent('wheel', {...at, deltaY: i % 20 < 10 ? 40 : -40, ctrlKey: true}));
    mouse.clientX += i % 10 < 5 ? 30 : -30;
    canvas.dispatchEvent(new PointerEvent('pointermove', mouse));
    await frame();
  }
  canvas.dispatchEvent(new PointerEvent('pointerup', mouse));
  return 1000 * frames / (performance.now() - start);
}"""

BUILD: Final = """
import graphcore as gc
from widgets import GraphView, SceneState
graph = gc.Graph()
graph.node_number = 0
with graph.as_default():
    tensor = gc.placeholder(gc.float32, [8, 8], name="x")
    for scope in range({scopes}):
        with gc.name_scope(f"part{{scope}}"):
            for number in range({nodes}):
                tensor = gc.tanh(tensor, name=f"n{{number}}") if number % 3 else gc.add(tensor, tensor, name=f"n{{number}}")
state = SceneState(max_boxes=1_200)
state.mode = "all"
view = GraphView(graph, state=state)
display(view)
"""
DIFFERENTIATED: Final = """
import graphcore as gc
from widgets import GraphView
graph = gc.Graph()
with graph.as_default():
    tensor, weights = gc.placeholder(gc.float32, [8, 8], name="x"), []
    for scope in range(46):
        with gc.name_scope(f"layer{scope}"):
            weights.append(gc.Variable(gc.zeros([8, 8]), name="w"))
            for number in range(4):
                tensor = gc.tanh(gc.matmul(tensor, weights[-1])) + tensor
    gc.gradients(gc.reduce_sum(tensor), weights)
view = GraphView(graph)
display(view)
"""
HEAD: Final = """
runs = globals().get("runs", 0) + 1
h = x = gc.placeholder(gc.float32, [None, 8 + runs % 2], name="x")
"""
LAYER: Final = """
with gc.name_scope("layer{number}"):
    for _ in range(10):
        h = gc.tanh(gc.exp(gc.abs(h)) + 1.0)
{name} = h
"""
GROW: Final = """
with graph.as_default():
    tensor = gc.tanh(tensor, name="more")
view.refresh()
"""

RECORD: Final = """
import numpy as np
import graphcore as gc
from widgets import GraphView
graph = gc.Graph()
with graph.as_default():
    x = gc.placeholder(gc.float32, [8, 8], name="x")
    loop = gc.while_loop(lambda i, a: i < 3_800, lambda i, a: [i + 1, gc.tanh(gc.exp(a) * a - a) + a], [gc.constant(0), x], name="loop")
session = gc.Session(graph)
view = GraphView(graph)
display(view)
"""
TRACE: Final = """
session.run(loop, {x: np.zeros((8, 8), np.float32)}, gc.RunOptions(trace=True))
assert len(graph.trace.events) > 100_000, len(graph.trace.events)
view.refresh()
"""
# Milliseconds from a press of the timeline's button to the frame with a recorded run that is not the last one.
OPEN_TIMELINE: Final = """async last => {
  const root = document.querySelector('.graphloupe');
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const title = () => root.querySelector('.gl-timeline-clock')?.textContent ?? '';
  const start = performance.now();
  root.querySelector('[aria-label^="Timeline:"]').click();
  while (!root.querySelector('.gl-plot .gl-bar') || title() === last) await frame();
  await frame();
  const taken = performance.now() - start;
  const shown = title();
  root.querySelector('[aria-label^="Timeline:"]').click();
  return [taken, shown];
}"""


RUN: Final = """
import numpy as np
gc.Session(graph).run(tensor, {"x:0": np.zeros((8, 8), np.float32)}, gc.RunOptions(values=True))
view.refresh()
"""
# Milliseconds from the key of a step to the frame that tells about it.
STEP: Final = """async () => {
  const root = document.querySelector('.graphloupe');
  const said = () => root.querySelector('.gl-step-said')?.textContent ?? '';
  const before = said();
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const start = performance.now();
  root.querySelector('.gl-canvas').dispatchEvent(new KeyboardEvent('keydown', {key: '.', bubbles: true, cancelable: true}));
  while (said() === before) await frame();
  await frame();
  return performance.now() - start;
}"""

# The command, and the most bytes of memory that it had: on Linux a child's `ru_maxrss` includes its parent's.
MEMORY: Final = """
import sys
from graphcore.__main__ import main
status = main(sys.argv[1:])
try:
    with open("/proc/self/status") as lines:
        print(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
except OSError:
    import resource
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(status)
"""


@dataclass(frozen=True)
class ViewRow:
    """A row: its runs in `unit`, and the budget of their median (a minimum for frames a second)."""

    title: str
    unit: str
    limit: float
    samples: list[float]
    blocked: list[float] = field(default_factory=list)
    at_least: bool = False

    def verdict(self) -> str:
        """`ok`, or what exceeds its budget."""
        median = statistics.median(self.samples)
        over = median < self.limit if self.at_least else median > self.limit
        late = max(self.blocked, default=0.0) > BLOCKED
        return "over" if over else "blocked" if late else "ok"


@dataclass
class Bench:
    """The browser, the server, and the number of runs."""

    browser: Browser
    server: LabServer
    runs: int
    folder: Path

    @contextmanager
    def notebook(self, sources: list[str]) -> Iterator[tuple[Any, GraphPanel]]:
        """A notebook in JupyterLab whose first cell has run."""
        window = Window(self.server, self.browser)
        lab = Lab(self.server, window, "views", window.traffic)
        try:
            opened = lab.open_cells(sources)
            opened.run_cell(0)
            panel = GraphPanel(opened.page)
            panel.wait_drawn()
            opened.page.evaluate(WATCH)
            yield opened, panel
        finally:
            lab.close()
            window.close()

    def page(self) -> Page:
        """An empty page without a server, of the size of a laptop."""
        page = self.browser.new_context(viewport=LAPTOP).new_page()
        page.add_init_script(f"({WATCH})()")
        return page


def growing(bench: Bench, boxes: int, limit: float) -> ViewRow:
    """From the end of a cell that adds a node to the picture with it."""
    return changed(bench, [BUILD.format(scopes=boxes // 25, nodes=25), GROW], f"cell end to picture, {boxes:,} boxes", limit)


def changed(bench: Bench, sources: list[str], title: str, limit: float) -> ViewRow:
    """From the end of the second of two cells to the picture that it changes."""
    samples, blocked = [], []
    with bench.notebook(sources) as (opened, panel):
        for _ in range(bench.runs):
            before = panel.drawn().revision
            opened.run_cell(1)
            samples.append(panel.wait_drawn(before).delay_ms)
            blocked.append(opened.page.evaluate(LONGEST))
    return ViewRow(title, "ms", limit, samples, blocked)


def run_again(bench: Bench) -> ViewRow:
    """From the key that runs the first of 40 cells again, with another shape, to the picture.

    2,000 nodes are inferred anew.
    """
    cells = [
        LAYER.format(number=number, name=f"h{number}").replace("(h)", f"(h{number - 1})" if number else "(x)", 1) for number in range(40)
    ]
    samples, blocked = [], []
    window = Window(bench.server, bench.browser)
    lab = Lab(bench.server, window, "views", window.traffic)
    try:
        opened = lab.open_cells(["%load_ext kernelext\nimport graphcore as gc\n%graph", HEAD, *cells, "len(gc.get_default_graph())"])
        opened.run_all()
        panel = GraphPanel(opened.page)
        panel.wait_drawn()
        assert int(opened.text(len(cells) + 2)) >= 2_000
        opened.page.evaluate(WATCH)
        opened.run_cell(1)
        for _ in range(bench.runs):
            opened.page.wait_for_timeout(500)
            opened.cell(1)
            samples.append(opened.page.evaluate(PRESS_AND_WAIT, ["jupyterapp.commands.execute('notebook:run-cell')", "revision"]))
            blocked.append(opened.page.evaluate(LONGEST))
            opened.wait_idle()
    finally:
        lab.close()
        window.close()
    return ViewRow("head of 40 cells run again, 2,000 nodes", "ms", 150, samples, blocked)


def pressed(bench: Bench) -> list[ViewRow]:
    """Choose a lens, open and close a scope (300 boxes), drag and zoom a picture (1,000 boxes)."""
    rows = []
    with bench.notebook([BUILD.format(scopes=40, nodes=25)]) as (opened, _panel):
        choose = "const lens = root.querySelector('.gl-lenses'); lens.selectedIndex = (lens.selectedIndex + 1) % lens.options.length;"
        choose += " lens.dispatchEvent(new Event('change', {bubbles: true}))"
        rows.append(watched(bench, opened.page, "lens switch, 1,000 boxes", 50, choose, "lens"))
        frames = [opened.page.evaluate(MOVE, 60) for _ in range(bench.runs)]
        rows.append(ViewRow("pan and zoom, 1,000 boxes", "frames/s", 50, frames, [opened.page.evaluate(LONGEST)], at_least=True))
    with bench.notebook([BUILD.format(scopes=12, nodes=25)]) as (opened, _panel):
        fold = 'root.querySelector(\'[data-node-id="part5/"] [data-action], [data-group-id="part5/"] [data-action]\')'
        fold += ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
        rows.append(watched(bench, opened.page, "open or close a scope, 300 boxes", 150, fold, "revision"))
    return rows


def changed_module(bench: Bench, title: str) -> list[ViewRow]:
    """From the end of a cell that changes a module to the picture of its call; no row without PyTorch."""
    if not HAS_TORCH:
        print(f"{title}: PyTorch is not installed", file=sys.stderr)
        return []
    make, change, limit = MODULES[title]
    return [changed(bench, [f"%load_ext kernelext\n{make}\n{SHOW}", change], f"changed module to picture, {title}", limit)]


def opened_trace(bench: Bench) -> ViewRow:
    """Open the timeline of a new run of 100,000 events."""
    samples, blocked = [], []
    with bench.notebook([RECORD, TRACE]) as (opened, panel):
        shown = ""
        for _ in range(bench.runs):
            before = panel.drawn().revision
            opened.run_cell(1)
            panel.wait_drawn(before)
            opened.page.evaluate(LONGEST)
            taken, shown = opened.page.evaluate(OPEN_TIMELINE, shown)
            samples.append(taken / 1000)
            blocked.append(opened.page.evaluate(LONGEST))
    return ViewRow("open a trace of 100,000 events", "s", 1, samples, blocked)


def stepped(bench: Bench) -> ViewRow:
    """From the key to the picture of the next step of a recorded run of 300 boxes."""
    samples, blocked = [], []
    with bench.notebook([BUILD.format(scopes=12, nodes=25), RUN]) as (opened, panel):
        before = panel.drawn().revision
        opened.run_cell(1)
        panel.wait_drawn(before)
        panel.root.locator(".gl-canvas").press("s")
        panel.root.locator(".gl-step-said", has_text="Step 0").wait_for()
        opened.page.evaluate(LONGEST)
        for _ in range(bench.runs):
            samples.append(opened.page.evaluate(STEP))
            blocked.append(opened.page.evaluate(LONGEST))
    return ViewRow("a step of a recorded run, 300 boxes", "ms", 50, samples, blocked)


def mirrored(bench: Bench) -> ViewRow:
    """From the button to the picture with each gradient beside what it differentiates."""
    press = "root.querySelector('[aria-label^=\"Mirror gradients\"]').click()"
    samples, blocked = [], []
    with bench.notebook([DIFFERENTIATED]) as (opened, _panel):
        for _ in range(bench.runs):
            samples.append(opened.page.evaluate(PRESS_AND_WAIT, [press, "revision"]))
            blocked.append(opened.page.evaluate(LONGEST))
            opened.page.evaluate(PRESS_AND_WAIT, [press, "revision"])
    return ViewRow("mirrored gradient of 2,000 nodes", "ms", 1_000, samples, blocked)


def watched(bench: Bench, page: Page, title: str, limit: float, press: str, key: str) -> ViewRow:
    """Press as often as there are runs."""
    samples, blocked = [], []
    for _ in range(bench.runs):
        samples.append(page.evaluate(PRESS_AND_WAIT, [press, key]))
        blocked.append(page.evaluate(LONGEST))
    return ViewRow(title, "ms", limit, samples, blocked)


def viewed(bench: Bench, title: str, file: Path, limit: float) -> ViewRow:
    """From the command `view` to the first picture of its page."""
    samples, blocked = [], []
    target = bench.folder / "page.html"
    page = bench.page()
    for _ in range(bench.runs):
        page.goto("about:blank")
        start = time.perf_counter()
        command = [sys.executable, "-m", "graphcore", "view", str(file), "-o", str(target)]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        page.goto(target.as_uri(), wait_until="commit")
        page.wait_for_function("() => document.querySelector('.graphloupe')?.dataset.busy === 'false'", polling="raf", timeout=120_000)
        samples.append(time.perf_counter() - start)
        blocked.append(page.evaluate(LONGEST))
    print(f"{title}: the page has {target.stat().st_size / 1e6:.2f} MB", file=sys.stderr)
    page.context.close()
    return ViewRow(f"view {title}, command included", "s", limit, samples, blocked)


def viewed_heavy(bench: Bench) -> list[ViewRow]:
    """An ONNX file of 2 GB of weights: the time, and the most memory that the command has."""
    file = heavy_onnx_file(bench.folder)
    command = [sys.executable, "-c", MEMORY, "view", str(file), "-o", str(bench.folder / "page.html")]
    used = [int(subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout.split()[-1]) for _ in range(3)]
    return [
        viewed(bench, ".onnx, 2,000 nodes, 2 GB of weights", file, 1.2),
        ViewRow("memory of the same", "MB", 300, [bytes_used / 1e6 for bytes_used in used]),
    ]


def card_of_error(bench: Bench) -> ViewRow:
    """From an error in a graph of 300 nodes to its card with the picture, by a warm layout engine."""
    samples = []
    with gc.Graph().as_default() as graph:
        tensor = gc.placeholder(gc.float32, [None, 4], name="x")
        for _ in range(300):
            tensor = gc.tanh(tensor)
        for _ in range(bench.runs + 1):
            try:
                gc.matmul(tensor, gc.ones([5, 2]))
            except GraphError as error:
                begun = time.perf_counter()
                shown, scene = told(error, error.__traceback__, {"h": tensor}), surroundings(graph, error)
                assert shown is not None, "it is an error of a graph"
                assert scene is not None, "it names a node"
                to_card(shown, to_static_html(scene))
                samples.append(1000 * (time.perf_counter() - begun))
    return ViewRow("card of an error with its picture", "ms", 100, samples[1:])


def core_size(_bench: Bench) -> ViewRow:
    """The gzipped size of the module that JupyterLab loads with every view."""
    return ViewRow("core module, gzipped", "KB", 50, [len(gzip.compress(gzip.decompress((STATIC / "core.js.gz").read_bytes()), 9)) / 1000])


ROWS: Final[dict[str, Callable[[Bench], ViewRow | list[ViewRow]]]] = {
    "core module": core_size,
    "card of an error": card_of_error,
    "cell end, 300": lambda bench: growing(bench, 300, 100),
    "head cell, 2,000 nodes": run_again,
    "cell end, 1,000": lambda bench: growing(bench, 1_000, 400),
    "lens, move, scope": pressed,
    "overlay": lambda bench: changed(bench, [LARGE, NUMBERS], "numbers to picture, 10,000 nodes", 200),
    **{f"changed {title}": partial(changed_module, title=title) for title in MODULES},
    "trace": opened_trace,
    "mirrored gradient": mirrored,
    "step of a run": stepped,
    "view MobileNetV2": lambda bench: viewed(bench, "MobileNetV2", MOBILENET, 1),
    "view 100,000 nodes": lambda bench: viewed(bench, "100,000 nodes", graph_def(bench.folder, 1_000), 3),
    "view .onnx": lambda bench: viewed(bench, ".onnx, 2,000 nodes", onnx_file(bench.folder, 100), 1.2),
    "view .pt2": lambda bench: viewed(bench, ".pt2, 2,000 nodes", pt2_file(bench.folder, 400), 1.2),
    "view 2 GB": viewed_heavy,
    "view .onnx, 100,000 nodes": lambda bench: viewed(bench, ".onnx, 100,000 nodes", onnx_file(bench.folder, 5_000), 3),
}


def table(rows: list[ViewRow]) -> str:
    """All rows as aligned text."""
    lines = [("work", "unit", "median", "95th", "longest task, ms", "budget", "")]
    for row in rows:
        budget = f"{'>=' if row.at_least else '<='} {row.limit:g}"
        late = np.percentile(row.samples, 5 if row.at_least else 95)
        blocked = f"{max(row.blocked):.0f}" if row.blocked else "-"
        lines.append((row.title, row.unit, f"{statistics.median(row.samples):.1f}", f"{late:.1f}", blocked, budget, row.verdict()))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def main() -> int:
    """Print the table; with --check return 1 if a row exceeds its budget."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.views", description=__doc__)
    options.add_argument("--only", default="", help="rows whose name contains this text: " + "; ".join(ROWS))
    options.add_argument("--runs", type=int, default=20, help="the runs of each row")
    options.add_argument("--check", action="store_true", help="fail when a budget is broken")
    chosen = options.parse_args()
    program = find_browser(may_install=False)
    if program is None:
        print(f"The views are measured in a browser. {ADVICE}", file=sys.stderr)
        return 2
    rows: list[ViewRow] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = LabServer(Path(folder) / "jupyter")
        server.start()
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        try:
            bench = Bench(browser, server, chosen.runs, Path(folder))
            for name, work in ROWS.items():
                if re.search(re.escape(chosen.only), name, re.IGNORECASE):
                    print(f"{name} ...", file=sys.stderr, flush=True)
                    found = work(bench)
                    rows += found if isinstance(found, list) else [found]
        finally:
            browser.close()
            server.stop()
    print(table(rows))
    artefacts = ROOT / "artefacts"
    artefacts.mkdir(exist_ok=True)
    kept = {row.title: {"unit": row.unit, "runs": row.samples, "longest tasks": row.blocked, "verdict": row.verdict()} for row in rows}
    (artefacts / "bench-views.json").write_text(json.dumps(kept, indent=1))
    return int(chosen.check and any(row.verdict() != "ok" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
