"""A private JupyterLab server: own folders, a free port, stopped by its process id."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.forked_kernels import ForkedKernels

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90.0
STOP_SECONDS = 10.0
QUIET = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}


def lab_python() -> str:
    """The interpreter of the environment with JupyterLab, whose packages the running one may only share."""
    package = importlib.util.find_spec("jupyterlab")
    assert package is not None, "JupyterLab is not installed"
    assert package.origin is not None, "JupyterLab is a package with files"
    environment = next((folder for folder in Path(package.origin).parents if (folder / "pyvenv.cfg").is_file()), None)
    return sys.executable if environment is None else str(environment / "bin" / "python")


def free_port() -> int:
    """A free TCP port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """Terminate the process, kill it as a last resort. JupyterLab asks before it ends by an interrupt, and waits for the answer."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(sign)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def install_shared_data(home: Path) -> None:
    """Copy the files that the wheel installs for JupyterLab to the folders of `home`."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shared: dict[str, str] = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    for source, target in shared.items():
        kind, _, rest = target.partition("/jupyter/")
        path = home / {"share": "data", "etc": "config"}[kind] / rest
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, path)


@dataclass
class LabServer:
    """JupyterLab with kernels of the running interpreter, serving `home / "work"` on 127.0.0.1.

    Every folder that Jupyter writes to is under `home`, so that neither the user's settings nor an earlier run matter; one `home` for all
    notebooks of a run keeps the key that makes a saved notebook trusted. `base` is the path before all addresses, as `/user/ada` on a JupyterHub.
    """

    home: Path
    base: str = ""
    port: int = field(default_factory=free_port)
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    process: subprocess.Popen[bytes] | None = None
    kernels: ForkedKernels | None = None

    @property
    def url(self) -> str:
        """The address without a token, up to the path before all others."""
        return f"http://127.0.0.1:{self.port}{self.base}"

    @property
    def work(self) -> Path:
        """The folder with the server's notebooks."""
        return self.home / "work"

    @property
    def log(self) -> Path:
        """The server's log, with its kernels' output."""
        return self.home / "server.log"

    def environment(self) -> dict[str, str]:
        """The server's environment: this interpreter, this checkout, all state under `home`."""
        settings = self.home / "config" / "labconfig"
        settings.mkdir(parents=True, exist_ok=True)
        (settings / "default_setting_overrides.json").write_text(json.dumps(QUIET))
        folders = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "IPYTHONDIR": "ipython",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "MPLCONFIGDIR": "matplotlib",
        }
        for folder in folders.values():
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        install_shared_data(self.home)
        return {
            **os.environ,
            **{name: str(self.home / folder) for name, folder in folders.items()},
            "JUPYTER_CONFIG_PATH": str(self.home / "config"),
            "JUPYTER_PATH": str(self.home / "data"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }

    def start(self) -> None:
        """Start the server and return once it answers; RuntimeError with the log's end if it does not."""
        self.work.mkdir(parents=True, exist_ok=True)
        options = [
            "--no-browser",
            "--allow-root",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.port}",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.root_dir={self.work}",
            f"--ServerApp.base_url={self.base}/",
            "--LabApp.expose_app_in_browser=True",
            "--JupyterNotebookApp.expose_app_in_browser=True",
            "--ServerApp.terminals_enabled=False",
        ]
        environment = self.environment()
        self.kernels = ForkedKernels(self.home / "data", environment)
        self.kernels.start()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [lab_python(), "-m", "jupyterlab", *options], env=environment, cwd=self.work, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"JupyterLab did not start; the end of its log:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.2)

    def request(self, method: str, path: str) -> Any:
        """Call the server's REST API."""
        call = urllib.request.Request(f"{self.url}{path}", method=method, headers={"Authorization": f"token {self.token}"})
        with urllib.request.urlopen(call, timeout=20) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def answers(self) -> bool:
        """True iff the server serves requests."""
        try:
            self.request("GET", "/api/status")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
        return True

    def shut_down_kernels(self) -> None:
        """End every session of the server before the next test."""
        for session in self.request("GET", "/api/sessions"):
            self.request("DELETE", f"/api/sessions/{session['id']}")

    def stop(self) -> None:
        """Stop the server and its kernels."""
        if self.process is not None:
            stop_process(self.process)
        if self.kernels is not None:
            self.kernels.stop()
