"""Where the runs of a session meet: elsewhere when one of them has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.errors import GraphError
from graphcore.runtime.core.rendezvous import Rendezvous
from graphcore.support.critical_section import critical_section

if TYPE_CHECKING:
    from threading import Lock

    from graphcore.runtime.session.session import Session


def renew_rendezvous(session: Session, lock: Lock, status: GraphError) -> None:
    """Have later runs meet at a new rendezvous, and tell `status` to who waits at the one that was.

    Args:
        session: whose runs meet.
        lock: of two that fail at once each ends another rendezvous, so that who waits at one of them is told.
        status: why.
    """
    with critical_section:
        with lock:
            ended, session.rendezvous = session.rendezvous, Rendezvous()
            session.resources.channel = session.rendezvous
        ended.start_abort(status)
