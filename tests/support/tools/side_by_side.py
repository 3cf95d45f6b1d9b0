"""Run several commands at once: `python side_by_side.py "COMMAND" "COMMAND" ...`.

The first one's output is shown as it comes, that of each other when all before it have ended: nothing is mixed. All are run to their
ends whatever becomes of one; the exit status is 1 when any has failed. Ctrl-C reaches all of them, and each says what it has to say.
(A shell's `&` would have them ignore Ctrl-C, and so would everything that they start.)
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
    """Run the commands; 0 when all of them gave 0, otherwise 1."""
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
    """Wait for a command and show what it has written; its exit status."""
    try:
        return process.wait()
    except KeyboardInterrupt:  # it has got Ctrl-C itself: it ends what it has started, and tells how far it came
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
    """End a command that may be running; its exit status."""
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
