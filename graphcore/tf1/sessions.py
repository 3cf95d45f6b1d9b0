"""Sessions as TensorFlow 1 configures them, and its switches between modes."""

from __future__ import annotations

from typing import Any, NoReturn

from graphcore.errors import UnimplementedError
from graphcore.graph import Graph
from graphcore.runtime import Session

__all__ = [
    "ConfigProto",
    "GPUOptions",
    "GraphOptions",
    "InteractiveSession",
    "OptimizerOptions",
    "disable_control_flow_v2",
    "disable_eager_execution",
    "disable_resource_variables",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
    "enable_resource_variables",
    "executing_eagerly",
]


class _Message:
    """A record of options; those without a meaning here are kept."""

    _parts: dict[str, type[_Message]] = {}  # noqa: RUF012 - a constant of each class

    def __init__(self, **options: Any) -> None:
        self.__dict__.update({name: kind() for name, kind in self._parts.items()} | options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return None

    def given_options(self) -> list[str]:
        """The options that are set, such as `gpu_options.allow_growth`."""
        names: list[str] = []
        for name, value in vars(self).items():
            names += [f"{name}.{inner}" for inner in value.given_options()] if isinstance(value, _Message) else [name] if value else []
        return names

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in vars(self).items()])})"


class GPUOptions(_Message):
    """Options of TensorFlow's GPU devices (`allow_growth`, ...), without effect."""


class OptimizerOptions(_Message):
    """Options of TensorFlow's graph optimizer, without effect."""

    OFF = ON_1 = ON_2 = 0
    L0, L1 = -1, 0


class GraphOptions(_Message):
    """Options for graphs: `place_pruned_graph` is that of `gc.SessionOptions`, others have no effect."""

    _parts = {"optimizer_options": OptimizerOptions}  # noqa: RUF012 - a constant


class ConfigProto(_Message):
    """Options of a session, as `gc.Session(config=...)` takes them.

    `log_device_placement` and `operation_timeout_in_ms` are those of `gc.SessionOptions`; `inter_op_parallelism_threads` is its
    `inter_op_threads`. `device_count` makes several CPUs, and `allow_soft_placement` matters with several devices. Others have no effect, and a
    session names those that are set.
    """

    _parts = {"gpu_options": GPUOptions, "graph_options": GraphOptions}  # noqa: RUF012 - a constant

    def __init__(self, **options: Any) -> None:
        super().__init__(**({"device_count": {}} | options))


class InteractiveSession(Session):
    """A session that is the default session from the start, until it is closed.

    Several may be closed in any order. The default graph stays the default, so that it may be reset; a graph that is given becomes the default graph.

    Args:
        target: "" or "local", for this process.
        graph: the graph to run; the default graph if None.
        config: options, see `ConfigProto`.
    """

    _is_nested = False

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph=graph, config=config)
        self._enters_graph = graph is not None
        self.__enter__()
        self._is_entered = True

    def close(self) -> None:
        """Release variables and plans. The default session is the one before again."""
        if self._is_entered:
            self._is_entered = False
            self.__exit__(None, None, None)
        super().close()


def disable_v2_behavior() -> None:
    """Do nothing: version 1's behaviour is the only one here."""


disable_eager_execution = disable_control_flow_v2 = disable_resource_variables = disable_v2_tensorshape = disable_v2_behavior


def enable_resource_variables() -> NoReturn:
    """Raise an error: each variable says of which kind it is.

    Raises:
        UnimplementedError: always.
    """
    raise UnimplementedError("enable_resource_variables: pass use_resource=True to each variable")


def executing_eagerly() -> bool:
    """False: a graph is built first, and a session runs it."""
    return False
