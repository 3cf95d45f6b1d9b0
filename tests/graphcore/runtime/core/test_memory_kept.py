"""Steps of a session reuse memory freed by earlier steps."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

_PROGRAM = """
import resource
import numpy as np
import graphcore as gc

x = gc.placeholder(gc.float32, [{count}])
y = [x * float(i) for i in range(8)]
session, feed = gc.Session(), {{x: np.ones({count}, np.float32)}}
for _ in range(20):
    session.run(y, feed)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    session.run(y, feed)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep memory by rules of their own")
def test_arrays_are_made_in_memory_that_the_last_step_freed() -> None:
    count = 100_000
    pages_of_one_array = count * 4 // 4096
    # Dask sets MALLOC_TRIM_THRESHOLD_ for its workers in the process that starts them, where other tests may have done so.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    program = _PROGRAM.format(count=count)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert int(done.stdout) < pages_of_one_array
