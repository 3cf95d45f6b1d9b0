"""Runs of models in their own frameworks, recorded node by node as those of sessions are."""

from graphcore.runtime.runners.node_names import NodeNames, inner_call
from graphcore.runtime.runners.protocol import Runner, Watch
from graphcore.runtime.runners.run_record import RunRecord

__all__ = ["NodeNames", "RunRecord", "Runner", "Watch", "inner_call"]
