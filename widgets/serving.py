"""A page that is served on this machine and loads again when the file behind it changes."""

from __future__ import annotations

import secrets
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from graphcore.errors import GraphError
from graphcore.support.shown import html_text

_HOST: Final = "127.0.0.1"
_SECONDS: Final = 0.5
"""The time between two looks at the file."""
_AROUND: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>html,body,iframe{{margin:0;border:0;width:100%;height:100%;display:block}}</style></head>
<body><iframe id="page" title="{title}" src="page"></iframe><script>
let seen = "";
setInterval(async () => {{
  const now = await fetch("version").then((answer) => answer.text()).catch(() => seen);
  if (seen && now !== seen) document.getElementById("page").contentWindow.location.reload();
  seen = now;
}}, 1000);
</script></body></html>
"""
_FAILED: Final = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body><pre>{text}</pre></body></html>'
)


def has_browser() -> bool:
    """True iff this program runs in a terminal of a machine that has a browser for its user."""
    if not sys.stdout.isatty():
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


class PageServer:
    """Serves the page of one file to browsers of this machine.

    Args:
        path: the file or folder.
        make: makes the page.
        port: the port, 0 for any that is free.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, path: Path, make: Callable[[], str], port: int = 0) -> None:
        self._path = path
        self._make = make
        self._lock = threading.Lock()
        self._made: tuple[str, str] = ("", "")
        # The address is a secret: other users of the machine and pages of other sites do not see the page.
        self._place = f"/{secrets.token_urlsafe(12)}/"
        self._server = ThreadingHTTPServer((_HOST, port), self._handler())
        self.url = f"http://{_HOST}:{self._server.server_address[1]}{self._place}"

    def run(self) -> None:
        """Serve until the program is interrupted."""
        try:
            self._server.serve_forever(_SECONDS)
        finally:
            self._server.server_close()

    def stop(self) -> None:
        """End `run`, which another thread is in."""
        self._server.shutdown()

    def version(self) -> str:
        """A text that is another one after each change of the file."""
        newest, size, count = 0, 0, 0
        try:
            files = [self._path] if not self._path.is_dir() else [file for file in self._path.rglob("*") if file.is_file()]
            for file in files:
                status = file.stat()
                newest, size, count = max(newest, status.st_mtime_ns), size + status.st_size, count + 1
        except OSError:
            return "absent"
        return f"{newest} {size} {count}"

    def page(self) -> str:
        """The page of the file as it is now; the error if it cannot be read at the moment."""
        with self._lock:
            version = self.version()
            if self._made[0] != version:
                try:
                    text = self._make()
                except (GraphError, OSError) as error:
                    message = error.message if isinstance(error, GraphError) else str(error)
                    stamp = time.strftime("%H:%M:%S")
                    return _FAILED.format(title=html_text(self._path.name), text=html_text(f"{stamp}  {message}"))
                self._made = version, text
            return self._made[1]

    def _answer(self, name: str) -> tuple[str, str] | None:
        """The type and the text of an answer, None if there is none of this name."""
        if name == "":
            return "text/html", _AROUND.format(title=html_text(self._path.name))
        if name == "page":
            return "text/html", self.page()
        return ("text/plain", self.version()) if name == "version" else None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer, place = self._answer, self._place

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host = (self.headers.get("Host") or "").partition(":")[0]
                page = answer(self.path.removeprefix(place)) if host in {_HOST, "localhost"} and self.path.startswith(place) else None
                if page is None:
                    self.send_error(404)
                    return
                kind, text = page
                data = text.encode(errors="replace")
                self.send_response(200)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Write nothing: a line a second says nothing."""

        return Handler
