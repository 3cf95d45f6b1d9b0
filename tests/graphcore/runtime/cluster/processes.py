"""A scheduler and workers of Dask, begun by the commands for several machines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from socket import socket
from typing import Self

import distributed
import psutil

import graphcore as gc

SECONDS = 60


def free_port() -> int:
    """The number of an unused port."""
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        number: int = found.getsockname()[1]
        return number


class Processes:
    """A scheduler, and a process with a nanny for each of several workers.

    Args:
        folder: the place for the files of the workers.
        workers: the number of workers; their names are `w-0`, `w-1` and so on.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self._port = free_port()
        self._begun: list[psutil.Process] = []
        self._log = (folder / "log.txt").open("wb")
        self.scheduler = self.begin_scheduler()
        self.nannies = self.begin_workers(workers)

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return f"tcp://127.0.0.1:{self._port}"

    def _begin(self, module: str, *arguments: str) -> psutil.Process:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]
        begun = psutil.Popen(command, stdout=self._log, stderr=subprocess.STDOUT, cwd=self.folder)
        self._begun.append(begun)
        return begun

    def begin_scheduler(self) -> psutil.Process:
        """Begin a scheduler at the address."""
        self.scheduler = self._begin("dask_scheduler", "--host", "127.0.0.1", "--port", str(self._port))
        return self.scheduler

    def begin_workers(self, count: int) -> psutil.Process:
        """Begin workers."""
        self.workers = count
        place = [self.address, "--local-directory", str(self.folder)]
        self.nannies = self._begin("dask_worker", *place, "--nworkers", str(count), "--nthreads", "1", "--name", "w")
        return self.nannies

    def cluster(self, count: int, heartbeat_timeout: float) -> gc.DaskCluster:
        """A cluster of the first workers, with a client of its own."""
        with distributed.Client(self.address, timeout=SECONDS, set_as_default=False) as client:
            client.wait_for_workers(self.workers, timeout=SECONDS)  # they come in any order
        return gc.DaskCluster(self.address, {"worker": [f"w-{number}" for number in range(count)]}, heartbeat_timeout=heartbeat_timeout)

    def alive(self) -> list[psutil.Process]:
        """The processes that are left of all that were begun, with what they have begun."""
        return [each for each in self._begun if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]

    def note_children(self) -> None:
        """Take the processes that those here have begun into the list for `alive`."""
        self._begun += [child for each in self.alive() for child in each.children(recursive=True) if child not in self._begun]

    def files(self) -> list[str]:
        """The files of the workers."""
        return sorted([path.name for path in self.folder.rglob("*") if path.is_file()])

    def end(self) -> None:
        """End the workers and the scheduler, as Ctrl-C in their terminals does."""
        self.note_children()
        for each in (self.nannies, self.scheduler):
            if each.is_running():
                each.send_signal(signal.SIGINT)
                each.wait(SECONDS)
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.note_children()
        for each in self.alive():
            each.kill()
        psutil.wait_procs(self._begun, SECONDS)
        self._log.close()


def process_of(cluster: gc.DaskCluster, task: int) -> int:
    """The number of the process of a worker."""
    place = cluster.places()[task]
    found: int = cluster.client.run(os.getpid, workers=[place.address])[place.address]
    return found
