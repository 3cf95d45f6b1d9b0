"""The default session of each thread, used by `Tensor.eval` and `Node.run`."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

from graphcore.errors import FailedPreconditionError
from graphcore.graph.model.argument_errors import refuse
from graphcore.graph.model.node import Node, Tensor

default_sessions: Final[ContextVar[tuple[Any, ...]]] = ContextVar("default_sessions", default=())
"""The sessions that are entered, the innermost last; sessions put themselves here."""


def evaluate(what: Node | Tensor, feed_dict: Mapping[Any, Any] | None, session: Any) -> Any:
    """Run `what` in `session`, or in the default session for None.

    Raises:
        FailedPreconditionError: no session is entered.
        InvalidArgumentError: `session` is not a session.
    """
    chosen = next(reversed(default_sessions.get()), None) if session is None else session
    if chosen is None:
        how, node = ("evaluate", what.node) if isinstance(what, Tensor) else ("run", what)
        text = f"Cannot {how} '{what.name}': no default session is entered; use `with gc.Session():` or give `session=`"
        raise FailedPreconditionError(text, node=node.name).advise(
            f"Write `session.run(\u00ab{what.name}\u00bb)` with your session, or put the line into `with gc.Session():`.",
            required="an open session",
            came="none",
        )
    if isinstance(chosen, type) or not callable(getattr(chosen, "run", None)):
        refuse("session", "a gc.Session, or None for the default session", chosen)
    return chosen.run(what, feed_dict)
