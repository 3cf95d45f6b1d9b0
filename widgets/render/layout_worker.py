"""The layout engine in a subprocess: one JSON request a line in, one JSON answer a line out.

WebAssembly cannot be interrupted from within Python, so a layout that takes too long is ended by ending this process.
Run as a script with the path of the packed engine; it imports nothing of this project.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from py_mini_racer import JSPromise, MiniRacer

MAX_HEAP = 512 * 1024 * 1024


def serve(engine: Path) -> None:
    """Answer requests until standard input ends. Each is `{"id": int, "method": str, "args": [str]}`, each answer has `text` or `error`."""
    racer = MiniRacer()
    racer.set_hard_memory_limit(MAX_HEAP)
    racer.eval(gzip.decompress(engine.read_bytes()).decode("utf-8"))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            args = ", ".join(json.dumps(arg) for arg in request["args"])
            result = racer.eval(f"graphloupeGraphviz.{request['method']}({args})")
            answer = {"id": request["id"], "text": result.get() if isinstance(result, JSPromise) else result}
        except Exception as error:  # noqa: BLE001 - any error of V8 answers this request; the next one may succeed
            answer = {"id": request["id"], "error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
