"""Measurements of tests are at the end of the output, those of workers too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TEST = 'def test_told(record_property): record_property("length", "7 m")\n'


def test_a_measurement_is_in_the_output(tmp_path: Path) -> None:
    file = tmp_path / "test_measured.py"
    file.write_text(TEST)
    options = ["-n", "1", "-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(file)], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert "length: 7 m" in done.stdout, done.stdout + done.stderr
