"""The tests run as a background job, in which SIGINT is ignored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
IGNORING = "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.exit(pytest.main(sys.argv[1:]))"


def test_tests_that_press_ctrl_c_end_where_a_shell_has_sigint_ignored() -> None:
    pressing = TESTS / "graphcore/runtime/core/test_interrupted_rendezvous.py"
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", str(pressing)]
    done = subprocess.run(
        [sys.executable, "-c", IGNORING, *options], cwd=TESTS.parent, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
