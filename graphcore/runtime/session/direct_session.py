"""DirectSession: a session created from a GraphDef, with everything given by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, Final

import msgspec

from graphcore.definitions import GraphDef
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, Node, import_graph_def
from graphcore.runtime.core.arguments import checked_session
from graphcore.runtime.core.devices import check_devices, local_devices
from graphcore.runtime.core.options import RunMetadata, RunOptions, SessionOptions
from graphcore.runtime.core.rewrite import DeviceAttributes, fed_tensor, fetched_tensor
from graphcore.runtime.session.callables import RELEASED, SessionCallable
from graphcore.runtime.session.session import Session

_STRICT: Final = SessionOptions(allow_soft_placement=False)


class CallableOptions(msgspec.Struct, frozen=True):
    """The specification of a callable of a `DirectSession`.

    Args:
        feed: names of the tensors to feed.
        fetch: names of the tensors to fetch.
        target: names of further nodes to run.
        tensor_connection: pairs of tensor names: the second takes the value of the first.
    """

    feed: tuple[str, ...] = ()
    fetch: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    tensor_connection: tuple[tuple[str, str], ...] = ()


class DirectSession:
    """Runs a GraphDef by node names.

    Args:
        options: those of a Session; by default, requested devices must exist.
    """

    def __init__(self, options: SessionOptions | None = None) -> None:
        self.options = _STRICT if options is None else checked_session(None, options)
        self._session: Session | None = None
        self._closed = False
        self._finalized = False
        self._callables: dict[int, SessionCallable | None] = {}
        self._counts: dict[int, int] = {}
        self._handles = count()

    def create(self, graph_def: GraphDef | Graph) -> None:
        """Set the graph.

        Args:
            graph_def: a GraphDef, or a graph to copy.

        Raises:
            InvalidArgumentError: it has one already, or a node cannot be placed.
        """
        if self._session is not None:
            raise InvalidArgumentError("A Graph has already been created for this session.")
        graph = Graph()
        import_graph_def(_as_graph_def(graph_def), graph)
        self._check_placement(graph.op_nodes())
        self._session = Session(graph, options=msgspec.structs.replace(self.options, optimize_for_static_graph=False))

    def extend(self, graph_def: GraphDef | Graph) -> None:
        """Add nodes to its graph.

        Raises:
            FailedPreconditionError: changes of the graph are forbidden, or the session is finalized.
            InvalidArgumentError: a node cannot be placed.
        """
        if self._session is None:
            self.create(graph_def)
            return
        if self.options.optimize_for_static_graph:
            raise FailedPreconditionError("Extending the graph is not supported when optimize_for_static_graph is true")
        session = self._live("Extend()")
        if self._finalized:
            raise FailedPreconditionError("The session has been finalized: its graph cannot be extended")
        with session.graph.transaction():
            before = set(session.graph.op_nodes())
            import_graph_def(_as_graph_def(graph_def), session.graph)
            self._check_placement(node for node in session.graph.op_nodes() if node not in before)

    def run(
        self,
        inputs: Sequence[tuple[str, Any]],
        output_tensor_names: Sequence[str],
        target_node_names: Sequence[str] = (),
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> list[Any]:
        """The values of `output_tensor_names`, in their order.

        Args:
            inputs: names (`x` or `x:0`) and values.
            output_tensor_names: names of tensors.
            target_node_names: names of further nodes to run.
            options, run_metadata: as `Session.run`.

        Raises:
            InvalidArgumentError: no graph was created, there is nothing to run, or a feed or fetch does not fit.
            NotFoundError: no such name.
        """
        session = self._live("Run()")
        if not output_tensor_names and not target_node_names:
            raise InvalidArgumentError("Must specify at least one target to fetch or execute.")
        feeds = [fed_tensor(session.graph, name) for name, _ in inputs]
        for number, ((name, _), tensor) in enumerate(zip(inputs, feeds, strict=True)):
            if tensor in feeds[:number]:
                raise InvalidArgumentError(f'Endpoint "{name}" fed more than once.', node=tensor.node.name, op=tensor.node.op)
        fetches = self._fetches(session, output_tensor_names, target_node_names)
        values = dict(zip(feeds, [value for _, value in inputs], strict=True))
        return list(session.run(fetches, values, options, run_metadata)[: len(output_tensor_names)])

    def make_callable(self, options: CallableOptions) -> int:
        """Prepare a run. Returns its handle.

        Raises:
            InvalidArgumentError, NotFoundError: a name is unknown, a tensor is fed twice, a connection is impossible.
        """
        session = self._live("MakeCallable()")
        feeds = [fed_tensor(session.graph, name) for name in options.feed]
        fetches = self._fetches(session, options.fetch, options.target)
        made = session.make_callable(fetches, feeds, options.tensor_connection)
        handle = next(self._handles)
        self._counts[handle] = len(options.fetch)
        self._callables[handle] = made
        return handle

    def run_callable(self, handle: int, feed_tensors: Sequence[Any] = (), fetch_tensors: list[Any] | None = None) -> list[Any]:
        """Run a callable.

        Args:
            feed_tensors: one value for each feed, in order.
            fetch_tensors: receives the results, which are returned too; required if there are any.

        Raises:
            InvalidArgumentError: no such handle, or it was released; a wrong number of feeds; no place for results.
        """
        self._live("RunCallable()")
        function = self._callable(handle)
        number = self._counts[handle]
        if number and fetch_tensors is None:
            raise InvalidArgumentError("`fetch_tensors` must be provided when the callable has one or more outputs.")
        results = list(function(*feed_tensors)[:number])
        if fetch_tensors is not None:
            fetch_tensors[:] = results
        return results

    def release_callable(self, handle: int) -> None:
        """Release a callable.

        Raises:
            InvalidArgumentError: no such handle, or it was released before.
        """
        self._callable(handle).release()
        self._callables[handle] = None

    def partial_run_setup(
        self, input_names: Sequence[str], output_tensor_names: Sequence[str], target_node_names: Sequence[str] = ()
    ) -> str:
        """Begin a partial run; see `Session.partial_run_setup`.

        Raises:
            InvalidArgumentError, NotFoundError: a name is unknown.
        """
        session = self._live("PRunSetup()")
        feeds = [fed_tensor(session.graph, name) for name in input_names]
        return session.partial_run_setup(self._fetches(session, output_tensor_names, target_node_names), feeds)

    def partial_run(self, handle: str, inputs: Sequence[tuple[str, Any]], output_tensor_names: Sequence[str]) -> list[Any]:
        """Continue a partial run; see `Session.partial_run`.

        Raises:
            InvalidArgumentError: a fetch cannot be computed from the feeds so far, or something was not set up.
        """
        session = self._live("PRun()")
        feeds = {fed_tensor(session.graph, name): value for name, value in inputs}
        return list(session.partial_run(handle, self._fetches(session, output_tensor_names, ()), feeds))

    def finalize(self) -> None:
        """Forbid new runs; see `Session.finalize`.

        Raises:
            InvalidArgumentError: no graph was created.
        """
        self._live("Finalize()").finalize()
        self._finalized = True

    def reset(self, containers: Sequence[str] = ()) -> None:
        """Clear the variables in `containers`; see `Session.reset`."""
        self._live("Reset()").reset(containers)

    def list_devices(self) -> list[DeviceAttributes]:
        """The available devices."""
        return list(local_devices())

    def close(self) -> None:
        """Release everything; waiting runs end."""
        self._closed = True
        if self._session is not None:
            self._session.close()

    def _live(self, what: str) -> Session:
        if self._closed:
            raise FailedPreconditionError("Session has been closed.")
        if self._session is None:
            raise InvalidArgumentError(f"Session was not created with a graph before {what}!")
        return self._session

    def _check_placement(self, nodes: Iterable[Node]) -> None:
        if not self.options.place_pruned_graph and not self.options.allow_soft_placement:
            check_devices(nodes, self.list_devices())

    def _fetches(self, session: Session, outputs: Sequence[str], targets: Sequence[str]) -> list[Any]:
        nodes = [session.graph.find(name) for name in targets]
        missing = "".join([f"{name} " for name, node in zip(targets, nodes, strict=True) if node is None])
        if missing:
            raise NotFoundError(f"PruneForTargets: Some target nodes not found: {missing}")
        return [*[fetched_tensor(session.graph, name) for name in outputs], *nodes]

    def _callable(self, handle: int) -> SessionCallable:
        if handle not in self._callables:
            raise InvalidArgumentError(f"No such callable handle: {handle}")
        function = self._callables[handle]
        if function is None:
            raise InvalidArgumentError(f"{RELEASED}: {handle}")
        return function


def _as_graph_def(graph: GraphDef | Graph) -> GraphDef:
    return graph.as_graph_def() if isinstance(graph, Graph) else graph
