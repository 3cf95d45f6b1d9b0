"""Op blocks are found without being imported."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from graphcore.errors import AlreadyExistsError
from graphcore.importing import import_whole
from graphcore.ops import families
from graphcore.ops.families import block_names, promise_families
from graphcore.registry import OpRegistry, op_registry

FILES = sorted(Path(families.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_blocks_found_in_the_text_of_a_family_are_those_that_it_registers(path: Path) -> None:
    found = block_names(path.read_text())
    module = importlib.import_module(f"graphcore.ops.{path.stem}")
    defined = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and all(hasattr(value, part) for part in ("signature", "shape", "kernel", "gradient", "examples"))
        and value.__module__ == module.__name__
    }
    assert set(found) == defined
    assert len(found) == len(defined)
    assert all(op_registry.look_up_op_def(name).name == name for name in found)


def test_there_are_families() -> None:
    assert sum(len(block_names(path.read_text())) for path in FILES) > 350


def test_importing_the_package_imports_neither_the_families_nor_networkx() -> None:
    program = "import sys, graphcore; print('networkx' in sys.modules, 'graphcore.ops.convolution' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_promised_op_is_loaded_when_it_is_asked_for_and_its_name_is_taken_till_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_ops"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "family.py").write_text(
        "from graphcore.definitions import OpDefBuilder\n"
        "from some_ops import registry\n"
        "from graphcore.registry import OpRegistration\n"
        "def op(block):\n"
        "    registry.register_lazy(block.__name__, lambda: OpRegistration(OpDefBuilder(block.__name__).finalize()))\n"
        "@op\nclass Promised:\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = OpRegistry()
    vars(importlib.import_module("some_ops"))["registry"] = registry
    promise_families("some_ops", [str(package)], registry)
    assert registry.names() == ["Promised"]
    assert "Promised" in registry
    assert "some_ops.family" not in sys.modules
    with pytest.raises(AlreadyExistsError, match="Op with name Promised"):
        registry.promise(["Promised"], lambda: None)
    assert registry.look_up_op_def("Promised").name == "Promised"
    assert "some_ops.family" in sys.modules
    assert [entry.op_def.name for entry in registry] == ["Promised"]


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_a_family_is_imported_loses_none_of_its_ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "slow_ops"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "family.py").write_text(
        "import time\n"
        "from graphcore.definitions import OpDefBuilder\n"
        "from slow_ops import registry\n"
        "from graphcore.registry import OpRegistration\n"
        "def op(block):\n"
        "    registry.register_lazy(block.__name__, lambda: OpRegistration(OpDefBuilder(block.__name__).finalize()))\n"
        "@op\nclass Early:\n    pass\n"
        "for _ in range(100):\n    time.sleep(0.01)\n"
        "@op\nclass Late:\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = OpRegistry()
    vars(importlib.import_module("slow_ops"))["registry"] = registry
    promise_families("slow_ops", [str(package)], registry)
    presser = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident or 0, signal.SIGINT))
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        registry.look_up("Late")
    presser.join()
    assert registry.look_up_op_def("Late").name == "Late"
    assert registry.look_up_op_def("Early").name == "Early"
    assert registry.names() == ["Early", "Late"]


def test_a_module_that_cannot_be_imported_says_why() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        import_whole("no_such_module")
