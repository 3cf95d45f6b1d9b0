"""Network traffic and console errors of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from playwright.sync_api import BrowserContext, ConsoleMessage, Page

LOCAL = "127.0.0.1"
OUTSIDE = re.compile(rf"^(?:https?|wss?)://(?!{re.escape(LOCAL)}[:/])", re.IGNORECASE)

JUPYTERS_OWN = (
    # JupyterLab, when a kernel restart overtakes a request of its debugger.
    "Could not restore the debugger state: Canceled future for debug_request",
    # JupyterLab, when a notebook closes before the kernel has said what stands at the cursor.
    "Canceled future for inspect_request",
    # JupyterLab's widgets, when a kernel ends before it has answered the request for a shell of their own.
    "Canceled future for create_subshell_request",
    # Notebook 7, with every notebook.
    "Cannot read properties of undefined (reading 'schema')",
    # Notebook 7, when it restores the folder of a notebook before its file browser has registered its commands.
    "Command 'filebrowser:open-path' not registered.",
)


@dataclass
class Traffic:
    """Requests to other machines and console errors of a test's browser contexts.

    Requests are seen and not routed: routes disable the browser's cache, so that each page would load JupyterLab's files anew. Chromium
    itself refuses what leaves the machine (`outside_blocker`).
    """

    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    tolerated: list[str] = field(default_factory=lambda: list(JUPYTERS_OWN))

    def begin(self) -> None:
        """Reset for the next test."""
        self.outside.clear()
        self.errors.clear()
        self.tolerated[:] = JUPYTERS_OWN

    def guard(self, context: BrowserContext) -> None:
        """Record the requests of `context` to other hosts than 127.0.0.1."""
        context.on("request", lambda request: self._requested(request.url))

    def listen(self, page: Page) -> None:
        """Record the WebSockets of `page` to other hosts, its console errors and uncaught exceptions."""
        page.on("websocket", lambda socket: self._requested(socket.url))
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._complain(f"uncaught: {error}"))

    def tolerate(self, text: str) -> None:
        """Ignore console errors that contain `text`, for tests that provoke them."""
        self.tolerated.append(text)

    def unexpected_errors(self) -> list[str]:
        """The errors that no test announced."""
        return [error for error in self.errors if not any(text in error for text in self.tolerated)]

    def assert_clean(self) -> None:
        """Fail when a request left the machine or the console shows an error."""
        assert not self.outside, f"requests tried to leave the machine: {self.outside}"
        unexpected = self.unexpected_errors()
        assert not unexpected, "console errors:\n" + "\n".join(unexpected)

    def _requested(self, url: str) -> None:
        if OUTSIDE.match(url):
            self.outside.append(url)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type != "error":
            return
        place = message.location
        self._complain(f"{message.text} ({place.get('url', '')}:{place.get('lineNumber', '')})")

    def _complain(self, text: str) -> None:
        self.errors.append(text)


def outside_blocker() -> list[str]:
    """Chromium options that make all other hosts unknown, names and addresses alike."""
    return [f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {LOCAL}"]
