"""Running graphs: plans, feeds, fetches, sessions, rendezvous and threads."""

from graphcore.rendezvous_key import RendezvousKey, create_key, parse_key
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.events import Event
from graphcore.runtime.core.node_times import NodeTime
from graphcore.runtime.core.options import RunMetadata, RunOptions, SessionOptions
from graphcore.runtime.core.prediction_error import PredictionError, prediction_error
from graphcore.runtime.core.program import Executor
from graphcore.runtime.core.prune import needed_nodes
from graphcore.runtime.core.recorder import Recorder
from graphcore.runtime.core.rendezvous import Received, Rendezvous, RendezvousArgs
from graphcore.runtime.core.rewrite import DeviceAttributes, RewrittenGraph, prune_for_targets, rewrite_graph_for_execution
from graphcore.runtime.core.sizes import PeakMemory
from graphcore.runtime.core.tracing import DeviceStepStats, NodeExecStats, StepStats, Trace
from graphcore.runtime.core.value_records import ValueRecords
from graphcore.runtime.functions.executors import (
    ExecutorFactory,
    ExecutorParams,
    get_executor_factory,
    new_executor,
    register_executor_factory,
)
from graphcore.runtime.functions.function_process import ProcessFunctionLibraryRuntime
from graphcore.runtime.functions.function_runtime import FunctionLibraryRuntime
from graphcore.runtime.plan.plan import Plan, build_plan
from graphcore.runtime.runners import Runner, RunRecord, Watch
from graphcore.runtime.session.direct_session import CallableOptions, DirectSession
from graphcore.runtime.session.graph_runner import GraphRunner
from graphcore.runtime.session.session import Session, get_default_session, listen_to_sessions, live_sessions
from graphcore.runtime.stepping.stepped_run import NodeStep, SteppedRun

__all__ = [
    "CallableOptions",
    "CancellationManager",
    "DeviceAttributes",
    "DeviceStepStats",
    "DirectSession",
    "Event",
    "Executor",
    "ExecutorFactory",
    "ExecutorParams",
    "FunctionLibraryRuntime",
    "GraphRunner",
    "NodeExecStats",
    "NodeStep",
    "NodeTime",
    "PeakMemory",
    "Plan",
    "PredictionError",
    "ProcessFunctionLibraryRuntime",
    "Received",
    "Recorder",
    "Rendezvous",
    "RendezvousArgs",
    "RendezvousKey",
    "RewrittenGraph",
    "RunMetadata",
    "RunOptions",
    "RunRecord",
    "Runner",
    "Session",
    "SessionOptions",
    "StepStats",
    "SteppedRun",
    "Trace",
    "ValueRecords",
    "Watch",
    "build_plan",
    "create_key",
    "get_default_session",
    "get_executor_factory",
    "listen_to_sessions",
    "live_sessions",
    "needed_nodes",
    "new_executor",
    "parse_key",
    "prediction_error",
    "prune_for_targets",
    "register_executor_factory",
    "rewrite_graph_for_execution",
]
