"""Kill processes while they save, at random instants, and read what they left.

    python -m tests.support.saving.kill --kills 100 SameName Steps

Each process saves 1, 2, 3, ... to one place. After it was killed, the last number whose save had ended can be read, or the next.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.support.saving.kinds import KINDS

WARM = 2
"""The saves before the kill."""


def save_on(kind: str, folder: Path, first: int, out: int) -> None:
    """Save the numbers from `first` on, for ever, and report each."""
    saved = KINDS[kind](folder)
    number = first
    while True:
        saved.save(number)
        os.write(out, b".")
        number += 1


def kill_once(kind: str, folder: Path, first: int, rng: random.Random) -> int:
    """Start a process that saves, and kill it. Returns the last number whose save had ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            save_on(kind, folder, first, writing)
        except BaseException:  # noqa: BLE001 - the process ends, whatever happened
            traceback.print_exc()
        os._exit(1)
    os.close(writing)
    count, begun, last = 0, time.monotonic(), 0.0
    while count < WARM and (part := os.read(reading, 1)):
        count += len(part)
        last, begun = time.monotonic() - begun, time.monotonic()
    time.sleep(rng.random() * 2 * last)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(reading, 100):
        count += len(part)
    os.close(reading)
    return first - 1 + count


def lost(kind: str, kills: int, seed: int) -> list[str]:
    """The faults of a kind of saves."""
    rng, found = random.Random(f"{seed} {kind}"), []
    with tempfile.TemporaryDirectory() as name:
        folder, number = Path(name), 0
        for kill in range(kills):
            number = kill_once(kind, folder, number + 1, rng)
            try:
                read = KINDS[kind](folder).read()
            except Exception as error:  # noqa: BLE001 - whatever is wrong with what is left
                found.append(f"{kind}, kill {kill}: after save {number}: {type(error).__name__}: {str(error)[:300]}")
                continue
            if read not in (number, number + 1):
                found.append(f"{kind}, kill {kill}: after save {number}, {read} was read")
            number = max(number, read)
        left = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
        if len(left) > 1:
            found.append(f"{kind}: temporary files pile up: {left}")
    return found


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Kill processes while they save.")
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    faults = []
    for kind in arguments.kinds:
        found = lost(kind, arguments.kills, arguments.seed)
        print(f"{kind:12} {arguments.kills} kills, {len(found)} faults")
        faults += found
    print(*faults[:20], sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
