"""Session: runs parts of a graph with feeds and fetches; keeps the variables."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, default_graph, get_default_graph
from graphcore.graph.node import Node, Tensor
from graphcore.kernel_context import KernelContext, ResourceManager
from graphcore.registry import Kernel
from graphcore.runtime.feeds import Feeder, make_feeder
from graphcore.runtime.fetches import FetchStructure, parse_fetches
from graphcore.runtime.function_runtime import FunctionLibraryRuntime
from graphcore.runtime.plan import Plan, build_plan
from graphcore.runtime.rendezvous import Rendezvous

_MAX_PLANS: Final = 256
_default_session: ContextVar[Session | None]


class Session:
    """Runs a graph on NumPy.

    Args:
        graph: the graph to run; the default graph if None.

    The graph may grow and change between runs: what a run needs is planned again when it has. Used as a context
    manager it is the default session, and its graph the default graph, within the block.

    Attributes:
        rendezvous: where its `_Send` and `_Recv` nodes meet the client and each other.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = graph or get_default_graph()
        self.rendezvous = Rendezvous()
        self.resources = ResourceManager()
        self.resources.channel = self.rendezvous
        self._plans: dict[Any, _Prepared] = {}
        self._kernels: dict[str, tuple[Any, Kernel]] = {}
        self._lock = threading.RLock()
        self._closed = False
        self.functions = FunctionLibraryRuntime(self.graph.library, resources=self.resources)
        self._entered: list[tuple[Token[Session | None], Any]] = []

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Compute `fetches` and return them in the same structure.

        Args:
            fetches: a tensor, a node, a variable, a name (`"y:0"`, `"train"`), or nested lists, tuples, dicts of these.
                A node gives None, a tensor its value.
            feed_dict: values for tensors, by tensor or name; each is checked against dtype and shape first.

        Raises:
            InvalidArgumentError: a fetch or feed that does not belong to the graph or does not fit.
            FailedPreconditionError: an uninitialised variable, or the session is closed.
        """
        key = _plan_key(fetches, feed_dict)
        prepared = self._plans.get(key) if key is not None else None
        if prepared is None or prepared.version != self.graph.version:
            prepared = self._prepare(fetches, feed_dict, key)
        values = [feed(value) for feed, value in zip(prepared.feeders, feed_dict.values(), strict=True)] if feed_dict else ()
        plan = prepared.plan
        try:
            with np.errstate(all="ignore"):
                results = plan.run(*values)
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is told with its node
            explained = plan.explain(error)
            raise explained from (None if explained is error else error)
        for i, value in enumerate(results):
            if type(value) is np.ndarray and (value.base is not None or not value.flags.writeable):
                results[i] = value.copy()
        return prepared.structure.pack(results)

    def plan(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Plan:
        """The plan that `run` with these arguments uses; its `source` shows what happens."""
        return self._prepare(fetches, feed_dict, None).plan

    def make_callable(self, fetches: Any, feed_list: list[Any] | None = None) -> Any:
        """A function of the feeds' values that gives what `run` gives, with less work a call."""
        feeds = list(feed_list or [])

        def call(*values: Any) -> Any:
            if len(values) != len(feeds):
                raise InvalidArgumentError(f"Required {len(feeds)} values, one a feed, got {len(values)}")
            return self.run(fetches, dict(zip(feeds, values, strict=True)))

        return call

    def close(self) -> None:
        """Give the variables and plans free."""
        self._closed = True
        for prepared in self._plans.values():
            prepared.plan.close()
        self._plans.clear()
        self._kernels.clear()
        self.resources = ResourceManager()
        self.functions = FunctionLibraryRuntime(self.graph.library, resources=self.resources)

    def _prepare(self, fetches: Any, feed_dict: Mapping[Any, Any] | None, key: Any) -> _Prepared:
        if self._closed:
            raise FailedPreconditionError("Attempted to use a closed Session.")
        graph = self.graph
        with self._lock, graph.lock:
            version = graph.version
            structure = parse_fetches(graph, fetches)
            feeds = self._feeds(feed_dict or {})
            plan = build_plan(structure.tensors, structure.targets, feeds, self._make_kernel)
            prepared = _Prepared(version, plan, structure, [make_feeder(tensor) for tensor in feeds])
            if key is not None:
                if len(self._plans) >= _MAX_PLANS:
                    self._plans.pop(next(iter(self._plans))).plan.close()
                self._plans[key] = prepared
            return prepared

    def _feeds(self, feed_dict: Mapping[Any, Any]) -> list[Tensor]:
        tensors: list[Tensor] = []
        for key in feed_dict:
            tensor = self._feed_tensor(key)
            if tensor in tensors:
                raise InvalidArgumentError(f'Endpoint "{tensor.name}" fed more than once.', node=tensor.node.name, op=tensor.node.op)
            tensors.append(tensor)
        return tensors

    def _feed_tensor(self, key: Any) -> Tensor:
        try:
            element = self.graph.as_graph_element(key)
        except NotFoundError as error:
            raise NotFoundError(f"FeedInputs: unable to find feed output {key}", node=error.node) from None
        except GraphError as error:
            error.message = f"Cannot feed {key!r}: {error.message}"
            raise
        if isinstance(element, Node):
            if len(element.outputs) != 1:
                raise InvalidArgumentError(
                    f"FeedInputs: node '{element.name}' (op {element.op}) has {len(element.outputs)} outputs; feed one of its tensors",
                    op=element.op,
                    node=element.name,
                )
            return element.outputs[0]
        return element

    def _make_kernel(self, node: Node, context: KernelContext) -> Kernel:
        """The kernel of `node`; one with state lives as long as the session and its node's definition."""
        context.resources = self.resources
        context.functions = self.functions
        if node.registration.is_function:
            return self.functions.function_kernel(node.op, node.node_def.attr)
        factory = node.registration.kernel
        assert factory is not None
        if not node.op_def.is_stateful:
            return factory(context)
        known = self._kernels.get(node.name)
        if known is None or known[0] != node.node_def:
            known = self._kernels[node.name] = (node.node_def, factory(context))
        return known[1]

    def __enter__(self) -> Self:
        stack = default_graph(self.graph)
        stack.__enter__()
        self._entered.append((_default_session.set(self), stack))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        token, stack = self._entered.pop()
        _default_session.reset(token)
        stack.__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        count = sum(1 for variable in self.resources.variables.values() if variable.value is not None)
        return f"<gc.Session {'closed' if self._closed else f'{count} variables initialised'}>"


class _Prepared:
    __slots__ = ("feeders", "plan", "structure", "version")

    def __init__(self, version: int, plan: Plan, structure: FetchStructure, feeders: list[Feeder]) -> None:
        self.version = version
        self.plan = plan
        self.structure = structure
        self.feeders = feeders


_default_session = ContextVar("default_session", default=None)


def get_default_session() -> Session | None:
    """The innermost session entered with `with`, None if there is none."""
    return _default_session.get()


def _plan_key(fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
    """What names the plan of these arguments; None if they cannot be keys."""
    shape = (list, tuple(fetches)) if type(fetches) is list else fetches
    key = (shape, tuple(feed_dict)) if feed_dict else (shape, ())
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _evaluate(tensor: Tensor, feed_dict: dict[Any, Any] | None, session: Any) -> Any:
    chosen = session or get_default_session()
    if chosen is None:
        raise FailedPreconditionError(
            f"Cannot evaluate '{tensor.name}': no default session is entered; use `with gc.Session():` or give `session=`",
            node=tensor.node.name,
        )
    return chosen.run(tensor, feed_dict)


Graph.evaluator = staticmethod(_evaluate)
