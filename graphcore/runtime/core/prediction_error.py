"""The difference between a predicted step and a recorded run."""

from __future__ import annotations

import statistics

import msgspec

from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.placement.step_prediction import StepPrediction
from graphcore.runtime.core.tracing import Trace


class PredictionError(msgspec.Struct, frozen=True):
    """The relative errors of a prediction, by the recorded times.

    Args:
        nodes: the error of a run of each node, by name: 0.5 for half as long or one and a half times as long as recorded.
        median: their median.
        predicted, recorded: the seconds of the whole step.
    """

    nodes: dict[str, float]
    median: float
    predicted: float
    recorded: float

    @property
    def step(self) -> float:
        """The error of the whole step."""
        return abs(self.predicted - self.recorded) / self.recorded

    def __str__(self) -> str:
        step = f"step predicted {self.predicted * 1e3:,.3f} ms, recorded {self.recorded * 1e3:,.3f} ms ({self.step:.0%} off)"
        return f"{step}; median error of {len(self.nodes):,} nodes {self.median:.0%}"


def prediction_error(prediction: StepPrediction, trace: Trace) -> PredictionError:
    """Compare a predicted step with a run recorded on real devices.

    Nodes that are in one of them only do not count.

    Raises:
        FailedPreconditionError: the run was on simulated devices: there is only their virtual clock, which is itself a prediction.
        InvalidArgumentError: no node is in both.
    """
    if trace.simulated or prediction.simulated:
        raise FailedPreconditionError(
            "Required a run and a prediction on real devices: on simulated ones there is only the virtual clock, no wall clock to compare with"
        )
    recorded = trace.node_seconds()
    predicted = {span.name: (span.end - span.start) / span.times for span in prediction.spans if not span.is_copy}
    nodes = {name: abs(predicted[name] - seconds) / seconds for name, seconds in recorded.items() if name in predicted and seconds}
    if not nodes:
        raise InvalidArgumentError("Required a prediction of the step that was recorded; they have no node in common")
    return PredictionError(nodes, statistics.median(nodes.values()), prediction.makespan, trace.timeline().makespan)
