"""The engine in a subprocess: one JSON request a line in, one JSON answer a line out.

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

Answer = Callable[[str, list[str]], str]


def started(scripts: list[Path]) -> Answer:
    """A function that answers requests by a method of the scripts, and its arguments."""
    from py_mini_racer import JSPromise, MiniRacer  # noqa: PLC0415 - where it is missing, the first answer says so

    racer = MiniRacer()
    racer.set_hard_memory_limit(MAX_HEAP)
    for script in scripts:
        racer.eval(gzip.decompress(script.read_bytes()).decode("utf-8"))

    def answer(method: str, args: list[str]) -> str:
        result = racer.eval(f"graphloupeStills.{method}({', '.join(json.dumps(arg) for arg in args)})")
        return str(result.get() if isinstance(result, JSPromise) else result)

    return answer


def serve(scripts: list[Path]) -> None:
    """Answer requests until standard input ends. Each is `{"id": int, "method": str, "args": [str]}`, each answer has `text` or `error`."""
    answer: Answer | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = answer or started(scripts)
            told = {"id": request["id"], "text": answer(request["method"], request["args"])}
        except Exception as error:  # noqa: BLE001 - any error of V8 answers this request; the next one may succeed
            told = {"id": request["id"], "error": str(error)}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve([Path(name) for name in sys.argv[1:]])
