"""Validation of session arguments, before anything is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from graphcore.errors import NotFoundError
from graphcore.graph import Graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.remarks import remark
from graphcore.runtime.core.options import RunMetadata, RunOptions, SessionOptions

_TARGETS: Final = ("", "local")
_EFFECTIVE: Final = {
    "allow_soft_placement",
    "device_count",
    "graph_options.place_pruned_graph",
    "inter_op_parallelism_threads",
    "log_device_placement",
    "operation_timeout_in_ms",
}
"""The options of `ConfigProto` that a session follows."""
_NO_OPTIONS: Final = SessionOptions()


def checked_target(target: Any) -> str:
    """Check the target of a session.

    Raises:
        InvalidArgumentError: it is not a name.
        NotFoundError: there is no such target.
    """
    if not isinstance(target, str):
        refuse("target", "a name", target)
    if target not in _TARGETS:
        raise NotFoundError(f"No session for target {target!r}: there is {' and '.join(map(repr, _TARGETS))}, which is this process")
    return target


def checked_session(graph: Any, options: Any) -> SessionOptions:
    """Check graph and options of a session. Returns the options.

    Raises:
        InvalidArgumentError: `graph` is no Graph, or `options` are no SessionOptions.
    """
    if graph is not None and not isinstance(graph, Graph):
        refuse("graph", "a gc.Graph, or None for the default graph", graph)
    if options is not None and not isinstance(options, SessionOptions):
        refuse("options", "gc.SessionOptions or None", options)
    return _NO_OPTIONS if options is None else options


def graph_and_target(first: Any, second: Any, graph: Any, target: Any) -> tuple[Any, Any]:
    """The graph and the target of a session: its first arguments may be either.

    Raises:
        InvalidArgumentError: one of them is given twice.
    """
    if isinstance(first, str):
        if target:
            refuse("target", "it once", target)
        target, first = first, None
    graphs = [one for one in (first, second if isinstance(second, Graph) else None, graph) if one is not None]
    if len(graphs) > 1:
        refuse("graph", "it once", graphs[1])
    return (graphs[0] if graphs else None), target


def configured(options: SessionOptions | None, devices: Any, config: Any) -> tuple[SessionOptions | None, Any]:
    """The options and devices of a session, also from TensorFlow 1's form of them.

    Raises:
        InvalidArgumentError: both forms are given, or a number of devices is not a number.
    """
    if config is None:
        return options, devices
    if options is not None:
        refuse("config", "None beside options", config)
    without_effect = [name for name in config.given_options() if name not in _EFFECTIVE] if hasattr(config, "given_options") else []
    if without_effect:
        remark(f"These options of ConfigProto have no effect here: {', '.join(without_effect)}")
    is_soft = getattr(config, "allow_soft_placement", None)
    if devices is None:
        devices = _counted_cpus(getattr(config, "device_count", None) or {})
    return SessionOptions(
        allow_soft_placement=True if is_soft is None else bool(is_soft),
        operation_timeout_in_ms=getattr(config, "operation_timeout_in_ms", None) or 0,
        place_pruned_graph=bool(getattr(getattr(config, "graph_options", None), "place_pruned_graph", None)),
        inter_op_threads=getattr(config, "inter_op_parallelism_threads", None) or 0,
        log_device_placement=bool(getattr(config, "log_device_placement", None)),
    ), devices


def _counted_cpus(device_count: Any) -> list[str] | None:
    """The CPUs that `ConfigProto.device_count` asks for; None if that is a single one."""
    count = device_count.get("CPU", 1) if isinstance(device_count, Mapping) else device_count
    if not isinstance(count, int) or count < 0:
        refuse("device_count", "a number of devices by type, such as {'CPU': 4}", device_count)
    return [f"/cpu:{number}" for number in range(count)] if count > 1 else None


def check_feed_dict(feed_dict: Any) -> None:
    """Check that feeds are a mapping by tensor or name, or None.

    Raises:
        InvalidArgumentError: it is neither.
    """
    if feed_dict is not None and not isinstance(feed_dict, Mapping):
        refuse("feed_dict", "a mapping from tensors or names to values, or None", feed_dict)


def flat_feeds(feed_dict: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
    """Feeds with one entry for each tensor of tuples and sparse tensors; the same object without these.

    Raises:
        InvalidArgumentError: a value has another structure than its tuple, or a tensor is fed twice.
    """
    if feed_dict is None or not any(isinstance(key, tuple) or hasattr(key, "as_fetches") for key in feed_dict):
        return feed_dict
    flat: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        for tensor, item in _pairs(key, value):
            if tensor in flat:
                refuse("feed_dict", "each tensor once", tensor)
            flat[tensor] = item
    return flat


def _pairs(key: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    if hasattr(key, "as_fetches"):
        key = key.as_fetches()
    if not isinstance(key, tuple):
        yield key, value
        return
    if not isinstance(value, list | tuple) or len(value) != len(key):
        refuse("feed_dict", f"a tuple of {len(key)} values for a tuple of as many tensors", value)
    for each_key, each_value in zip(key, value, strict=True):
        yield from _pairs(each_key, each_value)


def check_run(feed_dict: Any, options: Any, run_metadata: Any) -> None:
    """Check the arguments of a run other than fetches and feeds.

    Raises:
        InvalidArgumentError: an argument has the wrong type.
    """
    check_feed_dict(feed_dict)
    if options is not None and not isinstance(options, RunOptions):
        refuse("options", "gc.RunOptions or None", options)
    if run_metadata is not None and not isinstance(run_metadata, RunMetadata):
        refuse("run_metadata", "gc.RunMetadata or None", run_metadata)


def listed(argument: str, items: str, value: Any) -> Iterable[Any]:
    """Convert an iterable, or None, to a list.

    Args:
        items: the name of the items, for the error.

    Raises:
        InvalidArgumentError: `value` is not an iterable, or is a single string.
    """
    if value is None:
        return ()
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | AbstractSet | Mapping | Iterator):
        refuse(argument, f"a list of {items}", value)
    several: Iterable[Any] = value
    return several


def checked_connections(connections: Any) -> tuple[tuple[str, str], ...]:
    """Check pairs of tensor names.

    Raises:
        InvalidArgumentError: the argument is anything else.
    """
    pairs = tuple(listed("connections", "pairs of names", connections))
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            refuse("connections", "pairs of names of tensors, from and to", pair)
    return pairs


def checked_names(argument: str, names: Any) -> tuple[str, ...]:
    """Check names.

    Raises:
        InvalidArgumentError: the argument is anything else.
    """
    texts = tuple(listed(argument, "names", names))
    for name in texts:
        if not isinstance(name, str):
            refuse(argument, "a list of names", name)
    return texts
