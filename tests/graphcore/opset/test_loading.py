"""Ops are known before their modules are imported, and the index of modules is complete."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from graphcore.errors import AlreadyExistsError
from graphcore.opset import promise_modules
from graphcore.registry import OpRegistry
from graphcore.support.safe_import import import_whole
from tests.support.tools.op_modules import INDEX, index_text

FAMILY = (
    "from graphcore.definitions import OpDefBuilder\n"
    "from some_ops import registry\n"
    "from graphcore.registry import OpRegistration\n"
    "def register(name):\n"
    "    registry.register_lazy(name, lambda: OpRegistration(OpDefBuilder(name).finalize()))\n"
)


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, OpRegistry]:
    """The file of the module `some_ops.family`, to be written, and the registry for its ops."""
    package = tmp_path / "some_ops"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("some_ops", "some_ops.family"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    registry = OpRegistry()
    vars(importlib.import_module("some_ops"))["registry"] = registry
    return package / "family.py", registry


def test_the_index_lists_the_ops_of_every_module() -> None:
    assert INDEX.read_text(encoding="utf-8") == index_text(), "run `make op-index`"


def test_importing_the_package_imports_neither_the_ops_nor_networkx() -> None:
    program = "import sys, graphcore; print('networkx' in sys.modules, 'graphcore.opset.nn.convolution' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_promised_op_is_loaded_when_it_is_asked_for_and_its_name_is_taken_till_then(family: tuple[Path, OpRegistry]) -> None:
    file, registry = family
    file.write_text(FAMILY + "register('Promised')\n")
    promise_modules({"some_ops.family": "Promised"}, registry)
    assert registry.names() == ["Promised"]
    assert "Promised" in registry
    assert "some_ops.family" not in sys.modules
    with pytest.raises(AlreadyExistsError, match="Op with name Promised"):
        registry.promise(["Promised"], lambda: None)
    assert registry.look_up_op_def("Promised").name == "Promised"
    assert "some_ops.family" in sys.modules
    assert [entry.op_def.name for entry in registry] == ["Promised"]


def test_ctrl_c_while_a_module_is_imported_loses_none_of_its_ops(family: tuple[Path, OpRegistry]) -> None:
    file, registry = family
    file.write_text(FAMILY + "register('Early')\nimport signal\nsignal.raise_signal(signal.SIGINT)\nregister('Late')\n")
    promise_modules({"some_ops.family": "Early Late"}, registry)
    with pytest.raises(KeyboardInterrupt):
        registry.look_up("Late")
    assert registry.look_up_op_def("Late").name == "Late"
    assert registry.look_up_op_def("Early").name == "Early"
    assert registry.names() == ["Early", "Late"]


def test_the_import_error_of_a_module_is_raised() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        import_whole("no_such_module")
