"""Running graphs: plans, feeds, fetches, sessions."""

from graphcore.runtime.plan import Plan, build_plan
from graphcore.runtime.prune import needed_nodes
from graphcore.runtime.session import Session, get_default_session

__all__ = ["Plan", "Session", "build_plan", "get_default_session", "needed_nodes"]
