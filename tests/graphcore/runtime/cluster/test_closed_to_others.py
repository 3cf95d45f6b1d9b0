"""A cluster of this machine is closed to other machines and to other users of this one."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from urllib.error import HTTPError

import dask
import psutil
import pytest

import graphcore as gc


@pytest.fixture(scope="module")
def opened() -> Iterator[tuple[gc.LocalCluster, list[tuple[str, int]]]]:
    """A cluster, and the addresses where its processes listen."""
    before = _listening()
    with gc.LocalCluster(workers=1) as cluster:
        yield cluster, sorted(_listening() - before)


def _address(cluster: gc.LocalCluster) -> str:
    return str(cluster.client.scheduler_info()["address"])


def _listening() -> set[tuple[str, int]]:
    processes = [psutil.Process(os.getpid()), *psutil.Process(os.getpid()).children(recursive=True)]
    found = [at.laddr for process in processes for at in process.net_connections(kind="inet") if at.status == psutil.CONN_LISTEN]
    return {(at.ip, at.port) for at in found}


def test_all_its_servers_listen_on_the_loopback_interface(opened: tuple[gc.LocalCluster, list[tuple[str, int]]]) -> None:
    _, addresses = opened
    assert len(addresses) >= 3
    assert {ip for ip, _ in addresses} == {"127.0.0.1"}


def test_nobody_without_the_key_can_connect(opened: tuple[gc.LocalCluster, list[tuple[str, int]]]) -> None:
    cluster, addresses = opened
    places = [_address(cluster), *[place.address for place in cluster.places()]]
    assert {int(place.rpartition(":")[2]) for place in places} <= {port for _, port in addresses}
    for place in places:
        assert place.startswith("graphloupe://")
        assert _answer_without_key(int(place.rpartition(":")[2])) == b""


def test_a_client_without_the_key_is_refused_at_once_and_told_why(opened: tuple[gc.LocalCluster, list[tuple[str, int]]]) -> None:
    cluster, _ = opened
    program = f"import distributed; distributed.Client({_address(cluster)!r}, set_as_default=False)"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=50)
    assert done.returncode == 1
    assert "takes only clients with its key: required distributed.Client(address, security=cluster.client.security)" in done.stderr
    with pytest.raises(gc.errors.FailedPreconditionError, match="takes only clients with its key"):
        gc.DaskCluster(_address(cluster), cluster.tasks)


def _answer_without_key(port: int) -> bytes:
    """The first byte that a TLS server sends to a client without a certificate, b"" if it refuses."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=20)) as connection:
            connection.sendall(b"hello")
            return connection.recv(1)
    except (ssl.SSLError, ConnectionError):
        return b""


def test_its_http_servers_answer_nothing(opened: tuple[gc.LocalCluster, list[tuple[str, int]]]) -> None:
    cluster, addresses = opened
    secured = {int(_address(cluster).rpartition(":")[2])}
    answers = [
        _status(port, path)
        for _, port in addresses
        if port not in secured
        for path in ("/", "/info/main/workers.html", "/metrics", "/health")
    ]
    assert set(answers) <= {404, 0}


def _status(port: int, path: str) -> int:
    """The HTTP status of an answer, 0 without one."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code
    except OSError:
        return 0


def test_a_dashboard_that_is_asked_for_is_shown_on_the_loopback_interface() -> None:
    with gc.LocalCluster(workers=1, processes=False, dashboard=True) as cluster:
        link = cluster.client.dashboard_link
        assert link.startswith("http://127.0.0.1:")
        assert _status(int(link.split(":")[2].partition("/")[0]), "/health") == 200


def test_a_client_with_the_key_can_connect(opened: tuple[gc.LocalCluster, list[tuple[str, int]]]) -> None:
    cluster, _ = opened
    with gc.DaskCluster(_address(cluster), cluster.tasks, security=cluster.client.security) as other:
        assert other.devices == cluster.devices


@pytest.mark.parametrize("address", ["tls://127.0.0.1:1", "nonsense://127.0.0.1:1", "127.0.0.1:1:1"])
def test_an_address_that_is_refused_at_once_leaves_no_client_behind(address: str) -> None:
    before = set(threading.enumerate())
    with pytest.raises(gc.errors.FailedPreconditionError, match="Cannot reach a Dask scheduler"):
        gc.DaskCluster(address, {"worker": ["a"]})
    assert not [thread for thread in set(threading.enumerate()) - before if "loop" in thread.name.lower()]


def test_a_client_without_the_required_encryption_is_refused_as_unreachable() -> None:
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(gc.errors.FailedPreconditionError, match="encryption required"),
    ):
        gc.DaskCluster("tcp://127.0.0.1:1", {"worker": ["a"]})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_is_told_that_the_cluster_is_not_its_own(opened: tuple[gc.LocalCluster, list[tuple[str, int]]]) -> None:
    cluster, _ = opened
    with gc.Graph().as_default():
        one = gc.constant(1.0)
        with gc.Session(cluster=cluster) as session:
            assert session.run(one) == 1.0
            for ask in (cluster.places, lambda: session.run(one + 1.0)):
                child = os.fork()
                if not child:
                    os._exit(_refusal(ask))
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _refusal(ask: Callable[[], object]) -> int:
    try:
        ask()
    except gc.errors.FailedPreconditionError as error:
        return 0 if "forked" in error.message else 1
    except BaseException:  # noqa: BLE001 - it is the child's exit code
        return 2
    return 3
