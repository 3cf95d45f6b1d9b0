"""Run several commands concurrently: `python side_by_side.py "COMMAND" "COMMAND" ...`.

The output of the first one is shown at once, that of each other after all before it have ended, so nothing is mixed. All run to their ends
even if one fails; the exit status is 1 if any has failed. Ctrl-C reaches all of them. (With a shell's `&` they and their subprocesses would
ignore Ctrl-C.)
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO

GOODBYE_SECONDS = 30.0


def run(commands: Sequence[str]) -> int:
    """Run the commands. Returns 0 if all succeed, otherwise 1."""
    started: list[subprocess.Popen[bytes]] = []
    outputs: list[IO[bytes] | None] = []
    try:
        for command in commands:
            output: IO[bytes] | None = tempfile.TemporaryFile() if started else None  # noqa: SIM115 - closed below, when it has been shown
            outputs.append(output)
            told = subprocess.STDOUT if started else None
            started.append(subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL, stdout=output, stderr=told))
        codes = [_see_through(process, output) for process, output in zip(started, outputs, strict=True)]
        return int(any(codes))
    finally:
        for process in started:
            _end(process)
        for output in outputs:
            if output is not None:
                output.close()


def _see_through(process: subprocess.Popen[bytes], output: IO[bytes] | None) -> int:
    """Wait for a command and show its output. Returns its exit status."""
    try:
        return process.wait()
    except KeyboardInterrupt:  # it received Ctrl-C itself, ends its subprocesses and reports
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(GOODBYE_SECONDS)
        return _end(process)
    finally:
        if output is not None:
            sys.stdout.flush()
            output.seek(0)
            shutil.copyfileobj(output, sys.stdout.buffer)
            sys.stdout.flush()


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a command that may be running. Returns its exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            return process.wait(GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def _terminated(*_: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(run(sys.argv[1:]))
