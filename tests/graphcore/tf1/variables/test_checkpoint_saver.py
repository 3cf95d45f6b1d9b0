"""Checkpoints every so many steps are whole or not there, whenever the process ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import graphcore as gc

train: Any = import_module("graphcore.train")
TRAINING = """
import os, sys, graphcore as gc
w = gc.Variable([0.0, 0.0], name="w")
step = w.assign_add([1.0, 2.0])
session = gc.Session()
session.run(w.initializer)
saver = gc.train.CheckpointSaver(session, sys.argv[1], every_n_steps=2)
flush = os.fsync
def slowly(file):
    if saver.steps == 6:
        print("writing", flush=True)
        sys.stdin.readline()
    flush(file)
os.fsync = slowly
while True:
    session.run(step)
    saver.step()
"""


def test_a_process_killed_while_it_writes_a_checkpoint_leaves_the_one_before_for_the_next_process(tmp_path: Path) -> None:
    command, root = [sys.executable, "-c", TRAINING, str(tmp_path)], Path(gc.__file__).parents[1]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        partial = [path for path in tmp_path.iterdir() if path.suffix == ".part"]
        assert [path.stat().st_size > 0 for path in partial] == [True]
        process.send_signal(signal.SIGKILL)
    with gc.Graph().as_default():
        w = gc.Variable([0.0, 0.0], name="w")
        step = w.assign_add([1.0, 2.0])
        session = gc.Session()
        saver = train.CheckpointSaver(session, tmp_path, every_n_steps=2)
        assert saver.steps == 4
        assert Path(saver.latest).name == "step-4.npz"
        gc.restore_variables(session, saver.latest)
        assert session.run(w).tolist() == [4.0, 8.0]
        for _ in range(2):
            session.run(step)
            saver.step()
    assert sorted([path.name for path in tmp_path.iterdir()]) == ["step-2.npz", "step-4.npz", "step-6.npz"]
