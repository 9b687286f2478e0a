import asyncio
import os
import socket
import ssl
import stat

import psutil
import pytest
from distributed.comm import connect

from barrow.sites.local import start_local
from barrow.sites.security import (
    CERTIFICATE_FILE,
    KEY_FILE,
    make_credentials,
    make_security,
    remove_credentials,
    write_credentials,
)


@pytest.fixture(scope="module")
def cluster():
    with start_local(workers=1) as cluster:
        yield cluster


def list_listening(pids):
    return {
        connection.laddr
        for connection in psutil.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.pid in pids
    }


def trust_anybody():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def speaks_tls(address):
    context = trust_anybody()
    with socket.create_connection(address, timeout=10) as plain:
        try:
            with context.wrap_socket(plain):
                return True
        except ssl.SSLError as error:
            # An answer in TLS all the same: it wants to see a certificate.
            return "CERTIFICATE_REQUIRED" in str(error) or "HANDSHAKE_FAILURE" in str(error)


def test_credentials_are_readable_by_their_owner_alone(tmp_path):
    write_credentials(make_credentials(), tmp_path)
    modes = {
        stat.S_IMODE((tmp_path / name).stat().st_mode) for name in (CERTIFICATE_FILE, KEY_FILE)
    }
    assert modes == {0o600}
    remove_credentials(tmp_path)
    remove_credentials(tmp_path)
    assert not list(tmp_path.iterdir())


def test_credentials_are_different_each_time():
    assert make_credentials() != make_credentials()


def knock(address, context):
    """Try to connect to a scheduler as Dask does."""

    async def try_it():
        comm = await connect(address, timeout=5, ssl_context=context, require_encryption=True)
        comm.abort()

    asyncio.run(try_it())


def test_who_has_the_certificate_is_let_in(cluster):
    ours = cluster.client.security.get_connection_args("client")["ssl_context"]
    knock(cluster.client.scheduler.address, ours)


def test_a_stranger_without_a_certificate_is_not_let_in(cluster):
    with pytest.raises(OSError):
        knock(cluster.client.scheduler.address, trust_anybody())


def test_a_stranger_with_a_certificate_of_their_own_is_not_let_in(cluster):
    theirs = make_security(make_credentials()).get_connection_args("client")["ssl_context"]
    theirs.verify_mode = ssl.CERT_NONE
    with pytest.raises(OSError):
        knock(cluster.client.scheduler.address, theirs)


def test_a_stranger_who_speaks_without_encryption_gets_no_answer(cluster):
    host, _, port = cluster.client.scheduler.address.removeprefix("tls://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as plain:
        plain.sendall(bytes(64))
        try:
            answer = plain.recv(1)
        except OSError:
            answer = b""
    # Nothing, or the alert with which TLS refuses what it cannot read.
    assert answer in (b"", b"\x15")


def test_a_scan_of_what_a_cluster_opens_shows_nothing_but_loopback_and_tls(cluster):
    # This process has more open, for other tests: it is the cluster's own that counts.
    before = list_listening({os.getpid()})
    with start_local(workers=1, memory="500MB") as other:
        workers = {worker.pid for worker in other.workers}
        opened = (list_listening({os.getpid()}) - before) | list_listening(workers)
        assert {address.ip for address in opened} == {"127.0.0.1"}
        addresses = {other.client.scheduler.address, *(w.address for w in other.workers)}
        assert {f"tls://{address.ip}:{address.port}" for address in opened} == addresses
        assert all(speaks_tls(tuple(address)) for address in opened)
