"""The connections of `gc.LocalCluster`: Dask's over TLS; a client without the key is refused at once.

Dask finds the backend by the entry point of its scheme (group `distributed.comm.backends`). Its own `tls://` raises a TypeError for a client
without keys, which the client does not expect: closing it then takes a minute.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

from distributed.comm.core import FatalCommClosedError
from distributed.comm.tcp import TLSBackend, TLSConnector, TLSListener

SCHEME: Final = "graphloupe"
"""The scheme of addresses, named in `pyproject.toml` too."""
_NO_KEY: Final = (
    "This gc.LocalCluster takes only clients with its key: required distributed.Client(address, security=cluster.client.security), "
    "in the process that made the cluster; got a client without a key"
)


class _Connector(TLSConnector):
    prefix = f"{SCHEME}://"

    def _get_connect_args(self, **connection_args: Any) -> Any:
        if not isinstance(connection_args.get("ssl_context"), ssl.SSLContext):
            raise FatalCommClosedError(_NO_KEY)
        return super()._get_connect_args(**connection_args)  # type: ignore[no-untyped-call]  # Dask does not annotate it


class _Listener(TLSListener):
    prefix = f"{SCHEME}://"


class KeyedBackend(TLSBackend):
    """Dask's backend for TLS, with these connections."""

    _connector_class = _Connector
    _listener_class = _Listener
