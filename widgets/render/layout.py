"""Layout of scenes: the bundled Graphviz in a subprocess, or plain layers without it."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from graphcore.support.forking import call_in_child
from widgets.render.frames import hold_labels
from widgets.render.geometry import FoldedPlaces, Geometry, layout_dot, parse_geometry
from widgets.render.layers import layered_geometry
from widgets.render.looks import Size
from widgets.scene.types import Scene

STATIC: Final = Path(__file__).resolve().parent.parent / "static"
ENGINE: Final = STATIC / "graphviz.js.gz"
WORKER: Final = Path(__file__).resolve().parent / "layout_worker.py"
START_LIMIT: Final = 20.0
"""Seconds that the engine may take to start (it takes half a second)."""
LAYOUT_LIMIT: Final = 8.0
"""Seconds for one layout; a second attempt with shortcuts gets as many again."""
MAX_BOXES: Final = 1500
"""Larger scenes are not given to the engine: it would not end in time."""
LEGIBLE: Final = 0.9
"""The scale at which the smallest font, of 10 pixels, has 9 pixels: the smallest legible size."""
MOST_KNOWN: Final = 16
"""The latest answers of the engine that are kept: a run changes the values in a picture, and not where its boxes are."""
FEW_BOXES: Final = 150
"""Larger scenes are not tried in the other direction: it would take too long."""
TURN_GAIN: Final = 1.15
"""The number of times by which the other direction must enlarge a picture."""

_log = logging.getLogger(__name__)


class EngineError(Exception):
    """The layout engine is missing, timed out, or refused the graph."""


class LayoutEngine:
    """A worker process, started on first use and restarted after it was ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()
        self._serial = 0
        self._warm = False
        self._known: dict[tuple[str, ...], str] = {}

    def layout(self, dot: str, *, limit: float = LAYOUT_LIMIT) -> str:
        """Graphviz's JSON for this DOT.

        Args:
            limit: seconds; starting the worker is not counted.

        Raises:
            EngineError: there is no engine, it refused the graph, or it timed out (the worker is ended then).
        """
        return self._call("layout", [dot, "json"], limit)

    def fold(self, request: str, *, limit: float = LAYOUT_LIMIT) -> str:
        """Fold a picture into a panel, as the viewer does; JSON in and out (`js/src/scene/fold_text.ts`).

        Raises:
            EngineError: there is no engine, or it timed out.
        """
        return self._call("fold", [request], limit)

    def _call(self, method: str, args: list[str], limit: float) -> str:
        question = (method, *args)
        with self._lock:
            known = self._known.pop(question, None)
            if known is not None:
                self._known[question] = known  # the latest is last
                return known
            answer = self._answer(method, args, limit)
            if "text" not in answer:
                # A failure may leave WebAssembly out of memory for all later graphs, so a new engine tries again.
                self._end()
                answer = self._answer(method, args, limit)
        if "text" not in answer:
            raise EngineError(str(answer.get("error", "the layout engine gave no answer")))
        text = str(answer["text"])
        with self._lock:
            self._known[question] = text
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return text

    def _answer(self, method: str, args: list[str], limit: float) -> dict[str, Any]:
        process = self._running()
        self._serial += 1
        wait = limit if self._warm else limit + START_LIMIT
        try:
            answer = self._request(process, method, args, wait)
        except (OSError, queue.Empty) as error:
            self._end()
            raise EngineError(f"no layout within {wait:.0f} s" if isinstance(error, queue.Empty) else str(error)) from error
        self._warm = True
        return answer

    def close(self) -> None:
        """End the worker; a later layout starts a new one."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """Forget the worker, in the child of a fork: it answers the parent."""
        self._lock = threading.Lock()
        self._process, self._warm = None, False

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        if not ENGINE.exists():
            raise EngineError(f"the layout engine is missing: {ENGINE}")
        self._end()
        self._answers = queue.Queue()
        try:
            process = subprocess.Popen(  # noqa: S603 - our own script, no shell
                [sys.executable, "-P", str(WORKER), str(ENGINE)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C in the notebook is meant for the user's cell
            )
        except OSError as error:
            raise EngineError(f"the layout engine does not start: {error}") from error
        self._process = process
        threading.Thread(target=_pump, args=(process.stdout, self._answers), daemon=True).start()
        return process

    def _request(self, process: subprocess.Popen[str], method: str, args: list[str], wait: float) -> dict[str, Any]:
        if process.stdin is None:
            return {}
        process.stdin.write(json.dumps({"id": self._serial, "method": method, "args": args}) + "\n")
        process.stdin.flush()
        while True:
            line = self._answers.get(timeout=wait)
            if not line:
                raise OSError("the layout engine ended")
            with contextlib.suppress(ValueError):
                answer: dict[str, Any] = json.loads(line)
                if answer.get("id") == self._serial:
                    return answer

    def _end(self) -> None:
        process, self._process = self._process, None
        self._warm = False
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _pump(pipe: IO[str] | None, answers: queue.Queue[str]) -> None:
    """Pass on lines until the worker ends; an empty line marks the end."""
    with contextlib.suppress(ValueError):
        for line in pipe or ():
            answers.put(line)
    answers.put("")


engine: Final = LayoutEngine()
"""The one engine of this process."""
atexit.register(engine.close)
call_in_child(engine.forget)


def lay_out(scene: Scene, *, panel: Size | None = None, limit: float = LAYOUT_LIMIT, labels: bool = True) -> Geometry:
    """The layout of a scene. Never fails: without the engine the boxes are in plain layers.

    Args:
        panel: the size, in pixels, for which direction and folding are chosen; None for data that flows down, unfolded.
        limit: seconds for each attempt of the engine.
        labels: with labels of edges; without them boxes are closer to one another.
    """
    down = _folded(scene, panel, limit, across=False, labels=labels)
    if panel is None or fitting_scale(down, panel) >= LEGIBLE or len(scene.nodes) > FEW_BOXES:
        return down
    across = _folded(scene, panel, limit, across=True, labels=labels)
    return across if fitting_scale(across, panel) >= TURN_GAIN * fitting_scale(down, panel) else down


def fitting_scale(places: Geometry, panel: Size) -> float:
    """The largest scale, at most 1, at which a picture fits into a panel."""
    return min(1.0, panel.width / max(places.width, 1.0), panel.height / max(places.height, 1.0))


def _folded(scene: Scene, panel: Size | None, limit: float, *, across: bool, labels: bool) -> Geometry:
    places = hold_labels(scene, _placed(scene, limit, across=across, labels=labels))
    if panel is None or places.engine != "graphviz" or fitting_scale(places, panel) == 1:
        return places
    circles = [edge.id for edge in scene.edges if edge.reversed and edge.role == "forward"]
    request = {"places": places, "panel": {"width": panel.width, "height": panel.height}, "across": across, "circles": circles}
    try:
        folded = msgspec.json.decode(engine.fold(msgspec.json.encode(request).decode(), limit=limit), type=FoldedPlaces)
    except (EngineError, msgspec.ValidationError, UnicodeEncodeError) as error:  # the last: a name with a lone surrogate
        _log.info("a picture stays unfolded: %s", error)
        return places
    return msgspec.structs.replace(places, **msgspec.structs.asdict(folded))


def _placed(scene: Scene, limit: float, *, across: bool, labels: bool) -> Geometry:
    if len(scene.nodes) > MAX_BOXES:
        return layered_geometry(scene, note=f"drawn in plain layers: more than {MAX_BOXES:,} boxes")
    reason = ""
    for fast in (False, True):
        try:
            placed = engine.layout(layout_dot(scene, fast=fast, across=across, labels=labels), limit=limit)
            return parse_geometry(placed, scene, engine="graphviz")
        except (EngineError, ValueError, KeyError, IndexError) as error:
            reason = str(error)
            _log.info("layout with%s shortcuts failed: %s", "" if fast else "out", reason)
    return layered_geometry(scene, note=f"drawn in plain layers: {reason}")
