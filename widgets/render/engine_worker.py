"""The engine in a subprocess: one request a line in, one JSON answer a line out.

WebAssembly cannot be interrupted from within Python, so a picture that takes too long is ended by ending this process.
Run as a script with the paths of its packed scripts; it imports nothing of this project.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

MAX_HEAP = 512 * 1024 * 1024

Answer = Callable[[str, str], str]


def started(scripts: list[Path]) -> Answer:
    """A function that answers requests by a method of the scripts, and its arguments as JSON."""
    from py_mini_racer import JSPromise, MiniRacer  # noqa: PLC0415 - where it is missing, the first answer says so

    racer = MiniRacer()
    racer.set_hard_memory_limit(MAX_HEAP)
    for script in scripts:
        racer.eval(gzip.decompress(script.read_bytes()).decode("utf-8"))

    def answer(method: str, args: str) -> str:
        result = racer.eval(f"graphloupeStills.{method}(...{args})")  # JSON is JavaScript, so that V8 reads it as it came
        return str(result.get() if isinstance(result, JSPromise) else result)

    return answer


def serve(scripts: list[Path]) -> None:
    """Answer requests until standard input ends. Each is a number, a method and its arguments as JSON, each answer has `text` or `error`."""
    answer: Answer | None = None
    for line in sys.stdin:
        number, method, args = line.split(" ", 2)
        try:
            answer = answer or started(scripts)
            reply = {"id": int(number), "text": answer(method, args)}
        except Exception as error:  # noqa: BLE001 - any error of V8 answers this request; the next one may succeed
            reply = {"id": int(number), "error": str(error).partition("\n")[0][:500]}  # the source follows
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve([Path(name) for name in sys.argv[1:]])
