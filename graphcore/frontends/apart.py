"""Native libraries in a process of their own, which damaged files may end, within limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError

SECONDS: Final = 120.0
"""The seconds after which the process is stopped."""
_MEMORY: Final = 4 << 30
_PROGRAM: Final = """
import json, runpy, sys
sys.path[:] = json.loads(sys.argv[1])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), -1))
except (ImportError, OSError, ValueError):
    pass  # a system without these limits
sys.argv[:] = sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def output_of(script: Path, *arguments: str, what: str, data: bytes = b"", seconds: float = SECONDS, memory: int = 0) -> bytes:
    """Run a script of this package by itself, and give its output.

    Args:
        script: the script. It imports the library that it needs, and nothing of this package.
        arguments: its arguments.
        what: what it reads, as the subject of a sentence.
        data: its input.
        seconds: the limit of its time.
        memory: the bytes that it needs beyond those of any small file.

    Raises:
        InvalidArgumentError: it fails. The message has its reason.
        ResourceExhaustedError: it takes longer than the limit.
    """
    limit = _MEMORY + memory + 4 * len(data)
    command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path), str(limit), str(script), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - our own program; the file is its input
            command, input=data, capture_output=True, timeout=seconds, check=False, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        )
    except subprocess.TimeoutExpired:
        raise ResourceExhaustedError(f"{what} takes more than {seconds:.0f} seconds to read, the limit") from None
    if done.returncode:
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        complaint = next((line for line in lines if "error:" in line), lines[-1] if lines else "")
        reason = complaint.strip()[:300] if done.returncode > 0 and complaint else f"its reader ended with {done.returncode}"
        raise InvalidArgumentError(f"{what} is damaged: {reason}")
    return done.stdout
