"""Make the packages of this environment available in another one. Argument: the Python of the other environment."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

FOLDER = "import sysconfig; print(sysconfig.get_path('purelib'))"


def share(python: str) -> None:
    """Let `python` also import what this interpreter can, links to sources included."""
    other = subprocess.run([python, "-c", FOLDER], capture_output=True, text=True, check=True).stdout.strip()
    line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    Path(other, "shared_packages.pth").write_text(line, encoding="utf-8")


if __name__ == "__main__":
    share(sys.argv[1])
