"""Print the path of a working Chromium or Chrome; install one if there is none.

Order: the environment variable GRAPHLOUPE_BROWSER, names on PATH, the usual places on macOS, Playwright's own copy, Playwright's download,
Debian's package when this is root on a machine with apt. Only the path goes to stdout; progress goes to stderr.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "GRAPHLOUPE_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
MAC_APPS = ("Google Chrome", "Chromium", "Microsoft Edge", "Google Chrome for Testing")
DOWNLOAD_SECONDS = 240
ADVICE = (
    f"No Chromium or Chrome was found and none could be installed. Install one (Debian, Ubuntu: apt install chromium; "
    f"macOS: brew install --cask google-chrome; anywhere: python -m playwright install --with-deps chromium) "
    f"or set {VARIABLE} to the path of its program."
)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""The options of a browser that asks nothing, and nothing of the network."""


def launch_arguments(profile: str) -> list[str]:
    """The options for a quiet browser that needs neither a screen nor the network."""
    return ["--headless", *QUIET, f"--user-data-dir={profile}"]


def renders(program: str) -> bool:
    """True iff `program` starts and renders a page: a found name may be a stub or lack its libraries."""
    with tempfile.TemporaryDirectory(prefix="graphloupe-browser-", ignore_cleanup_errors=True) as profile:
        command = [program, *launch_arguments(profile), "--dump-dom", "data:text/html,<title>t</title><p>ready"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return "ready" in done.stdout


def candidates() -> Iterator[str]:
    """Possible browsers, best first."""
    for name in NAMES:
        if found := shutil.which(name):
            yield found
    for app in MAC_APPS:
        for root in (Path("/Applications"), Path.home() / "Applications"):
            program = root / f"{app}.app" / "Contents" / "MacOS" / app
            if program.exists():
                yield str(program)
    yield from playwright_copy()


def playwright_copy() -> Iterator[str]:
    """The Chromium that Playwright downloaded earlier, if any."""
    question = "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
    done = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    path = done.stdout.strip()
    if path and Path(path).exists():
        yield path


def attempt(command: list[str]) -> bool:
    """Run an installer, with its output on stderr. True iff it succeeded in time."""
    print("+", " ".join(command), file=sys.stderr, flush=True)
    try:
        done = subprocess.run(command, stdout=sys.stderr, timeout=DOWNLOAD_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return False
    return done.returncode == 0


def install() -> Iterator[str]:
    """Install a browser, first for this user only, then for the machine. Yields each resulting path."""
    if attempt([sys.executable, "-m", "playwright", "install", "chromium"]):
        yield from playwright_copy()
    if os.name != "posix" or os.getuid() != 0 or not shutil.which("apt-get"):
        return
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    packages = ["chromium", "fonts-dejavu-core"]
    if not attempt(["apt-get", "install", "-y", "--no-install-recommends", *packages]):
        attempt(["apt-get", "update"])
        attempt(["apt-get", "install", "-y", "--no-install-recommends", *packages])
    if found := shutil.which("chromium"):
        yield found


def find_browser(*, may_install: bool = True) -> str | None:
    """The path of a browser that renders, or None. A path given in GRAPHLOUPE_BROWSER is the only one tried."""
    if given := os.environ.get(VARIABLE):
        return given if renders(given) else None
    for program in candidates():
        if renders(program):
            return program
    if not may_install:
        return None
    return next((program for program in install() if renders(program)), None)


def main() -> int:
    """Print the path of a browser; return 1 with advice if there is none."""
    program = find_browser()
    if program is None:
        given = os.environ.get(VARIABLE)
        print(f"{VARIABLE}={given} does not start a browser. {ADVICE}" if given else ADVICE, file=sys.stderr)
        return 1
    print(program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
