"""Kernels of tests as forks of one process in which all libraries are loaded.

A kernel takes seconds of processor time to start, nearly all of it for imports. A fork is as fresh: no notebook's code ran in it before.

Jupyter starts `python forked_kernels.py SOCKET ARGUMENTS` as the kernel. That program, the stand-in, asks the process with the libraries
for a fork, passes signals on to it, and ends when it ends. When the stand-in is killed, the fork ends.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

AVAILABLE: Final = sys.platform == "linux"
"""Elsewhere forks of processes with loaded system libraries may crash, so kernels start there as usual."""
PRELOADED: Final = ("ipykernel.ipkernel", "ipykernel.kernelapp", "kernelext.extension", "widgets.live")
STOP_SECONDS: Final = 10.0


@dataclass
class ForkedKernels:
    """Makes the kernelspec `python3` in a data folder of Jupyter start forks.

    Args:
        data: the folder that JUPYTER_DATA_DIR names.
        environment: variables of the process that is forked; each kernel gets those of its own start instead.
    """

    data: Path
    environment: dict[str, str]
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Write the kernelspec and start the process. A kernel that starts earlier waits for it."""
        if not AVAILABLE:
            return
        write = importlib.import_module("ipykernel.kernelspec").write_kernel_spec
        self.data.mkdir(parents=True, exist_ok=True)
        path = self.data / "forks"
        argv = [sys.executable, "-I", "-S", __file__, str(path), "-f", "{connection_file}"]
        write(str(self.data / "kernels" / "python3"), overrides={"argv": argv})
        with socket.socket(socket.AF_UNIX) as requests:
            requests.bind(str(path))
            requests.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(requests.fileno())],
                env={**self.environment, "JPY_PARENT_PID": str(os.getpid())},
                stdin=subprocess.PIPE,
                pass_fds=[requests.fileno()],
                start_new_session=True,
            )

    def stop(self) -> None:
        """End the process and all forks."""
        if self._process is not None:
            self._process.communicate(timeout=STOP_SECONDS)


def stand_in(path: str, *arguments: str) -> None:
    """Ask for a fork, pass signals on to it, and return when it has ended."""
    with socket.socket(socket.AF_UNIX) as fork:
        fork.connect(path)
        request = {"arguments": arguments, "folder": str(Path.cwd()), "environment": dict(os.environ)}
        fork.sendall(json.dumps(request).encode() + b"\n")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _frame: fork.sendall(bytes([received])))
        fork.recv(1)


def serve(requests: socket.socket) -> socket.socket:
    """Fork for each connection until standard input ends; returns in the forks only, with the connection."""
    while sys.stdin not in select.select([requests, sys.stdin], [], [])[0]:
        connection, _ = requests.accept()
        if os.fork() == 0:
            requests.close()
            return connection
        connection.close()
    os.killpg(0, signal.SIGKILL)  # this process and the forks that are left
    raise AssertionError("unreachable")


def obey(signals: Any) -> None:
    """Raise the signals that the stand-in passes on in the main thread; end with the stand-in."""
    while number := signals.read(1):
        signal.pthread_kill(threading.main_thread().ident or 0, number[0])
    os._exit(1)


def run_kernel(connection: socket.socket) -> None:
    """Run the kernel that the stand-in asks for, in its folder and with its variables."""
    stream = connection.makefile("rb")
    request = json.loads(stream.readline())
    threading.Thread(target=obey, args=(stream,), daemon=True).start()
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["ipykernel_launcher", *request["arguments"]]
    importlib.import_module("ipykernel.kernelapp").launch_new_instance()


def main(number: int) -> None:
    """Load the libraries, then fork for each request on the socket of this number."""
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system removes forks that have ended
    connection = serve(socket.socket(fileno=number))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    run_kernel(connection)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(int(sys.argv[1]))
    else:
        stand_in(*sys.argv[1:])
