"""The choice of an engine: a plan if possible, otherwise the dataflow engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.graph.model.node import Node, Tensor
from graphcore.plumbing import CONTROL_FLOW, RECV, SEND
from graphcore.runtime.core.program import Program
from graphcore.runtime.core.prune import checked_frames, needed_nodes
from graphcore.runtime.core.waiting import first_waiting
from graphcore.runtime.dataflow.dataflow_program import build_dataflow
from graphcore.runtime.plan.loop_plan import build_loop_plan
from graphcore.runtime.plan.plan import build_plan
from graphcore.runtime.plan.schedule import MakeKernel

Engine = Literal["auto", "plan", "dataflow"]
"""`plan`: one generated Python function; `dataflow`: tokens, frames and iterations; `auto`: a plan where the graph allows one."""
ENGINES: Final[tuple[Engine, ...]] = ("auto", "plan", "dataflow")
_KEY: Final = ("send_device", "send_device_incarnation", "recv_device", "tensor_name")


def check_engine(engine: object) -> Engine:
    """Check the name of an engine.

    Raises:
        InvalidArgumentError: there is none of this name.
    """
    for name in ENGINES:
        if isinstance(engine, str) and engine == name:
            return name
    raise InvalidArgumentError(f"Required one of the engines {', '.join(map(repr, ENGINES))}, got {brief(engine)}")


def build_program(
    fetches: Sequence[Tensor],
    targets: Sequence[Node],
    feeds: Sequence[Tensor],
    make_kernel: MakeKernel,
    engine: Engine = "auto",
    needed: Sequence[Node] | None = None,
    threads: int = 0,
) -> Program:
    """Prepare the subgraph for `fetches` and `targets`, given `feeds`.

    Args:
        fetches, targets, feeds: of one graph.
        make_kernel: makes the kernel of a node.
        engine: the engine.
        needed: the result of `needed_nodes`, if computed already.
        threads: the number of heavy nodes to run concurrently; 0 for the best number on this machine.

    Raises:
        GraphError: a needed node has an error or cannot run, or a loop is malformed.
        UnimplementedError: a plan is required, and the graph's control flow is not composed of branches and loops only.
    """
    nodes = needed_nodes(fetches, targets, feeds) if needed is None else needed
    if engine == "dataflow" or (engine == "auto" and any(node.op in RECV for node in nodes)):
        return build_dataflow(fetches, targets, feeds, make_kernel)
    waiting = first_waiting(nodes)
    if engine == "plan":
        _check_no_rendezvous_between(nodes)
        if waiting is not None:
            raise UnimplementedError.at(
                waiting,
                f"'{waiting.name}' (op {waiting.op}) may wait for what other nodes do, for which the plan engine has no order; the dataflow "
                "engine runs it",
            )
    elif waiting is not None:
        return build_dataflow(fetches, targets, feeds, make_kernel)
    if not any(node.op in CONTROL_FLOW for node in nodes):
        return build_plan(fetches, targets, feeds, make_kernel, nodes, threads)
    info = checked_frames(nodes, fetches, feeds)
    try:
        return build_loop_plan(nodes, info, fetches, targets, feeds, make_kernel)
    except UnimplementedError:
        if engine == "plan":
            raise
    return build_dataflow(fetches, targets, feeds, make_kernel)


def _check_no_rendezvous_between(nodes: Sequence[Node]) -> None:
    """Check that no node receives from another of `nodes`, which a sequential plan might run later.

    Raises:
        UnimplementedError: one does.
    """
    sending = {_key(node): node for node in nodes if node.op in SEND}
    for node in nodes if sending else ():
        sender = sending.get(_key(node)) if node.op in RECV else None
        if sender is not None:
            raise UnimplementedError.at(
                node,
                f"'{node.name}' (op {node.op}) waits for what '{sender.name}' (op {sender.op}) of the same run sends, for which the plan "
                "engine has no order; the dataflow engine runs it",
            )


def _key(node: Node) -> tuple[object, ...]:
    return tuple([node.attr.get(name) for name in _KEY])
