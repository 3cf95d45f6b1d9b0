"""The op registry."""

from __future__ import annotations

import signal
from functools import partial

import pytest

import graphcore as gc
from graphcore.definitions import OpDef
from graphcore.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from graphcore.registry import OpRegistration, OpRegistry


def ignore(op_def: OpDef, error: Exception | None) -> None:
    """A callback that does nothing."""


def test_o8_an_unknown_op_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="Op type not registered 'Foo'"):
        OpRegistry().look_up("Foo")


@pytest.mark.parametrize(
    ("name", "reason"), [("CudnnRNNV2", "library of NVIDIA"), ("XlaLaunch", "compiler"), ("RestoreSlice", "version 1")]
)
def test_the_error_for_an_op_of_tensorflow_that_is_not_here_gives_the_reason(name: str, reason: str) -> None:
    with pytest.raises(NotFoundError, match=f"Op type not registered '{name}': .*{reason}"):
        gc.op_registry.look_up(name)


def test_o8_a_registered_op_is_found() -> None:
    registry = OpRegistry()
    registry.register(OpDef(name="Foo"))
    assert registry.look_up("Foo").op_def == registry.look_up_op_def("Foo") == OpDef(name="Foo")
    assert "Foo" in registry
    assert "Bar" not in registry


def test_o8_a_name_is_registered_once_and_the_watcher_hears_of_both_attempts() -> None:
    registry = OpRegistry()
    seen: list[tuple[str, type[Exception] | None]] = []
    registry.set_watcher(lambda op_def, error: seen.append((op_def.name, None if error is None else type(error))))
    registry.register(OpDef(name="Foo"))
    with pytest.raises(AlreadyExistsError, match="Op with name Foo"):
        registry.register(OpDef(name="Foo", summary="another"))
    assert seen == [("Foo", None), ("Foo", AlreadyExistsError)]
    assert registry.look_up_op_def("Foo").summary == ""


def test_o8_a_second_watcher_is_refused_until_the_first_is_gone() -> None:
    registry = OpRegistry()
    registry.set_watcher(ignore)
    with pytest.raises(AlreadyExistsError):
        registry.set_watcher(ignore)
    registry.set_watcher(None)
    registry.set_watcher(ignore)


def test_o8_registrations_are_deferred_until_the_first_look_up() -> None:
    registry = OpRegistry()
    made: list[str] = []

    def make(name: str) -> OpRegistration:
        made.append(name)
        return OpRegistration(OpDef(name=name))

    registry.register(lambda: make("Foo"))
    registry.register(lambda: make("Bar"))
    assert made == []
    assert registry.look_up("Bar").op_def.name == "Bar"
    assert made == ["Foo", "Bar"]


def test_o8_a_deferred_duplicate_is_reported_at_the_look_up() -> None:
    registry = OpRegistry()
    registry.register(lambda: OpRegistration(OpDef(name="Foo")))
    registry.register(lambda: OpRegistration(OpDef(name="Foo")))
    with pytest.raises(AlreadyExistsError):
        registry.look_up("Foo")
    assert registry.look_up("Foo").op_def.name == "Foo"


def test_o8_a_lazy_op_is_made_only_when_it_is_asked_for() -> None:
    registry = OpRegistry()
    made: list[str] = []

    def make(name: str) -> OpRegistration:
        made.append(name)
        return OpRegistration(OpDef(name=name))

    registry.register_lazy("Foo", partial(make, "Foo"))
    registry.register_lazy("Bar", partial(make, "Bar"))
    assert "Foo" in registry
    assert made == []
    registry.look_up("Bar")
    assert made == ["Bar"]
    with pytest.raises(AlreadyExistsError):
        registry.register(OpDef(name="Foo"))


def test_o8_a_lazy_op_that_cannot_be_made_says_so_each_time() -> None:
    registry = OpRegistry()

    def make() -> OpRegistration:
        raise InvalidArgumentError("broken block")

    registry.register_lazy("Foo", make)
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="broken block"):
            registry.look_up("Foo")


def test_o8_an_op_def_without_sense_is_refused_and_reported() -> None:
    registry = OpRegistry()
    seen: list[Exception | None] = []
    registry.set_watcher(lambda _, error: seen.append(error))
    with pytest.raises(InvalidArgumentError, match="Invalid name: foo"):
        registry.register(OpDef(name="foo"))
    assert isinstance(seen[0], InvalidArgumentError)
    assert "foo" not in registry


def test_o8_export_lists_ops_by_name_and_internal_ones_when_asked() -> None:
    registry = OpRegistry()
    for name in ("Foo", "_Internal", "Bar"):
        registry.register(OpDef(name=name))
    assert [op_def.name for op_def in registry.export()] == ["Bar", "Foo"]
    assert [op_def.name for op_def in registry.export(include_internal=True)] == ["Bar", "Foo", "_Internal"]


def test_ctrl_c_while_an_op_is_made_that_was_asked_for_comes_when_it_is_there() -> None:
    def make() -> OpRegistration:
        signal.raise_signal(signal.SIGINT)
        return OpRegistration(OpDef(name="Late"))

    registry = OpRegistry()
    registry.register_lazy("Late", make)
    with pytest.raises(KeyboardInterrupt):
        registry.look_up("Late")
    assert registry.look_up("Late").op_def.name == "Late"
