"""The engine: V8 in a subprocess, with Graphviz and with the viewer's code that draws."""

from __future__ import annotations

import atexit
import contextlib
import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any, Final

from graphcore.support.forking import call_in_child

STATIC: Final = Path(__file__).resolve().parent.parent / "static"
SCRIPTS: Final = (STATIC / "graphviz.js.gz", STATIC / "stills.js.gz")
WORKER: Final = Path(__file__).resolve().parent / "engine_worker.py"
START_LIMIT: Final = 20.0
"""Seconds that the engine may take to start (it takes half a second)."""
ANSWER_LIMIT: Final = 8.0
"""Seconds for one answer."""


class EngineError(Exception):
    """The engine is missing, timed out, or refused the request."""


class EngineTimeoutError(EngineError):
    """The engine gave no answer in time."""


class Engine:
    """A worker process, started on first use and restarted after it was ended.

    Attributes:
        starts: the number of times that it was started.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()
        self._serial = 0
        self._warm = False
        self.starts = 0

    @property
    def is_running(self) -> bool:
        """True iff the worker is there."""
        return self._process is not None and self._process.poll() is None

    def ask(self, method: str, *args: str, limit: float = ANSWER_LIMIT) -> str:
        """The answer to a request: a method of `js/src/stills/engine.ts`, with its arguments.

        Args:
            limit: seconds; starting the worker is not counted.

        Raises:
            EngineError: there is no engine, it refused the request, or it timed out (the worker is ended then).
        """
        with self._lock:
            answer = self._answer(method, args, limit)
            if "text" not in answer:
                # A failure may leave WebAssembly out of memory for all later graphs, so a new engine tries again.
                self._end()
                answer = self._answer(method, args, limit)
        if "text" not in answer:
            raise EngineError(str(answer.get("error", "the engine gave no answer")))
        return str(answer["text"])

    def _answer(self, method: str, args: tuple[str, ...], limit: float) -> dict[str, Any]:
        process = self._running()
        wait = limit if self._warm else limit + START_LIMIT
        try:
            answer = self._request(process, method, args, wait)
        except queue.Empty as error:
            self._end()
            raise EngineTimeoutError(f"no answer within {wait:.0f} s") from error
        except OSError as error:
            self._end()
            raise EngineError(str(error)) from error
        self._warm = True
        return answer

    def begin(self) -> None:
        """Start the worker, while the caller prepares its first request."""
        with self._lock, contextlib.suppress(EngineError, OSError):
            if not self.is_running:
                self._send(self._running(), "forget", ("",))

    def close(self) -> None:
        """End the worker; a later request starts a new one."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """Forget the worker, in the child of a fork: it answers the parent."""
        self._lock = threading.Lock()
        self._process, self._warm = None, False

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self.is_running:
            return self._process
        for script in SCRIPTS:
            if not script.exists():
                raise EngineError(f"the engine is missing: {script}")
        self._end()
        self._answers = queue.Queue()
        try:
            process = subprocess.Popen(  # noqa: S603 - our own script, no shell
                [sys.executable, "-P", str(WORKER), *map(str, SCRIPTS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C in the notebook is meant for the user's cell
            )
        except OSError as error:
            raise EngineError(f"the engine does not start: {error}") from error
        self._process = process
        self.starts += 1
        threading.Thread(target=_pump, args=(process.stdout, self._answers), daemon=True).start()
        return process

    def _send(self, process: subprocess.Popen[str], method: str, args: tuple[str, ...]) -> None:
        self._serial += 1
        assert process.stdin is not None
        process.stdin.write(f"{self._serial} {method} {json.dumps(args)}\n")
        process.stdin.flush()

    def _request(self, process: subprocess.Popen[str], method: str, args: tuple[str, ...], wait: float) -> dict[str, Any]:
        self._send(process, method, args)
        while True:
            line = self._answers.get(timeout=wait)
            if not line:
                raise OSError("the engine ended")
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


engine: Final = Engine()
"""The one engine of this process."""
atexit.register(engine.close)
call_in_child(engine.forget)
