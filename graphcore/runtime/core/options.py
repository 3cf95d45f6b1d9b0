"""Options of sessions and runs, and metadata of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, ClassVar

import msgspec
import numpy as np

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError

if TYPE_CHECKING:
    from graphcore.graph.recorded import RecordingOptions
    from graphcore.runtime.core.tracing import StepStats, Trace
    from graphcore.runtime.core.value_records import ValueRecords


class RunOptions(msgspec.Struct, frozen=True):
    """Options of one run.

    Args:
        trace: record the run, with nodes in sequence; see `RunMetadata.trace` and `Session.trace`.
        timeout_in_ms: the time limit in milliseconds; 0 for none.
        trace_level: TF1's option for a trace: any level except NO_TRACE.
        values: True to record least, greatest and mean value, NaNs and infinities of all tensors as well, in `RunMetadata.values`; a glob
            pattern of node names, or several, to record full statistics of these nodes besides (standard deviation, histogram, zeros).

    Example:
        >>> x = gc.constant([1.0, 0.0], name="x")
        >>> metadata = gc.RunMetadata()
        >>> inverse = gc.Session().run(1 / x, options=gc.RunOptions(values=True), run_metadata=metadata)
        >>> metadata.values
        <gc.ValueRecords of 3 tensors, 1 with NaN or Inf>
    """

    NO_TRACE: ClassVar[int] = 0
    SOFTWARE_TRACE: ClassVar[int] = 1
    HARDWARE_TRACE: ClassVar[int] = 2
    FULL_TRACE: ClassVar[int] = 3

    trace: bool = False
    timeout_in_ms: int = 0
    trace_level: int = 0
    values: bool | str | tuple[str, ...] = False

    def __post_init__(self) -> None:
        _require_time("timeout_in_ms", self.timeout_in_ms)
        _require_flag("trace", self.trace)
        _require_count("trace_level", self.trace_level, "a level such as RunOptions.FULL_TRACE")
        if not isinstance(self.values, bool | str) and not all(isinstance(pattern, str) for pattern in _listed(self.values)):
            raise InvalidArgumentError(f"values: required True, False or glob patterns of node names, got {brief(self.values)}")

    def over(self, others: RecordingOptions | None) -> RunOptions:
        """These options, with those of `others` in place of defaults."""
        if others is None:
            return self
        defaults = RunOptions()
        return RunOptions(
            **{name: getattr(others if getattr(self, name) == getattr(defaults, name) else self, name) for name in self.__struct_fields__}
        )

    @property
    def is_traced(self) -> bool:
        """True iff the run is to be recorded."""
        return self.trace or self.trace_level != self.NO_TRACE or bool(self.values)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The glob patterns of the nodes with full statistics."""
        return (self.values,) if isinstance(self.values, str) else () if isinstance(self.values, bool) else tuple(self.values)


class RunMetadata:
    """The results of a run besides its values.

    Attributes:
        trace: the recorded run, None if it was not traced.
    """

    __slots__ = ("trace",)

    def __init__(self) -> None:
        self.trace: Trace | None = None

    def __repr__(self) -> str:
        return f"<gc.RunMetadata trace={self.trace!r}>"

    @property
    def values(self) -> ValueRecords | None:
        """The recorded values; None if they were not requested."""
        return None if self.trace is None else self.trace.values

    @property
    def step_stats(self) -> StepStats | None:
        """The times of each node, by device (TF1's name); None if the run was not traced."""
        return None if self.trace is None else self.trace.step_stats()


class SessionOptions(msgspec.Struct, frozen=True):
    """Options of a session.

    Args:
        operation_timeout_in_ms: the time limit of each run, in milliseconds; 0 for none.
        optimize_for_static_graph: forbid changes of the graph; running after a change is an error.
        place_pruned_graph: place, or check the devices of, needed nodes only.
        allow_soft_placement: nodes that request a missing device run on the CPU.
        inter_op_threads: the number of heavy nodes to run concurrently; 0 for the best number on this machine, 1 for sequential runs.
        capture_on_gpu: from its third run on, a plan that a GPU runs alone is launched as one CUDA graph, if it reads no values on the host, draws
            no random numbers and has no other state than variables. Each such graph holds the memory of a run and three copies of its variables; where
            these would take more than 3/16 of the GPU's memory, nothing is captured. The logger `graphcore.gpu` has the reason.
        log_device_placement: log the device of each node to the logger `graphcore.placement`, in a session with several devices.
    """

    operation_timeout_in_ms: int = 0
    optimize_for_static_graph: bool = False
    place_pruned_graph: bool = False
    allow_soft_placement: bool = True
    inter_op_threads: int = 0
    log_device_placement: bool = False
    capture_on_gpu: bool = True

    def __post_init__(self) -> None:
        _require_time("operation_timeout_in_ms", self.operation_timeout_in_ms)
        for option in ("optimize_for_static_graph", "place_pruned_graph", "allow_soft_placement", "log_device_placement", "capture_on_gpu"):
            _require_flag(option, getattr(self, option))
        _require_count("inter_op_threads", self.inter_op_threads, "a number of threads, or 0 for as many as pay")


def _listed(value: object) -> Sequence[object]:
    """The items of a list, or the value itself as one that is no pattern."""
    return value if isinstance(value, list | tuple) else (value,)


def _require_time(option: str, value: object) -> None:
    if not isinstance(value, Real) or math.isnan(value) or value < 0:
        raise InvalidArgumentError(f"{option}: required milliseconds, or 0 for as long as it takes, got {brief(value)}")


def _require_flag(option: str, value: object) -> None:
    if not isinstance(value, Integral | np.bool_):
        raise InvalidArgumentError(f"{option}: required True or False, got {brief(value)}")


def _require_count(option: str, value: object, what: str) -> None:
    if not isinstance(value, Integral) or value < 0:
        raise InvalidArgumentError(f"{option}: required {what}, got {brief(value)}")
