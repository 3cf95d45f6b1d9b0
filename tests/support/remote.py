"""Calls of functions of this repository in another interpreter that stays alive between calls.

The oracle tests and the benchmarks use it to reach TensorFlow, which has an environment of its own. The other interpreter imports only what
the called module imports; pickles travel over its standard input and output, and its prints go to stderr.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

ROOT = Path(__file__).resolve().parents[2]
LENGTH_BYTES = 8
STOP_SECONDS = 10.0


class RemoteError(Exception):
    """The called function raised: class and text of the error, and its traceback."""

    def __init__(self, kind: str, message: str, place: str) -> None:
        super().__init__(f"{kind}: {message}\n{place}")
        self.kind = kind
        self.message = message


def send(stream: IO[bytes], value: object) -> None:
    """Write one value."""
    body = pickle.dumps(value, protocol=5)
    stream.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one value; EOFError when the other side is gone."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        raise EOFError("the other interpreter has ended")
    return pickle.loads(stream.read(int.from_bytes(head, "big")))


class Remote:
    """An interpreter that runs functions of this repository, named as `package.module:function`."""

    def __init__(self, python: str | Path = sys.executable, environment: Mapping[str, str] | None = None) -> None:
        search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [str(python), "-m", "tests.support.remote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, **(environment or {}), "PYTHONPATH": search},
        )

    def call(self, function: str, *arguments: Any) -> Any:
        """Call the function there and return its result.

        Raises:
            RemoteError: it raised.
            EOFError: the interpreter ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        send(self._process.stdin, (function, arguments))
        succeeded, value = receive(self._process.stdout)
        if not succeeded:
            raise RemoteError(*value)
        return value

    def close(self) -> None:
        """End the interpreter."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(STOP_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()


def serve() -> None:
    """Answer calls until the caller closes its end."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not disturb the protocol
    requests = sys.stdin.buffer
    while True:
        try:
            name, arguments = receive(requests)
        except EOFError:
            return
        module, _, function = name.partition(":")
        try:
            answer = True, getattr(importlib.import_module(module), function)(*arguments)
        except Exception as error:  # noqa: BLE001 - every error of the called function is the caller's to judge
            answer = False, (type(error).__name__, str(error), traceback.format_exc())
        send(answers, answer)


if __name__ == "__main__":
    serve()
