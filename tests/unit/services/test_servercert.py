"""Until when a server's certificate is valid, by asking real servers that this test has started."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.applications import Starlette

from sinkbench.services.servercert import POSTGRES, certificate_until
from tests.support.tlsserver import issue, served

HERE = "127.0.0.1"


@pytest.fixture
def refusing() -> Iterator[int]:
    """The port of a server that answers N to whatever it is asked first, as PostgreSQL does without TLS."""
    with socket.create_server((HERE, 0)) as listener:

        def answer() -> None:
            there, _ = listener.accept()
            with there:
                there.recv(8)
                there.sendall(b"N")

        thread = threading.Thread(target=answer)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_it_is_told_of_any_authority(tmp_path: Path) -> None:
    with served(Starlette(), issue(tmp_path, ends=timedelta(days=1))) as port:
        found = certificate_until(HERE, port)
    assert found is not None
    assert timedelta(hours=23) < found - datetime.now(UTC) <= timedelta(days=1)


def test_a_server_without_tls_has_none(refusing: int) -> None:
    assert certificate_until(HERE, refusing, POSTGRES) is None


def test_nor_has_one_that_speaks_plain_http() -> None:
    with served(Starlette()) as port:
        assert certificate_until(HERE, port) is None


def test_nor_has_one_that_is_not_there() -> None:
    with socket.create_server((HERE, 0)) as listener:
        port = listener.getsockname()[1]
    assert certificate_until(HERE, port) is None
