"""The extension of Jupyter's server: pages of model files, which JupyterLab's file browser opens."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import ApiPath, ensure_async, to_os_path, url_path_join
from tornado.web import HTTPError, authenticated

_PROCESSES: Final = asyncio.Semaphore(2)
"""Keeps impatient clicks from filling the memory of the server's machine."""


class PageHandler(APIHandler):
    """Gives the page of the model at `path`, relative to the server's folder, as JSON: `{"page": HTML}`.

    A process of its own reads the file; it ends when the tab is closed. A file that cannot be shown gives status 422 and `{"message": TEXT}`.
    """

    auth_resource = "contents"
    _process: asyncio.subprocess.Process | None = None

    @authenticated
    @authorized
    async def get(self) -> None:
        """Answer a request."""
        asked = self.get_query_argument("path")
        contents: Any = self.contents_manager
        if not contents.allow_hidden and await ensure_async(contents.is_hidden(asked)):
            raise HTTPError(404, f"There is no file {asked}")
        path = self._local_path(asked)
        with tempfile.TemporaryDirectory(prefix="graphloupe-") as folder:
            page = Path(folder) / "page.html"
            async with _PROCESSES:
                message = await self._write(path, page)
            if message:
                self.set_status(422)
                self.finish({"message": message})
            else:
                self._finish_with(page)

    def _finish_with(self, page: Path) -> None:
        self.finish({"page": page.read_text(encoding="utf-8")})

    def _local_path(self, path: str) -> Path:
        """The place of a file on this machine; HTTPError 404 if it is not in the server's folder."""
        root = getattr(self.contents_manager, "root_dir", None)
        if root is None:
            raise HTTPError(400, "The files of this server are not on its own machine")
        folder = Path(root).absolute()
        place = Path(to_os_path(ApiPath(path.strip("/")), str(folder)))
        if ".." in place.parts or not place.is_relative_to(folder) or not place.exists():
            raise HTTPError(404, f"There is no file {path}")
        return place

    async def _write(self, path: Path, page: Path) -> str:
        """Write the page of a model. Returns the error, "" if there is none."""
        command = [sys.executable, "-m", "graphcore", "view", str(path), "--output", str(page)]
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=nothing, stderr=pipe)
        _, errors = await self._process.communicate()
        if self._process.returncode == 0:
            return ""
        return errors.decode("utf-8", "replace").strip().removeprefix("error: ") or "The process that read it has ended."

    def on_connection_close(self) -> None:
        """Stop reading a file for a tab that is closed."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "widgets.jupyter_server"}]


def _load_jupyter_server_extension(server: Any) -> None:
    settings = server.web_app.settings
    server.web_app.add_handlers(".*$", [(url_path_join(settings["base_url"], "graphloupe", "page"), PageHandler)])
